import pathlib

import pytest

from keras_recbert.hub.names import HubName, is_hub_name, parse_hub_name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hf://jane/films", HubName("hf", "jane/films")),
        ("hf://jane/films@v1.0", HubName("hf", "jane/films", "v1.0")),
        ("hf://jane/films@refs/pr/1", HubName("hf", "jane/films", "refs/pr/1")),
        ("kaggle://jane/films/keras/tiny", HubName("kaggle", "jane/films/keras/tiny")),
        (
            "kaggle://jane/films/keras/tiny/3",
            HubName("kaggle", "jane/films/keras/tiny", "3"),
        ),
    ],
)
def test_names_are_read_and_written(text, expected):
    assert is_hub_name(text)
    assert is_hub_name(pathlib.Path(text))  # which makes one slash of two
    assert parse_hub_name(text) == parse_hub_name(pathlib.Path(text)) == expected
    assert str(expected) == text


@pytest.mark.parametrize(
    "text",
    [
        "hf://films",
        "hf://jane/films/preset",
        "hf://jane/fi lms",
        "hf://jane/../films",
        "hf://jane/films@",
        "hf://jane/a--b",
        "kaggle://jane/films",
        "kaggle://jane/films/keras/tiny/newest",
        "kaggle://jane/films/keras/tiny@3",
    ],
)
def test_what_names_no_model_says_how_one_is_named(text):
    with pytest.raises(ValueError, match=r"is named (hf|kaggle)://.*Received: '") as e:
        parse_hub_name(text)
    assert repr(text) in str(e.value)


@pytest.mark.parametrize("path", ["hf", "./hf:/a", "bert", None, 3, "s3://a/b"])
def test_other_paths_are_no_names(path):
    assert not is_hub_name(path)
