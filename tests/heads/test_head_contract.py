"""Every registered head in every form of a model; one without a case fails."""

import pathlib

import keras
import numpy as np
import pytest
from harness import assert_close, largest_difference
from toy_texts import reviews, tiny_model

import keras_recbert
from keras_recbert.core.names import UnknownNameError
from keras_recbert.heads import Head, get_head, list_heads, register_head
from keras_recbert.heads import head as module

TEXTS, IDS = reviews()
NAMES = ["good", "long", "never"]
# Of each task: arguments of `build`, labels that `fit` takes, shape of the logits.
CASES = {
    "classifier": ({"num_classes": 3}, [i % 3 for i in range(len(TEXTS))], (3,)),
    "regressor": ({}, [0.5 * i for i in IDS], ()),
    "multilabel_classifier": (
        {"label_names": NAMES},
        [[], ["good"], ["never", "good"], ["long"]],
        (3,),
    ),
}


def labels_of(task):
    """As many as there are texts."""
    labels = CASES[task][1]
    return [labels[index % len(labels)] for index in range(len(TEXTS))]


def test_every_head_has_a_case():
    """Those that read other fields have a file of tests: tests/tasks/test_TASK.py."""
    others = {t for t in list_heads() if get_head(t).packer != "TextPreprocessor"}
    assert set(list_heads()) - others == set(CASES)
    tests = pathlib.Path(__file__).parents[1] / "tasks"
    for task in others:
        assert (tests / f"test_{task}.py").is_file(), task


@pytest.mark.parametrize("task", CASES)
def test_a_head_in_every_form_of_a_model(task, tmp_path):
    arguments, _, shape = CASES[task]
    labels = labels_of(task)
    model = tiny_model(task=task, **arguments)
    before = model.head.dense.kernel.numpy()
    history = model.fit(TEXTS, labels, epochs=2, verbose=0).history
    assert history["loss"][1] < history["loss"][0]
    assert largest_difference(model.head.dense.kernel, before) > 1e-5
    logits = model.predict(TEXTS, verbose=0)
    assert logits.shape == (len(TEXTS), *shape) and logits.dtype == "float32"
    targets = model.head.as_targets(labels)
    loss = model.evaluate(TEXTS, labels, verbose=0, return_dict=True)["loss"]
    assert float(model.head.loss()(targets, logits)) == pytest.approx(loss, abs=1e-5)
    scores = model.head.scores(model.head.metric_names, targets, logits)
    assert list(scores) == list(model.head.metric_names)
    assert all(-1 <= score <= 1 for score in scores.values())

    model.save(tmp_path / "model.keras")
    model.save_preset(tmp_path / "preset")
    for path in ("model.keras", "preset"):
        again = keras_recbert.load(tmp_path / path)
        assert type(again) is type(model)
        assert again.head.get_config() == model.head.get_config()
        np.testing.assert_array_equal(again.predict(TEXTS, verbose=0), logits)

    model.export_savedmodel(tmp_path / "served")
    signature = __import__("tensorflow").saved_model.load(str(tmp_path / "served"))
    served = signature.signatures["serving_default"](text=np.array(TEXTS, "S"))
    expected = model.answer(keras.ops.convert_to_tensor(logits))
    assert set(served) == set(expected)
    for name, value in expected.items():
        assert value.shape[0] == len(TEXTS)
        if value.dtype.is_floating:
            assert_close(served[name], value, 1e-5, name)
        else:
            assert np.array_equal(served[name].numpy(), value.numpy())


def test_a_task_that_nobody_registered_is_refused():
    with pytest.raises(ValueError, match="Did you mean 'classifier'"):
        tiny_model(task="clasifier")
    with pytest.raises(ValueError, match="needs `label_names`.*label_names=..., as"):
        tiny_model(task="multilabel_classifier")
    with pytest.raises(ValueError, match="needs other arguments .*not iterable"):
        tiny_model(task="multilabel_classifier", label_names=3)
    with pytest.raises(ValueError, match="'label_name'.*Did you mean 'label_names'"):
        tiny_model(task="multilabel_classifier", label_name=NAMES)
    with pytest.raises(UnknownNameError, match="No task is called 'mine'"):
        get_head("mine")
    encoder = keras_recbert.build("swish_tiny", num_layers=1, hidden_dim=16)
    for head in (None, [NAMES], 7):
        with pytest.raises(ValueError, match="`head` must be a keras_recbert.heads"):
            keras_recbert.tasks.TextModel(encoder, None, head)


def test_a_task_is_taken_once():
    for name in ("regressor", "pretrainer", None):
        with pytest.raises(ValueError, match="A task needs a name of its own"):

            @register_head
            class Mine(Head):
                task = name


def test_a_preset_with_a_head_of_ones_own_says_what_to_import(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(module._HEADS, "entries", dict(module._HEADS.entries))
        module._HEADS.add("mine", get_head("multilabel_classifier"))
        patch.setattr(get_head("multilabel_classifier"), "task", "mine")
        tiny_model(task="mine", label_names=NAMES).save_preset(tmp_path / "preset")
    with pytest.raises(ValueError, match="import the module that adds it"):
        keras_recbert.load(tmp_path / "preset")
