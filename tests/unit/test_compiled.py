"""What is compiled ahead is what the first pipeline, plan and simulation would wait for."""

from tidegate.compiled import compile_models
from tidegate.control.allocation import greedy
from tidegate.control.capacity import priced
from tidegate.control.placement import place_compiled as placing
from tidegate.control.shards import balance
from tidegate.forecast import analogues, arma_likelihood
from tidegate.models.microbatch import batch_memory
from tidegate.sim.queueing import engine


def test_every_model_has_been_used_once() -> None:
    compile_models()
    compiled = (balance, greedy, placing, arma_likelihood, batch_memory, engine, priced, analogues)
    for module in compiled:
        made = [one for one in vars(module).values() if hasattr(one, "nopython_signatures")]
        assert any(one.nopython_signatures for one in made), f"{module.__name__} is not compiled"
