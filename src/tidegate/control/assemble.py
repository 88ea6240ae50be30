"""The only place that puts controllers and policies together.

Spark, the simulator, the backtest, attached queries, the compilation ahead of use and the tests all
call this module, so that the simulator runs the same controller as Spark. Users select policies and
shedders by name; the names are resolved here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tidegate.control.all_notes import AllNotes
from tidegate.control.allocation.drs import Drs, DrsFixed
from tidegate.control.assembly import Assembly
from tidegate.control.baselines.ds2 import Ds2
from tidegate.control.baselines.dynamic_allocation import DynamicAllocation
from tidegate.control.baselines.fixed import GroundTruth, StaticPeak
from tidegate.control.baselines.hpa import UtilisationThreshold
from tidegate.control.baselines.in_window import InWindow
from tidegate.control.baselines.on_pipeline import OnPipeline
from tidegate.control.capacity.batch_samples import BatchSamples
from tidegate.control.capacity.cycle import Cycle
from tidegate.control.capacity.mst import TABLE_III, MstPolicy
from tidegate.control.capacity.on_pipeline import CapacityOnPipeline
from tidegate.control.capacity.priced import (
    LoadOutlook,
    PricedCapacity,
    Tuning,
)
from tidegate.control.capacity.steps import StepFold
from tidegate.control.capacity_options import MST, POLICIES, capacity_options
from tidegate.control.controller import Controller
from tidegate.control.drs_options import drs_options
from tidegate.control.effect.only_with_effect import OnlyWithEffect
from tidegate.control.effect.scale_outs import ScaleOutWatch
from tidegate.control.executors.executor_notes import ExecutorNotes
from tidegate.control.executors.slow_first import SlowFirst
from tidegate.control.executors.with_memory import WithMemory
from tidegate.control.flow.bottleneck import BottleneckFinder
from tidegate.control.flow.policy import FlowPolicy
from tidegate.control.flow.with_deals import WithDeals
from tidegate.control.latency.policy import LatencyPolicy
from tidegate.control.learning.executor_speeds import ExecutorSpeeds
from tidegate.control.learning.pipeline_model import PipelineModel
from tidegate.control.names import BASELINES, PRICED, PRICED_BY_CYCLE, policy_name, shedder_name
from tidegate.control.policy import Policy
from tidegate.control.policy_text import split_policy
from tidegate.control.settings_change import settings_change
from tidegate.control.shards.balancer import Balancer
from tidegate.control.shards.combine_notes import CombineNotes
from tidegate.control.sharing.claims import Claimant
from tidegate.control.sharing.within_share import WithinShare
from tidegate.control.shedding.feedback_shedder import FeedbackShedder, PaperShedder
from tidegate.control.shedding.model_shedder import ModelShedder
from tidegate.control.shedding.policy import SheddingPolicy
from tidegate.control.shedding.shedder import Shedder
from tidegate.control.sources.source_notes import SourceNotes
from tidegate.control.whole_executors import WholeExecutors
from tidegate.errors import AskedWrongly, nearest
from tidegate.forecast import Forecaster
from tidegate.forecast.analogues import Analogues
from tidegate.forecast.arma import ArmaForecaster
from tidegate.models.capacity.bayes import BayesianCapacity
from tidegate.models.capacity.machines import CapacityModel
from tidegate.models.capacity.online import OnlineCapacity

MACHINE_POLICIES: tuple[str, ...] = (
    PRICED,
    PRICED_BY_CYCLE,
    *TABLE_III,
    StaticPeak.name,
    GroundTruth.name,
    UtilisationThreshold.name,
    DynamicAllocation.name,
    Ds2.name,
)


_NOT_DEALT = (FlowPolicy.name, *BASELINES)
"""The flow policy deals rows itself, and settles after it; baselines are compared as they are."""


def new_controller(assembly: Assembly) -> Controller:
    """A controller with nothing learned yet."""
    return _controller(assembly, PipelineModel())


def continued(assembly: Assembly, before: Controller) -> Controller:
    """A controller with other settings that goes on where `before` ended, with its model."""
    model = before.learner if isinstance(before.learner, PipelineModel) else PipelineModel()
    controller = _controller(assembly, model)
    note = None
    if before.assembly is not None:
        note = settings_change(Assembly.of(before.assembly), assembly)
    controller.take_over(before, note)
    return controller


def _controller(assembly: Assembly, model: PipelineModel) -> Controller:
    policy = _policy(assembly, model)
    if assembly.cores_per_executor > 1:
        policy = WholeExecutors(policy, assembly.cores_per_executor)
    effects = ScaleOutWatch(model, assembly.target)
    policy = OnlyWithEffect(WithinShare(policy), effects)
    if policy.name not in _NOT_DEALT:
        policy = WithDeals(policy)
    speeds = ExecutorSpeeds()
    policy = SlowFirst(policy, speeds)
    policy = WithMemory(policy, assembly.cores_per_executor)
    if assembly.shed is not None:
        policy = SheddingPolicy(
            policy,
            new_shedder(assembly.shed, assembly.target.mean_s),
            target=assembly.target,
            model=model,
            grant_s=assembly.latency.grant_s,
            classes=assembly.classes,
            shed_backlog=assembly.shed_backlog,
        )
    return Controller(
        policy,
        bounds=assembly.bounds,
        target_s=assembly.target.latency_s,
        limits=assembly.limits,
        learner=model,
        claim=Claimant(model, assembly.target.mean_s).claim,
        finder=BottleneckFinder(),
        balancer=Balancer(speeds=speeds),
        noter=AllNotes(SourceNotes(), ExecutorNotes(speeds), CombineNotes()),
        effects=effects,
        assembly=assembly.document(),
    )


def new_shedder(name: str, target_s: float) -> Shedder:
    """The shedder of this name, for a target on the mean latency."""
    makers: dict[str, Callable[[float], Shedder]] = {
        "model": ModelShedder,
        "feedback": FeedbackShedder,
        "paper": PaperShedder,
    }
    return makers[shedder_name(name)](target_s)


def _policy(assembly: Assembly, model: PipelineModel) -> Policy:
    """The policy without its wrappers.

    `threshold` is Kubernetes' autoscaler, which decides every 15 s and scales in only after five
    minutes. Its window is cut to one minute here, so that it scales in at all in a run of a few
    minutes. Dynamic allocation decides at every tick, like Spark's backlog timeout of one second.
    `ds2` has a twentieth of the times by which it plans machines (`DS2_FASTER`): it decides every
    3 s on the last 15 s. Its scale-down interval, an hour by default, is a minute here as well.
    """
    target_s, tick_s, latency = assembly.target.latency_s, assembly.tick_s, assembly.latency
    bounds = assembly.bounds
    fixed = bounds.most if assembly.cores is None else bounds.clamp(assembly.cores)
    name, _ = split_policy(policy_name(assembly.policy))
    if name in POLICIES:
        return _capacity_policy(name, assembly, model)
    options = drs_options(assembly.policy)
    makers: dict[str, Callable[[], Policy]] = {
        "latency": lambda: LatencyPolicy(assembly.target, model, latency),
        "drs": lambda: Drs(target_s, options.t_min_below(target_s), options),
        "drs-fixed": lambda: DrsFixed(fixed, options),
        "flow": lambda: FlowPolicy(
            target_s,
            catch_up_s=latency.catch_up_s,
            scale_in_after_s=latency.scale_in_after_s,
            settle_s=2.0 * tick_s,
        ),
        "threshold": lambda: OnPipeline(
            UtilisationThreshold(stabilisation_minutes=max(round(60 / 15), 1)),
            every_s=max(15.0, tick_s),
            name="threshold",
        ),
        "ds2": lambda: _ds2(tick_s),
        "spark-dynamic-allocation": lambda: OnPipeline(DynamicAllocation(), every_s=tick_s),
        "static": lambda: OnPipeline(StaticPeak(fixed), every_s=tick_s, name="static"),
    }
    return makers[name]()


DS2_FASTER = 20.0
"""How many times as fast DS2's times are on a pipeline as with machines that come by the minute."""
_DS2_SCALE_DOWN_S = 60.0


def _ds2(tick_s: float) -> Policy:
    """DS2 for a pipeline whose cores come within seconds."""
    every_s = max(60.0 / DS2_FASTER, tick_s)
    inner = Ds2(
        catch_up_minutes=30.0 / DS2_FASTER,
        window_minutes=1,
        stabilisation_minutes=5.0 / DS2_FASTER,
        scale_down_minutes=max(round(_DS2_SCALE_DOWN_S / every_s), 1),
    )
    window = max(round(5.0 * 60.0 / DS2_FASTER / tick_s), 1)
    return InWindow(OnPipeline(inner, every_s=every_s), window)


FORGETTING = 0.999
"""The weight that a new capacity sample leaves to the older ones: machines' speed drifts."""


def _capacity_policy(name: str, assembly: Assembly, model: PipelineModel) -> Policy:
    """One of MST's policies, or the priced one, on a pipeline.

    Capacity is rows per second within the target. It begins with what was measured, if anything.
    """
    options = capacity_options(policy_name(assembly.policy))
    tick_s, most, mean_s = assembly.tick_s, assembly.bounds.most, assembly.target.mean_s
    samples = () if assembly.capacity is None else assembly.capacity.within(mean_s)
    steps, startup = options.steps(tick_s), options.startup_steps(tick_s)
    inner: Policy
    if name in MST:
        row = list(TABLE_III)[MST.index(name)]
        techniques = TABLE_III[row]
        curve = None if assembly.capacity is None else assembly.capacity.curve
        learned = OnlineCapacity(samples, max_machines=most, curve=curve)
        online = learned if techniques.learning else None
        inner = MstPolicy(
            row,
            learned,
            options.qos,
            forecaster=ArmaForecaster() if techniques.forecast else None,
            cycle=Cycle(minutes=steps, startup_minutes=startup),
            from_minutes=False,
        )
        capacity: OnlineCapacity | BayesianCapacity = learned
    else:
        length = 1 if name == PRICED else steps
        online, capacity = None, BayesianCapacity(samples, max_machines=most, forgetting=FORGETTING)
        inner = PricedCapacity(
            Analogues(lead=startup, length=length),
            capacity,
            options.qos,
            cycle=Cycle(minutes=length, startup_minutes=startup),
        )
    on_pipeline = CapacityOnPipeline(
        inner,
        capacity,
        BatchSamples(mean_s, model),
        StepFold(options.step_s(tick_s)),
        name=name,
        most_cores=most,
        online=online,
    )
    return OnPipeline(on_pipeline, every_s=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineInputs:
    """What a backtest's policies, which count machines by the minute, are built from.

    Each part is a function, so that it is built only when a policy needs it.
    """

    rho: float
    """The probability with which the machines are to be enough."""
    curve: Callable[[], CapacityModel]
    """The paper's throughput curve, trained offline (MST III-A)."""
    capacity: Callable[[], BayesianCapacity]
    forecaster: Callable[[], Forecaster]
    """For the paper's policies 4 to 7."""
    outlook: Callable[[int], LoadOutlook]
    """For the priced policy: the load outlook for a cycle of so many minutes."""
    needed: Callable[[], Sequence[int]]
    """Machines that each minute needed, in hindsight: for the static peak and the ground truth."""
    cycle: Cycle = field(default_factory=Cycle)
    tuning: Tuning | None = None


def machine_policy(name: str, inputs: MachineInputs) -> Policy:
    """A fresh policy of this name for one backtest."""
    if name in TABLE_III:
        forecaster = inputs.forecaster() if TABLE_III[name].forecast else None
        return MstPolicy(
            name, inputs.curve(), inputs.rho, forecaster=forecaster, cycle=inputs.cycle
        )
    if name in (PRICED, PRICED_BY_CYCLE):
        minutes = 1 if name == PRICED else inputs.cycle.minutes
        return PricedCapacity(
            inputs.outlook(minutes),
            inputs.capacity(),
            inputs.rho,
            cycle=Cycle(minutes=minutes, startup_minutes=inputs.cycle.startup_minutes),
            tuning=inputs.tuning,
        )
    makers: dict[str, Callable[[], Policy]] = {
        StaticPeak.name: lambda: StaticPeak(max(inputs.needed())),
        GroundTruth.name: lambda: GroundTruth(inputs.needed()),
        UtilisationThreshold.name: UtilisationThreshold,
        DynamicAllocation.name: DynamicAllocation,
        Ds2.name: Ds2,
    }
    if name not in makers:
        raise AskedWrongly(f"No policy is named '{name}'{nearest(name, MACHINE_POLICIES)}")
    return makers[name]()
