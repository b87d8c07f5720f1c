import functools

import pytest
from saved_kinds import KINDS


@pytest.fixture(scope="session")
def preset_of(tmp_path_factory):
    """A function from a name of `KINDS` to the path of its preset, written once."""
    folder = tmp_path_factory.mktemp("kinds")

    @functools.cache
    def preset_of(kind):
        KINDS[kind]().save_preset(folder / kind)
        return folder / kind

    return preset_of
