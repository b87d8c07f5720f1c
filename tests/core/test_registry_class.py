"""Things by name."""

import pytest

from keras_recbert.core.names import UnknownNameError
from keras_recbert.core.registry import Registry


def test_names_are_found_in_any_spelling_and_kept_as_given():
    registry = Registry("task", reserved=["mine"], spelling=str.lower)
    for name in ("SST", "Rte", "stsb"):
        registry.add(name, name.encode())
    assert registry["sst"] == registry["SST"] == b"SST"
    assert "rTE" in registry
    assert "mine" not in registry
    assert registry.names() == ["SST", "Rte", "stsb"]
    assert registry.names("*[sS][tT]*") == ["SST", "stsb"]


@pytest.mark.parametrize("name", ["sst", "MINE", "", None])
def test_a_name_is_taken_once(name):
    registry = Registry("task", reserved=["mine"], spelling=lambda n: str(n).lower())
    registry.add("SST", 1)
    message = f"A task needs a name of its own. Received: {name!r}. Taken: SST, mine."
    with pytest.raises(ValueError, match=message):
        registry.add(name, 2)
    assert registry.names() == ["SST"]


def test_an_unknown_name_is_told_with_the_nearest():
    registry = Registry("head")
    registry.add("classifier", 1)
    registry.add("qqp", 1)
    with pytest.raises(UnknownNameError) as caught:
        registry["clasifier"]
    assert str(caught.value) == (
        "No head is called 'clasifier'. Did you mean 'classifier'? Valid: classifier, "
        "qqp."
    )
    with pytest.raises(UnknownNameError, match="^No model is called 7. See the list.$"):
        Registry("model", hint="See the list.")[7]
