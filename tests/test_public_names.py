"""Completion shows what there is."""

import inspect
import subprocess
import sys

import pytest

import keras_recbert


def test_dir_shows_every_public_name():
    assert set(dir(keras_recbert)) == {*keras_recbert.__all__, "__version__"}
    for name in dir(keras_recbert):
        assert hasattr(keras_recbert, name)


@pytest.mark.parametrize("part", ["layers", "tasks", "text"])
def test_dir_of_a_part_shows_every_public_name(part):
    module = getattr(keras_recbert, part)
    assert dir(module) == sorted(module.__all__)
    for name in dir(module):
        assert getattr(module, name).__name__ == name


def test_runs_from_python_complete_and_check_their_options():
    parameters = inspect.signature(keras_recbert.pretrain).parameters
    assert {"corpus", "model", "steps"} <= parameters.keys()
    with pytest.raises(ValueError, match="stepz.*Did you mean 'steps'"):
        keras_recbert.pretrain(stepz=10)
    with pytest.raises(ValueError, match="Pass corpus=DIR"):
        keras_recbert.pretrain()


def test_a_clone_in_the_folder_of_a_script_is_not_taken_for_the_package(tmp_path):
    (tmp_path / "keras_recbert").mkdir()  # as `git clone` makes it
    script = tmp_path / "script.py"
    script.write_text("import keras_recbert\nprint(keras_recbert.__version__)\n")
    said = subprocess.check_output([sys.executable, script], cwd=tmp_path, text=True)
    assert said.strip() == keras_recbert.__version__
