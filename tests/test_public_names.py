"""Completion shows what there is."""

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
