"""What runs without `-m`, and with it."""

import pathlib
import runpy
import shutil
import subprocess
import sys

import pytest

TESTS = """
import pytest

def test_plain(): pass

@pytest.mark.slow
def test_slow(): pass

@pytest.mark.benchmark
def test_benchmark(): pass

@pytest.mark.gpu
def test_gpu(): pass

@pytest.mark.gpu
@pytest.mark.benchmark
def test_both(): pass

def test_data(data_dir): pass
"""


@pytest.fixture
def run_pytest(tmp_path, monkeypatch):
    shutil.copy(pathlib.Path(__file__).with_name("conftest.py"), tmp_path)
    (tmp_path / "test_some.py").write_text(TESTS)
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)

    def run(*arguments):
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-rA", "--strict-markers", *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    return run


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        (None, {"plain", "slow"}),
        ("not slow", {"plain"}),
        ("slow", {"slow"}),
        ("gpu", {"gpu"}),
        ("benchmark", {"benchmark"}),
        ("gpu and benchmark", {"both"}),
        ("not benchmark", {"plain", "slow"}),
    ],
)
def test_benchmarks_and_gpu_tests_run_on_request(run_pytest, expression, names):
    output = run_pytest(*(["-m", expression] if expression else []))
    passed = {
        line.split("test_")[-1] for line in output.split("\n") if "PASSED" in line
    }
    assert passed - {"data"} == names


def test_files_that_come_first_are_there():
    folder = pathlib.Path(__file__).parent
    names = runpy.run_path(str(folder / "conftest.py"))["LONGEST_FIRST"]
    assert names and all((folder / name).is_file() for name in names)


def test_missing_data_is_skipped_with_the_way_out(run_pytest, monkeypatch, tmp_path):
    monkeypatch.delenv("RECBERT_DATA_DIR", raising=False)
    assert "needs real data: set RECBERT_DATA_DIR to a folder" in run_pytest()
    monkeypatch.setenv("RECBERT_DATA_DIR", str(tmp_path / "nowhere"))
    assert "nowhere is no folder" in run_pytest()
    monkeypatch.setenv("RECBERT_DATA_DIR", str(tmp_path))
    assert "PASSED test_some.py::test_data" in run_pytest()
