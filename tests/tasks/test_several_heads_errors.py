"""A model with several heads: wrong input."""

import numpy as np
import pytest
from two_heads import (
    HAS_STARS,
    HEADS,
    IDS,
    LABELS,
    NAMES,
    QUIET,
    STARS,
    TEXTS,
    WEIGHTS,
    make,
    named_model,
    slices,
)

from keras_recbert.heads import Head, NamedHeads, head, register_head
from keras_recbert.text.packers import get_packer


@pytest.fixture(scope="module")
def model():
    """Tests leave it as it is."""
    return named_model()


@pytest.mark.parametrize(
    ("heads", "message"),
    [
        ({}, "A model needs a head. Received: an empty dict"),
        ({"tone": "clasifier"}, "'clasifier'. Did you mean 'classifier'"),
        ({"tone": "pretrainer"}, "No task is called 'pretrainer'"),
        ({"tone": 2}, "Head 'tone' must be the name of a task.*Received: 2"),
        ({"tone": {"label_names": ["a", "b"]}}, "Head 'tone' must be .*`task`"),
        (
            {"tone": {"task": "classifier", "label_name": ["a"]}},
            "'label_name'.*Did you mean 'label_names'",
        ),
        ({"tone": {"task": "multilabel_classifier"}}, "needs `label_names`"),
        ({"tone": {"task": "classifier", "pooling": "max"}}, "`pooling` must be one"),
        (
            {"tone": {"task": "classifier", "layer": 2}},
            "or .all.. Received: layer=2",
        ),
        *(
            ({name: "regressor"}, f"must be an identifier.*Received: {name!r}")
            for name in ("a b", "1st", "", "_x", "gr\u00fcn", 3, "val", "val_tone")
        ),
        *(
            ({name: "regressor"}, f"none of .*{name}.*Received: {name!r}")
            for name in ("ids", "serving_default", "task")
        ),
    ],
)
def test_impossible_heads_are_refused(heads, message):
    with pytest.raises(ValueError, match=message):
        make(heads)


def test_arguments_of_a_head_stand_with_the_head():
    message = r"TextModel \(beside `task`, its heads\) takes no argument 'num_classes'"
    with pytest.raises(ValueError, match=message):
        make(num_classes=3)


def test_heads_share_one_packer(monkeypatch):
    monkeypatch.setattr(head._HEADS, "entries", dict(head._HEADS.entries))

    @register_head
    class Questions(Head):
        task, packer = "questions", "QuestionPacker"

        def __init__(self):
            super().__init__(2)

    message = "share one packer. Received: tone: TextPreprocessor, asked: Question"
    with pytest.raises(ValueError, match=message):
        make({"tone": "classifier", "asked": "questions"})
    assert get_packer(NamedHeads(HEADS).packer).__name__ == "TextPreprocessor"


def test_one_head_has_one_name():
    shared = head.make_head("regressor", {})
    with pytest.raises(ValueError, match="a head of its own.*names a, b"):
        NamedHeads({"a": shared, "b": shared})


LACKING = {"tone": NAMES}


@pytest.mark.parametrize(
    ("labels", "weights", "message"),
    [
        (NAMES, None, "`y` must be a dict by the names of the heads, tone, stars"),
        ([NAMES, STARS], None, "must be a dict.*Received: a list"),
        (None, None, "a dict of them by head. Received: None"),
        (LACKING, None, "Missing: stars.*weight 0 in `sample_weight`"),
        ({**LABELS, "stars": None}, None, "Missing: stars"),
        ({**LABELS, "star": STARS}, None, "no head.*'star'. Did you mean 'stars'"),
        ({**LABELS, "stars": STARS[:5]}, None, "same number.*tone: 13, stars: 5"),
        ({"tone": NAMES[:5], "stars": STARS[:5]}, None, "13 texts, 5 labels"),
        ({**LABELS, "stars": STARS * np.nan}, None, "Labels of the head 'stars'.*nan"),
        ({**LABELS, "tone": ["poor"] * 13}, None, "Labels of the head 'tone'.*'poor'"),
        (LABELS, {"stars": HAS_STARS}, "`sample_weight` must have.*Missing: tone"),
        (LABELS, {**WEIGHTS, "tone": [1.0]}, "13 texts, 1 labels"),
    ],
)
def test_labels_and_weights_of_each_head_are_checked(model, labels, weights, message):
    with pytest.raises(ValueError, match=message):
        model.fit(TEXTS, labels, sample_weight=weights, **QUIET)


@pytest.mark.parametrize(
    ("elements", "message"),
    [
        ((TEXTS, STARS), "`y` must be a dict by the names"),
        ((TEXTS, {"stars": STARS}), "`y` must have an entry.*Missing: tone"),
        ((TEXTS, IDS, {"stars": HAS_STARS}), "`sample_weight` must.*Missing: tone"),
        ((TEXTS, LABELS), "with numbers as labels"),
    ],
)
def test_datasets_must_have_labels_of_each_head(model, elements, message):
    for call in (model.fit, model.evaluate):
        with pytest.raises(ValueError, match=message):
            call(slices(*elements), **QUIET)


def test_answers_of_one_name_are_refused(tmp_path):
    several = {"task": "multilabel_classifier", "label_names": ["long"]}
    model = make({"is": several, "is_has": "classifier"})  # is_has_label of both
    with pytest.raises(ValueError, match="two of the heads is, is_has give is_has_l"):
        model.export_savedmodel(tmp_path / "served")
    assert not list(tmp_path.iterdir())


def test_hugging_face_has_no_such_model(model, tmp_path):
    with pytest.raises(ValueError, match="task={'tone': 'classifier', 'stars'"):
        model.save_huggingface(tmp_path / "folder")
