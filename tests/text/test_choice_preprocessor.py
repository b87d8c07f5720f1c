"""Texts with choices against pairs that are packed one by one."""

import numpy as np
import pytest
import tensorflow as tf
from toy_texts import VOCABULARY

from keras_recbert.text.choice_preprocessor import ChoicePreprocessor
from keras_recbert.text.text_preprocessor import TextPreprocessor
from keras_recbert.text.wordpiece_tokenizer import WordPieceTokenizer

pytestmark = pytest.mark.usefixtures("pack_op_by_op")

TOKENIZER = WordPieceTokenizer(VOCABULARY)
TEXTS = ["a film with actors", "", "very " * 9]
CHOICES = [
    ["good", "bad music and story"],
    ["dull.", "fine film", "warm", "films!"],
    ["cold " * 7, "a", "very good"],
]


@pytest.mark.parametrize("arguments", [{}, {"sequence_length": 11}])
@pytest.mark.parametrize("truncation", ["longest_first", "only_first"])
def test_each_choice_is_a_row_as_of_a_pair(arguments, truncation):
    arguments = {**arguments, "truncation": truncation, "max_sequence_length": 13}
    packed = ChoicePreprocessor(TOKENIZER, **arguments)((TEXTS, CHOICES))
    pairs = TextPreprocessor(TOKENIZER, **arguments)
    for name, found in packed.items():
        assert found.dtype == tf.int32
        length = arguments.get("sequence_length", 13)
        assert found.shape == (3, 4, length)
        padding = TOKENIZER.pad_id if name == "token_ids" else 0
        for index, choices in enumerate(CHOICES):
            for number, choice in enumerate(choices):
                row = pairs(([TEXTS[index]], [choice]))[name][0].numpy()
                row = np.pad(row, [0, length - len(row)], constant_values=padding)
                assert found[index, number].numpy().tolist() == row.tolist()
            assert np.all(found[index, len(choices) :] == padding)


@pytest.mark.usefixtures("graphs")
def test_a_column_of_lists_in_every_form():
    packer = ChoicePreprocessor(TOKENIZER)
    expected = packer((TEXTS, CHOICES))
    dense = tf.ragged.constant(CHOICES).to_tensor("", shape=[None, 6])
    array = np.empty(3, object)
    array[:] = CHOICES
    for choices in (
        tf.ragged.constant(CHOICES),
        tf.ragged.constant(CHOICES, row_splits_dtype="int32"),
        dense,
        dense.numpy(),
        dense.numpy().astype(str),
        array,
        [tuple(one) for one in CHOICES],
    ):
        found = packer(packer.columns({"text": TEXTS, "choices": choices}))
        for name in expected:
            assert np.array_equal(found[name], expected[name])
    graph = tf.function(lambda *columns: packer(columns))
    found = graph(tf.constant(TEXTS), dense)
    assert np.array_equal(found["token_ids"], expected["token_ids"])


def test_no_example():
    packed = ChoicePreprocessor(TOKENIZER)(([], []))
    assert packed["token_ids"].shape == (0, 0, 1)


def refused(choices, texts=TEXTS):
    with pytest.raises((TypeError, ValueError)) as error:
        ChoicePreprocessor(TOKENIZER).columns({"text": texts, "choices": choices})
    return str(error.value)


def test_examples_without_choices_are_refused():
    few = refused([*CHOICES[:2], ["only"]])
    assert "at least two choices. Received: [b'only'] at index 2" in few
    assert "at index 1" in refused([CHOICES[0], [], CHOICES[2]])
    for choices in (["a", "", "b"], ["a", "b", ""]):
        empty = refused([CHOICES[0], choices, CHOICES[2]])
        assert f"must hold no empty string. Received {choices} at index 1" in empty
    empty = refused(tf.constant([["a", "b", ""], ["a", "", "b"], ["a", "b", "good"]]))
    assert "must not be empty. Received: [b'a', b'', b'b'] at index 1" in empty
    missing = refused([*CHOICES[:2], ["a", None]])
    assert "Received None of type NoneType at index 2, at place 1" in missing
    flat = refused(["good", "bad", "dull"])
    assert "a list of strings for each example. Received 'good' of type str" in flat
    assert "a list of strings for each example. Received: 7" in refused(7)
    assert "3 and 2 texts" in refused(CHOICES[:2])
    assert "Received shape (3,)" in refused(tf.constant(["a", "b", "c"]))
    assert "dtype int32" in refused(tf.constant([[1, 2]] * 3))
    with pytest.raises(ValueError, match="fields 'text', 'choices'. Received: 'text'"):
        ChoicePreprocessor(TOKENIZER)({"text": TEXTS})


@pytest.mark.usefixtures("graphs")
def test_a_graph_refuses_them_too():
    packer = ChoicePreprocessor(TOKENIZER)
    graph = tf.function(lambda *columns: packer(columns))
    for choices in ([["a"]], [["", "a"]]):
        with pytest.raises(tf.errors.InvalidArgumentError, match="two choices, none"):
            graph(tf.constant(["film"]), tf.constant(choices))
