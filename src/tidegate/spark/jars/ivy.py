"""Downloads jars with Apache Ivy, the resolver that Spark brings for `spark.jars.packages`.

It needs nothing but Java and pyspark. The repository is Ivy's own default, the same that Spark
uses, unless TIDEGATE_IVY_SETTINGS names an Ivy settings file, for instance one with a mirror. The
local caches of Maven and Ivy are not read: one that holds a POM without its jar would make the
resolver fail.
"""

import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import quoteattr

import pyspark

from tidegate.errors import AskedWrongly, TidegateError
from tidegate.spark.java import find_java

SETTINGS_VARIABLE = "TIDEGATE_IVY_SETTINGS"
_PATIENCE_S = 900.0
_LAYOUT = "[organisation]/[artifact]/[revision]/[artifact]-[revision].jar"
_CONNECT_MS, _READ_MS = 10_000, 60_000
_TROUBLE = re.compile(
    r"UnknownHost|Connection refused|timed? ?out|unreachable|Server access error|ConnectException|"
    r"SSLHandshake|module not found|NOT FOUND|not found",
)


class JarsUnavailable(TidegateError):
    """Jars could not be had from any repository: no network, or the repository lacks them."""


def download(coordinates: Sequence[str], into: Path, *, with_dependencies: bool = False) -> None:
    """Download jars, given as GROUP:NAME:VERSION, to `into` (`Jar.file` says where there)."""
    with tempfile.TemporaryDirectory(prefix="tidegate-ivy-") as scratch:
        place = Path(scratch)
        wanted = place / "ivy.xml"
        wanted.write_text(_module(coordinates, with_dependencies), encoding="utf-8")
        command = [
            *(str(find_java().binary), "-cp", str(_ivy()), "org.apache.ivy.Main"),
            *("-settings", str(settings_file(place, with_dependencies))),
            *("-cache", str(place / "cache"), "-ivy", str(wanted)),
            *("-retrieve", f"{into}/{_LAYOUT}"),
            *("-types", "jar", "bundle", "-confs", "default"),
        ]
        try:
            run = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=_PATIENCE_S,
            )
        except subprocess.TimeoutExpired as error:
            raise JarsUnavailable(
                f"the repository sent the jars too slowly: not done after {_PATIENCE_S:g} s"
            ) from error
    if run.returncode != 0:
        raise JarsUnavailable(_trouble(run.stdout))


def settings_file(directory: Path, with_poms: bool = True) -> Path:
    """The user's Ivy settings file, or one that is written into `directory`.

    Without POMs only the jars themselves are fetched, which is enough for exact coordinates.
    """
    if given := os.environ.get(SETTINGS_VARIABLE):
        if not Path(given).is_file():
            raise AskedWrongly(
                f"{SETTINGS_VARIABLE}={given} is not a file; give the path of an Ivy settings "
                "file, or unset it to use Ivy's default repository"
            )
        return Path(given)
    path = directory / "ivysettings.xml"
    poms = str(with_poms).lower()
    path.write_text(
        f"""\
<ivysettings>
  <settings defaultResolver="public"/>
  <timeout-constraints>
    <timeout-constraint name="patient" connectionTimeout="{_CONNECT_MS}" readTimeout="{_READ_MS}"/>
  </timeout-constraints>
  <resolvers>
    <ibiblio name="public" m2compatible="true" usepoms="{poms}" timeoutConstraint="patient"/>
  </resolvers>
</ivysettings>
""",
        encoding="utf-8",
    )
    return path


def _module(coordinates: Sequence[str], with_dependencies: bool) -> str:
    """An Ivy module that depends on the jars: on them alone, or on what they need as well."""
    lines = []
    for one in coordinates:
        group, name, version = (quoteattr(part) for part in one.split(":"))
        head = f"<dependency org={group} name={name} rev={version}"
        if with_dependencies:
            lines.append(f'{head} conf="default->default"/>')
        else:
            artifact = f'<artifact name={name} type="jar" ext="jar"/>'
            lines.append(f'{head} transitive="false">{artifact}</dependency>')
    return f"""\
<ivy-module version="2.0">
  <info organisation="tidegate" module="jars"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
    {"".join(lines)}
  </dependencies>
</ivy-module>
"""


def _ivy() -> Path:
    """Ivy's jar in the pyspark package."""
    found = sorted((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
    if not found:
        raise JarsUnavailable(
            f"pyspark {pyspark.__version__} is here without its jars, Ivy among them; install it "
            "from PyPI"
        )
    return found[-1]


def _trouble(output: str) -> str:
    """The line of Ivy's output that says what went wrong, without its decoration."""
    lines = [line.strip(" \t:") for line in output.splitlines() if _TROUBLE.search(line)]
    network = [line for line in lines if "not found" not in line.lower()]
    told = next(iter(network or lines), output.strip()[-200:] or "Ivy said nothing")
    return told.partition(" url=")[0]
