"""What tests of serving share."""

import pytest
from savedmodels import Written


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    made = {}

    def get(case):
        if case not in made:
            made[case] = Written(case, tmp_path_factory.mktemp("savedmodel"))
        return made[case]

    return get
