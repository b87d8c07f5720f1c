"""The tree passes its own lint settings."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]


@pytest.mark.parametrize("arguments", [["check"], ["format", "--check"]])
def test_ruff_finds_nothing(arguments):
    result = subprocess.run(
        [sys.executable, "-m", "ruff", *arguments, "."],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout
