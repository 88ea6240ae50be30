"""A load with a daily shape on a cluster that grants cores in 90 s, with a restart in between."""

from benchmarks import days

from tidegate.workload.weeks import office_like


def test_the_target_is_held_across_a_restart_at_little_more_than_the_oracle() -> None:
    """From midnight to the early afternoon, with the opening at nine."""
    hours = 14
    load = days.by_ten_seconds(office_like()[: 60 * hours])
    found = days.run_days(load, 3600.0 * hours, restart_s=6 * 3600.0)
    (day,) = found.days
    assert day.within >= 0.99
    assert day.core_seconds <= 1.3 * days.least(load, 0.0, 3600.0 * hours)
    assert 10_000 < found.learned_bytes < 600_000
    assert any("a run learned that ended" in note for note in found.notes)
