"""What is attached, said and refused when a program has a session."""

import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from tidegate.errors import AskedWrongly
from tidegate.spark.program import attacher as module
from tidegate.spark.program.attacher import Attacher, Refused
from tidegate.spark.program.config_file import ConfigFile
from tidegate.spark.program.config_watch import Config
from tidegate.spark.program.settings import settle


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """An attacher whose attachments only remember what they were asked for."""
    (tmp_path / "job.py").write_text("")
    seen = SimpleNamespace(asked=[], said=[], watched=[], connected=[], stopped=[], fails=None)
    seen.watchers, seen.updates = [], []

    def attach(session, **options):
        if seen.fails is not None:
            raise seen.fails
        seen.asked.append(options)
        return SimpleNamespace(
            stop=lambda: seen.stopped.append(session),
            watchers=seen.watchers,
            update=lambda **options: seen.updates.append(options),
        )

    monkeypatch.setattr(module, "attach_to_all", attach)
    monkeypatch.setattr(module, "use_this_interpreter", lambda session: None)
    monkeypatch.setattr(module, "has_connector", lambda session: session in seen.connected)
    monkeypatch.setattr(module, "add_connector", seen.connected.append)

    def attacher(config: Config | None = None, **given) -> Attacher:
        settings = settle(tmp_path / "job.py", (), {"target": "5s", **given}, config)
        return Attacher(settings, say=seen.said.append, on_attached=seen.watched.append)

    seen.attacher = attacher
    return seen


def session(master: str = "yarn", context=None) -> SimpleNamespace:
    return SimpleNamespace(sparkContext=context or SimpleNamespace(master=master))


def test_one_attachment_for_each_application(world) -> None:
    attacher = world.attacher(executors=(1, 20))
    first = session()
    attacher.session(first)
    attacher.session(session(context=first.sparkContext))
    assert len(world.asked) == 1 and world.asked[0]["executors"] == (1, 20)
    attacher.session(session())
    assert len(world.asked) == 2 and world.watched == attacher.attachments
    attacher.stop()
    assert len(world.stopped) == 2
    assert world.said == []


def test_on_a_local_master_it_says_that_nothing_is_scaled(world) -> None:
    world.attacher(executors=(1, 20)).session(session("local[2]"))
    assert world.asked[0]["executors"] is None
    (said,) = world.said
    assert said.startswith("local[2] has no executors to scale: queries are only measured")


def test_a_program_with_a_master_of_its_own_keeps_it(world) -> None:
    world.attacher(master="yarn").session(session("spark://host:7077"))
    (said,) = world.said
    assert "runs on spark://host:7077 and not on yarn" in said


def test_a_refusal_is_not_for_the_programs_own_except(world) -> None:
    world.fails = AskedWrongly("dynamic allocation is on")
    with pytest.raises(Refused, match="dynamic allocation is on") as refused:
        world.attacher().session(session())
    assert not isinstance(refused.value, Exception)
    assert refused.value.error is world.fails


def test_a_mistake_of_ours_does_not_end_the_program(world, caplog) -> None:
    world.fails = KeyError("segment")
    attacher = world.attacher()
    attacher.session(session())
    assert attacher.attachments == []
    assert "KeyError: 'segment'; the program runs on without Tidegate" in caplog.text


def test_in_another_thread_a_refusal_is_said(world, caplog) -> None:
    world.fails = AskedWrongly("dynamic allocation is on")
    attacher = world.attacher()
    thread = threading.Thread(target=attacher.session, args=[session()])
    thread.start()
    thread.join()
    assert "dynamic allocation is on; the program runs on without Tidegate" in caplog.text


def test_spark_connect_is_refused(world) -> None:
    with pytest.raises(Refused, match="uses Spark Connect"):
        world.attacher().remote()


@pytest.mark.parametrize(
    ("kafka", "at_start", "when_asked"), [(None, 0, 1), (True, 1, 1), (False, 0, 0)]
)
def test_the_connector_comes_when_the_program_asks_for_kafka(
    world, kafka: bool | None, at_start: int, when_asked: int
) -> None:
    attacher, own = world.attacher(kafka=kafka), session()
    attacher.session(own)
    assert len(world.connected) == at_start
    attacher.kafka(own)
    attacher.kafka(own)
    assert len(world.connected) == when_asked
    assert len(world.said) == when_asked


def test_an_end_that_fails_is_logged(world, caplog) -> None:
    attacher = world.attacher()
    attacher.session(session())
    attacher.attachments[0].stop = lambda: 1 / 0
    attacher.stop()
    assert "the control loop could not be stopped cleanly: ZeroDivisionError" in caplog.text


@pytest.mark.parametrize(
    ("master", "changed"),
    [("yarn", {"executors": (1, 9), "target": "2s"}), ("local[2]", {"target": "2s"})],
)
def test_the_file_of_options_is_watched(world, tmp_path: Path, master: str, changed: dict) -> None:
    file = tmp_path / "tidegate.toml"
    file.write_text('target = "5s"\n')
    config = Config(ConfigFile(file), {}, ConfigFile(file).options())
    world.attacher(config).session(session(master))
    file.write_text('target = "2s"\nexecutors = [1, 9]\n')
    for watcher in world.watchers:
        watcher(None)
    assert world.updates == [changed]
