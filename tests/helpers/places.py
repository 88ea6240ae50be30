"""Paths in the repository, for tests that run scripts and examples."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
EXAMPLES = ROOT / "examples"
HELPERS = ROOT / "tests" / "helpers"
