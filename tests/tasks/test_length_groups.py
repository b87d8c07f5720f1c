"""Rows computed with others of their length: the same answers, less padding."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from harness import assert_close, largest_difference, token_batch
from toy_texts import VOCABULARY, tiny_model

from keras_recbert.tasks import length_groups
from keras_recbert.tasks.length_groups import call_by_length

LENGTHS = (3, 19, 2, 5, 23, 2, 3)
ROW = {"classifier": (None, 2), "token_classifier": (None, None, 3)}
ROW["question_answering"] = (None, 2, None)


def rows(lengths=LENGTHS, longest=23):
    batch = token_batch(lengths, longest)
    batch["token_ids"] %= len(VOCABULARY)
    return {name: tf.constant(ids) for name, ids in batch.items()}


@pytest.fixture
def small_groups(monkeypatch):
    monkeypatch.setattr(length_groups, "TOKENS", 12)


class Spy:
    """A model that notes the shape of what it is called with."""

    def __init__(self, model):
        self.model, self.output, self.shapes = model, model.output, []

    def __call__(self, features, training):
        assert not training
        shape = tf.shape(features["token_ids"])
        tf.py_function(lambda s: self.shapes.append(tuple(s.numpy())), [shape], [])
        return self.model(features)


def traced(model, max_length=32):
    spec = {k: tf.TensorSpec([None, None], tf.int32, k) for k in rows()}

    def call(features):
        return call_by_length(model, features, max_length)

    return tf.function(call, [spec], autograph=False)


@pytest.mark.parametrize("task", ROW)
@pytest.mark.parametrize("name", ["bert_tiny", "swish_tiny", "trans_blstm_tiny"])
def test_outputs_are_those_of_one_call(name, task, small_groups):
    names = {"label_names": ["a", "b", "c"]} if task == "token_classifier" else {}
    model = tiny_model(name, task=task, **names)
    batch = rows()
    logits = traced(model)(batch)
    expected = model(batch, training=False)
    is_token = np.ones(np.shape(expected), bool)
    if None in ROW[task][1:]:
        axis = ROW[task].index(None, 1)
        mask = batch["padding_mask"].numpy().astype(bool)
        is_token = is_token & np.expand_dims(mask, 3 - axis)
    assert logits.shape == expected.shape
    assert_close(np.where(is_token, logits, 0), np.where(is_token, expected, 0), 1e-5)
    assert largest_difference(logits[0], logits[4]) > 1e-3


def test_outputs_of_several_heads_keep_their_names(small_groups):
    model = tiny_model(task={"tone": "classifier", "stars": "regressor"})
    batch = rows()
    logits, expected = traced(model)(batch), model(batch, training=False)
    assert set(logits) == {"tone", "stars"}
    for head, values in expected.items():
        assert_close(logits[head], values, 1e-5, head)


def test_rows_are_computed_among_others_of_their_length(small_groups):
    spy = Spy(tiny_model(task="classifier"))
    logits = traced(spy)(rows())
    # 57 tokens of 7 rows: 12 tokens are 1 row. Lengths are multiples of 4.
    assert [length for _, length in spy.shapes] == [4, 4, 4, 4, 8, 20, 24]
    assert_close(logits, spy.model(rows(), training=False))


def test_few_rows_make_few_groups():
    spy = Spy(tiny_model(task="classifier"))
    traced(spy)(rows())
    assert spy.shapes == [(4, 4), (3, 24)]


@pytest.mark.parametrize("task", ROW)
def test_a_row_is_no_longer_than_the_model_takes(task, small_groups):
    names = {"label_names": ["a", "b", "c"]} if task == "token_classifier" else {}
    model = tiny_model(task=task, max_sequence_length=23, **names)
    spy = Spy(model)
    logits = traced(spy, model.encoder.max_sequence_length)(rows())
    assert [length for _, length in spy.shapes] == [4, 4, 4, 4, 8, 20, 23]
    assert logits.shape == model(rows(), training=False).shape


def test_rows_of_like_length_are_one_group(small_groups):
    spy = Spy(tiny_model(task="classifier"))
    batch = rows((9, 10, 8, 10), 10)
    traced(spy)(batch)
    assert spy.shapes == [(4, 12)]


def test_groups_have_few_shapes():
    spy = Spy(tiny_model(task="classifier", max_sequence_length=100))
    call = traced(spy, 100)
    for number, longest in ((11, 10), (37, 12), (3, 65), (1, 97)):
        batch = rows([longest - row % 2 for row in range(number)], longest)
        assert_close(call(batch), spy.model(batch, training=False))
    assert spy.shapes == [
        (8, 12),
        (3, 12),
        (32, 12),
        (4, 12),
        (1, 12),
        (3, 68),
        (1, 100),
    ]


def test_rows_of_a_fixed_length_stay_together(small_groups):
    spy = Spy(tiny_model(task="classifier"))
    call_by_length(spy, rows(), 32)  # their length is known
    assert spy.shapes == [(len(LENGTHS), 23)]


@pytest.mark.parametrize("lengths", [(), (7,), (0, 3, 1)])
def test_no_row_one_row_and_an_empty_one(lengths, small_groups):
    model = tiny_model(task="classifier")
    batch = rows(lengths, 7)
    logits = traced(model)(batch)
    assert_close(logits, model(batch, training=False))


def test_texts_in_any_order_have_the_same_answers(tmp_path, small_groups):
    model = tiny_model(task="classifier")
    texts = ["a film", "a bad film " * 6, "", "good", "the good film " * 3]
    model.export_savedmodel(tmp_path / "served")
    loaded = tf.saved_model.load(str(tmp_path / "served"))
    served = loaded.signatures["serving_default"]
    scores = served(text=tf.constant(texts))["scores"]
    expected = keras.ops.softmax(model.predict(texts, verbose=0))
    assert_close(scores, expected)
    backwards = served(text=tf.constant(texts[::-1]))["scores"]
    assert_close(scores, backwards[::-1])
    assert largest_difference(scores[0], scores[1]) > 1e-3
