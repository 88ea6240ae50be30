"""What figures 6 and 7 make of runs: the recommended split, the models and the further runs."""

import pytest

from tests.unit.papers.drs.simulated_runs import RIGHT, VLD, WRONG, Split, simulated_run
from tidegate.apps.application import Verdict
from tidegate.apps.run_application import ApplicationRun
from tidegate.papers.drs.runs import K_MAX
from tidegate.papers.drs.six_splits import SETTLED_S, SplitRuns, best_of, recommended, summary
from tidegate.papers.drs.split_sojourns import SplitSojourns
from tidegate.papers.estimate import MicroBatchEstimate
from tidegate.papers.measured import Sojourns, after
from tidegate.papers.splits import neighbours

BEST: Split = (10, 11, 1)
SPLITS: tuple[Split, ...] = (BEST, (9, 12, 1), (9, 11, 2), (8, 12, 2), (7, 12, 3))


@pytest.fixture(scope="module")
def runs() -> SplitRuns:
    return {split: [simulated_run(split)] for split in SPLITS}


@pytest.fixture(scope="module")
def uncut() -> ApplicationRun:
    return simulated_run((K_MAX,) * 3, cut=False)


def summed(runs: SplitRuns, uncut: ApplicationRun, again: SplitRuns | None = None) -> SplitSojourns:
    return summary(VLD, runs, BEST, uncut, again or {})


def test_the_recommended_split_is_better_than_all_beside_it(runs: SplitRuns) -> None:
    learned = MicroBatchEstimate([one.records for several in runs.values() for one in several])
    ours = recommended(learned, 3)
    assert sum(ours) == K_MAX and min(ours) >= 1
    took_s = sojourn_s(simulated_run(ours))
    assert all(took_s <= 1.05 * sojourn_s(simulated_run(one)) for one in neighbours(ours, 6))


def sojourn_s(run: ApplicationRun) -> float:
    return Sojourns.of(after(run.records, SETTLED_S, run.seconds)).mean_s


def test_measured_and_modelled_sojourns_are_beside_each_other(
    runs: SplitRuns, uncut: ApplicationRun
) -> None:
    found = summed(runs, uncut)
    assert found.best == best_of(runs) == BEST
    assert found.off == 1.0
    for split in SPLITS:
        assert found.measured[split].mean_s == pytest.approx(sojourn_s(runs[split][0]))
        assert found.modelled_s[split] == pytest.approx(found.measured[split].mean_s, rel=0.25)
    assert found.alike((BEST, (8, 12, 2), (7, 12, 3))) == pytest.approx(1.0)
    assert found.by_drs["mmk"] == BEST and sum(found.by_drs["gigk"]) == K_MAX
    assert max(found.by_drs_s.values()) < min(one.mean_s for one in found.measured.values())
    assert found.uncut.mean_s == pytest.approx(sojourn_s(uncut))
    assert found.wrong == ()


def test_a_split_is_modelled_from_the_runs_of_the_others_alone(
    runs: SplitRuns, uncut: ApplicationRun
) -> None:
    odd: Split = (8, 12, 2)
    slow = summed({**runs, odd: [simulated_run(odd, slower=1.2)]}, uncut)
    usual = summed(runs, uncut)
    assert slow.measured[odd].mean_s > 1.1 * usual.measured[odd].mean_s
    # Of its own runs the model takes the rate of arrivals alone.
    assert slow.modelled_s[odd] == pytest.approx(usual.modelled_s[odd], rel=0.03)
    assert slow.modelled_s[BEST] > usual.modelled_s[BEST], "learned from the slow run as well"


def test_all_runs_of_a_split_count(runs: SplitRuns, uncut: ApplicationRun) -> None:
    twice = [*runs[BEST], simulated_run(BEST, slower=1.1)]
    found = summed({**runs, BEST: twice}, uncut)
    assert found.measured[BEST].mean_s == pytest.approx(sum(map(sojourn_s, twice)) / 2, rel=0.02)


def test_further_runs_count_in_the_place_of_the_lucky_ones(
    runs: SplitRuns, uncut: ApplicationRun
) -> None:
    lucky: Split = (9, 11, 2)
    with_luck = {**runs, lucky: [simulated_run(lucky, slower=0.8)]}
    assert best_of(with_luck) == lucky
    assert summed(with_luck, uncut).off > 1.1
    again = {split: [simulated_run(split)] for split in (BEST, lucky)}
    found = summed(with_luck, uncut, again)
    assert found.best == lucky and found.off == 1.0


@pytest.mark.parametrize("verdict", [RIGHT, WRONG])
def test_wrong_answers_of_any_run_are_told(
    runs: SplitRuns, uncut: ApplicationRun, verdict: Verdict
) -> None:
    again = {BEST: [simulated_run(BEST, verdict=verdict)]}
    assert len(summed(runs, uncut, again).wrong) == (verdict is WRONG)
    last = simulated_run((K_MAX,) * 3, cut=False, verdict=verdict)
    assert len(summed(runs, last).wrong) == (verdict is WRONG)
