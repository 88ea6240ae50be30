"""The manifest in deploy/kubernetes: it cannot be tried here, so what can be read is checked."""

import re
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pyspark
import pytest
import yaml

from tests.helpers.places import ROOT

MANIFEST = ROOT / "deploy" / "kubernetes" / "pipeline.yaml"
JARS = Path(pyspark.__file__).parent / "jars"
PREFIXES = ("spark.kubernetes.executor.label.", "spark.app.name")
"""What is in no class with settings: a part that the user chooses, and the name."""


@pytest.fixture(scope="module")
def parts() -> dict[str, Any]:
    found = list(yaml.safe_load_all(MANIFEST.read_text()))
    return {part["kind"]: part for part in found}


def settings(parts: dict[str, Any]) -> dict[str, str]:
    """Spark's settings, of the properties file and of the command line."""
    text = parts["ConfigMap"]["data"]["spark-defaults.conf"]
    lines = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    given: dict[str, str] = dict(lines)
    for word in pod(parts)["containers"][0]["command"]:
        if word.startswith("--conf="):
            name, _, value = word.removeprefix("--conf=").partition("=")
            given[name] = value
    return given


def pod(parts: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = parts["Deployment"]["spec"]["template"]["spec"]
    return found


def constants() -> bytes:
    """All that the classes with Spark's settings have as constants."""
    classes = {
        "spark-core_*.jar": ["org/apache/spark/internal/config/package$.class"],
        "spark-kubernetes_*.jar": [
            "org/apache/spark/deploy/k8s/Config$.class",
            "org/apache/spark/deploy/k8s/Config.class",
        ],
    }
    found = b""
    for pattern, names in classes.items():
        (jar,) = JARS.glob(pattern)
        with ZipFile(jar) as opened:
            found += b"".join(opened.read(name) for name in names)
    with ZipFile(next(JARS.glob("spark-core_*.jar"))) as opened:
        for name in opened.namelist():
            if re.fullmatch(r"org/apache/spark/internal/config/\w+\$\.class", name):
                found += opened.read(name)
    return found


def test_every_setting_is_one_of_sparks(parts: dict[str, Any]) -> None:
    known = constants()
    given = [name for name in settings(parts) if not name.startswith(PREFIXES)]
    assert len(given) > 15
    assert [name for name in given if name.encode() not in known] == []
    assert b"spark.kubernetes.executor.podTemplateFiles" not in known, "and a mistake is seen"


def test_executors_may_leave_in_peace(parts: dict[str, Any]) -> None:
    given = settings(parts)
    assert given["spark.dynamicAllocation.enabled"] == "false"
    assert given["spark.decommission.enabled"] == "true"
    template = yaml.safe_load(parts["ConfigMap"]["data"]["executor.yaml"])
    patience_s = int(given["spark.executor.decommission.forceKillTimeout"].removesuffix("s"))
    assert template["spec"]["terminationGracePeriodSeconds"] > patience_s


def test_what_refers_to_each_other_agrees(parts: dict[str, Any]) -> None:
    given = settings(parts)
    assert given["spark.driver.host"] == parts["Service"]["metadata"]["name"]
    ports = {port["name"]: port["port"] for port in parts["Service"]["spec"]["ports"]}
    assert given["spark.driver.port"] == str(ports["driver"])
    assert given["spark.driver.blockManager.port"] == str(ports["blocks"])
    labels = parts["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert parts["Service"]["spec"]["selector"] == labels
    driver = pod(parts)
    assert driver["serviceAccountName"] == parts["ServiceAccount"]["metadata"]["name"]
    assert driver["containers"][0]["image"] == given["spark.kubernetes.container.image"]
    mounted = {one["name"]: one["mountPath"] for one in driver["containers"][0]["volumeMounts"]}
    file = given["spark.kubernetes.executor.podTemplateFile"]
    assert file == f"{mounted['settings']}/executor.yaml"


def test_the_image_has_the_release_of_spark_that_is_locked() -> None:
    image = (MANIFEST.parent / "Dockerfile").read_text()
    (release,) = re.findall(r"^FROM apache/spark:([\d.]+)-", image, re.MULTILINE)
    assert f"pyspark=={release}" in (ROOT / "requirements.lock").read_text()
