"""The masked LM head, and vectors concatenated to tokens."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from harness import assert_close, randomize
from reference.numbers import gelu, layer_norm

from keras_recbert.layers import BertEmbeddings, ConcatenateSentence, MaskedLMHead

RNG = np.random.default_rng(0)
INPUTS = RNG.normal(size=(3, 7, 5)).astype("float32")
POSITIONS = np.array([[6, 0, 3, 3], [2, 5, 0, 0], [1, 0, 0, 0]], "int32")
IDS = RNG.integers(0, 13, (3, 7)).astype("int32")


def make_embeddings(**kwargs):
    layer = BertEmbeddings(13, 6, max_sequence_length=9, dropout=0.0, **kwargs)
    layer.build((None, None))
    return layer


def tied_pair(**kwargs):
    """Embeddings, and a head that shares their table."""
    embeddings = make_embeddings(**kwargs)
    head = MaskedLMHead(13, 6, embeddings.token_embedding, **kwargs)
    head.build((None, None, 5), (None, None))
    randomize(embeddings)
    randomize(head, seed=1)
    return embeddings, head


def test_logits_are_those_of_the_equation():
    embeddings, head = tied_pair()
    table = embeddings.token_embedding.embeddings
    weights = (head.dense.kernel, head.dense.bias, head.norm.gamma, head.norm.beta)
    w, b, gamma, beta, e, c = (
        np.asarray(weight, "float64") for weight in (*weights, table, head.bias)
    )
    expected = np.empty((3, 4, 13))
    for row in range(3):
        for index, position in enumerate(POSITIONS[row]):
            x = gelu(INPUTS[row, position].astype("float64") @ w + b)
            expected[row, index] = e @ layer_norm(x, gamma, beta) + c
    assert_close(head(INPUTS, POSITIONS), expected, 1e-5)
    trained = head(INPUTS, POSITIONS, training=True)  # the GELU is another op there
    assert_close(trained, expected, 1e-5)


def test_quantized_table_is_read_with_its_scales():
    embeddings, head = tied_pair()
    expected = head(INPUTS, POSITIONS)
    embeddings.token_embedding.quantize("int8")
    assert_close(head(INPUTS, POSITIONS), expected, 0.01 * np.abs(expected).max())


def test_only_gathered_positions_reach_a_product():
    _, head = tied_pair()
    inputs = INPUTS.copy()
    unused = np.ones((3, 7), "bool")
    np.put_along_axis(unused, POSITIONS, False, axis=1)
    inputs[unused] = np.nan
    assert_close(head(inputs, POSITIONS), head(INPUTS, POSITIONS), 0.0)

    concrete = tf.function(head).get_concrete_function(
        tf.TensorSpec((3, 7, 5)), tf.TensorSpec((3, 4), "int32")
    )
    products = [op for op in concrete.graph.get_operations() if op.type == "MatMul"]
    assert [op.inputs[0].shape[0] for op in products] == [12, 12]  # 3 rows of 4


def test_table_is_one_variable_that_learns_from_both_sides():
    embeddings, head = tied_pair()
    table = embeddings.token_embedding.embeddings
    assert any(weight is table for weight in head.trainable_weights)
    segment_ids = np.zeros_like(IDS)

    def table_gradient(stop_inputs, stop_head):
        with tf.GradientTape() as tape:
            hidden = embeddings(IDS, segment_ids)[..., :5]
            hidden = tf.stop_gradient(hidden) if stop_inputs else hidden
            logits = head(hidden, POSITIONS)
            if stop_head:  # the product with a copy of the table
                x = head.norm(head.dense(tf.gather(hidden, POSITIONS, batch_dims=1)))
                logits = x @ tf.constant(table.numpy().T) + head.bias
            loss = tf.reduce_sum(tf.nn.log_softmax(logits)[..., 3])
        gradient = tape.gradient(loss, table.value)
        return None if gradient is None else tf.convert_to_tensor(gradient).numpy()

    both = table_gradient(False, False)
    by_embedding, by_product = table_gradient(False, True), table_gradient(True, False)
    assert table_gradient(True, True) is None
    assert np.abs(by_embedding).max() > 1e-3
    assert np.abs(by_product).max() > 1e-3
    assert_close(both, by_embedding + by_product, 1e-5)


def test_tie_survives_a_saved_functional_model(tmp_path):
    ids = keras.Input((None,), dtype="int32", name="ids")
    positions = keras.Input((None,), dtype="int32", name="positions")
    table = keras.layers.Embedding(13, 6, name="table")
    head = MaskedLMHead(13, 6, table, name="head")
    model = keras.Model([ids, positions], head(table(ids), positions))
    randomize(model)
    assert model.count_params() == 13 * 6 + 6 * 6 + 6 + 2 * 6 + 13
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.count_params() == model.count_params()
    assert loaded.get_layer("head").token_embedding is loaded.get_layer("table")
    inputs = [IDS, POSITIONS]
    assert_close(loaded(inputs), model(inputs), 0.0)


def test_bfloat16_product_gives_float32_logits():
    embeddings, head = tied_pair(dtype="mixed_bfloat16")
    concrete = tf.function(head).get_concrete_function(
        tf.TensorSpec((3, 7, 5), "bfloat16"), tf.TensorSpec((3, 4), "int32")
    )
    products = [op for op in concrete.graph.get_operations() if op.type == "MatMul"]
    assert {op.outputs[0].dtype for op in products} == {tf.bfloat16}
    logits = head(INPUTS, POSITIONS)
    assert logits.dtype == "float32"
    symbols = keras.Input((7, 5)), keras.Input((4,), dtype="int32")
    assert head(*symbols).dtype == "float32"
    # The bias is added in float32: bfloat16 would round it off.
    head.bias.assign(head.bias.numpy() + 1e-4)
    assert_close(head(INPUTS, POSITIONS) - logits, np.full((3, 4, 13), 1e-4), 2e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"vocabulary_size": 0}, "`vocabulary_size` must be a whole number of at leas"),
        ({"hidden_dim": 1.5}, "`hidden_dim` must be a whole number.*hidden_dim=1.5"),
        ({"implementation": "fast"}, "`implementation` must be one of"),
        (
            {"vocabulary_size": 12},
            "a row of `hidden_dim` numbers for each word piece. Received: a table of "
            "13 times 6, vocabulary_size=12, hidden_dim=6.",
        ),
    ],
)
def test_impossible_heads(arguments, message):
    table = make_embeddings().token_embedding
    with pytest.raises(ValueError, match=message):
        MaskedLMHead(
            **{
                "vocabulary_size": 13,
                "hidden_dim": 6,
                "token_embedding": table,
                **arguments,
            }
        )


def test_sentence_stands_behind_each_token():
    sentence = RNG.normal(size=(3, 2)).astype("float32")
    outputs = ConcatenateSentence()(INPUTS, sentence).numpy()
    np.testing.assert_array_equal(outputs[..., :5], INPUTS)
    for position in range(7):
        np.testing.assert_array_equal(outputs[:, position, 5:], sentence)
