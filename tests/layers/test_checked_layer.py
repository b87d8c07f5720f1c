"""Masks as Keras passes them, and shapes of calls: what is not layer by layer."""

import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf
from harness import assert_close, build_shrunk, ragged_mask, randomize, token_batch

from keras_recbert import layers
from keras_recbert.models.gradient_checkpointing import checkpoint_gradients

RNG = np.random.default_rng(0)
IDS = RNG.integers(1, 9, (3, 7)) * ragged_mask((4, 7, 1), 7)
WITH_HOLES = np.array([[1, 0, 1, 1, 0, 0, 1], [0, 1, 1, 0, 1, 0, 0]])


@pytest.fixture(autouse=True)
def fixed_weights():
    keras.utils.set_random_seed(0)
    with warnings.catch_warnings():
        # Keras's, of a layer that drops a mask.
        warnings.filterwarnings("error", message=".*does not support masking.*")
        yield


def embedding(dim=12):
    return keras.layers.Embedding(9, dim, mask_zero=True)


@pytest.mark.parametrize(
    "layer",
    [
        layers.BidirectionalLSTM(5),
        layers.SwishRNN(20),
        layers.SelfAttention(3),
        layers.TransBLSTMBlock(3, 5, 20),
        layers.MeanPooling(),
    ],
    ids=lambda layer: layer.name,
)
def test_zeros_in_the_middle_of_a_row_change_nothing_at_the_others(layer):
    x = RNG.normal(size=(2, 7, 12)).astype("float32")
    layer(x)
    randomize(layer)
    outputs = layer(x, mask=tf.constant(WITH_HOLES == 1))
    for row, real in enumerate(WITH_HOLES == 1):
        alone = layer(x[row : row + 1, real])[0]
        found = outputs[row] if outputs.ndim == 2 else outputs[row].numpy()[real]
        assert_close(found, alone)


def test_swish_rnn_counts_masked_positions_in_its_step():
    """c[3] reads c[1], which is masked and carries c[-1] = 0: as if it stood first."""
    layer = layers.SwishRNN(20, step_size=2)
    x = RNG.normal(size=(1, 4, 12)).astype("float32")
    layer(x)
    randomize(layer)
    outputs = layer(x, mask=tf.constant([[True, False, True, True]]))
    assert_close(outputs[:, 3], layer(x[:, 3:])[:, 0])
    plain = layers.SwishRNN.from_config({**layer.get_config(), "step_size": 1})
    plain(x)
    plain.set_weights(layer.get_weights())
    assert_close(outputs[:, 2], plain(x[:, 0:3:2])[:, 1])


def test_mask_passes_through_other_layers_of_keras_and_ours():
    """As in a tagger: what pads a row changes neither outputs nor the loss."""
    stack = [
        embedding(),
        keras.layers.Dropout(0.1),
        layers.SwishRNNBlock(3, 20),
        keras.layers.Dense(12, "tanh"),
        layers.FeedForward(20),
        layers.Dropout(0.1),
        layers.Dense(8, activation="gelu"),
        layers.BidirectionalLSTM(5),
        keras.layers.LSTM(4),
    ]
    model = keras.Sequential([keras.Input((None,), dtype="int32"), *stack])
    padded = model(IDS)
    assert_close(padded[:1], model(IDS[:1, :4]))
    assert_close(padded[2:], model(IDS[2:, :1]))


class Tagger(keras.Model):
    def __init__(self):
        super().__init__()
        self.embedding = embedding()
        self.block = layers.TransBLSTMBlock(3, 5, 20)
        self.head = layers.Dense(3)

    def call(self, ids):
        return self.head(self.block(self.embedding(ids)))


def test_subclassed_model_masks_its_outputs_and_so_its_loss():
    model = Tagger()
    outputs = model(IDS)
    assert_close(outputs[0, :4], model(IDS[:1, :4])[0])
    assert np.array_equal(outputs._keras_mask, IDS != 0)
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    tags = RNG.integers(0, 3, IDS.shape)
    loss = model.evaluate(IDS, tags, verbose=0)
    changed = np.where(IDS == 0, 2 - tags, tags)
    assert model.evaluate(IDS, changed, verbose=0) == pytest.approx(loss, abs=1e-6)


def test_functional_model_trains_saves_and_loads(tmp_path):
    ids = keras.Input((None,), dtype="int32")
    hidden = layers.BLSTMBlock(5)(embedding()(ids))
    hidden = layers.TransformerBlock(3, 20)(hidden)
    pooled = layers.MeanPooling()(hidden)
    model = keras.Model(ids, keras.layers.Dense(1)(pooled))
    model.compile("sgd", "mse")
    model.fit(IDS, np.arange(3.0), epochs=2, verbose=0)
    expected = model.predict(IDS, verbose=0)
    assert_close(expected[:1], model(IDS[:1, :4]))
    path = tmp_path / "model.keras"
    model.save(path)
    assert_close(keras.saving.load_model(path)(IDS), expected)
    copy = keras.models.clone_model(model)
    copy.set_weights(model.get_weights())
    assert_close(copy(IDS), expected)


def test_mean_pooling_without_a_mask_takes_all_positions():
    x = RNG.normal(size=(2, 7, 12)).astype("float32")
    assert_close(layers.MeanPooling()(x), x.mean(axis=1))


def test_both_masks_in_a_graph_are_compared_when_it_runs():
    table, layer = embedding(), layers.BidirectionalLSTM(5)

    def call(ids, padding_mask):
        return layer(table(ids), padding_mask=padding_mask)

    graph = tf.function(call)
    mask = tf.constant((IDS != 0).astype("int32"))
    assert_close(graph(tf.constant(IDS), mask), layer(table(IDS)))
    with pytest.raises(tf.errors.InvalidArgumentError, match="two masks that differ"):
        graph(tf.constant(IDS), tf.ones_like(mask))
    # XLA knows no errors: `padding_mask` counts.
    compiled = tf.function(call, jit_compile=True)
    everything = layer(tf.constant(table(IDS).numpy()))
    assert_close(compiled(tf.constant(IDS), tf.ones_like(mask)), everything)


def test_one_mask_puts_no_assertion_into_a_graph():
    table, block = embedding(), layers.TransBLSTMBlock(3, 5, 20)
    graph = tf.function(lambda ids: block(table(ids)))
    encoder = build_shrunk("trans_blstm_tiny")
    batch = {key: tf.constant(value) for key, value in token_batch().items()}
    for function, inputs in ((graph, tf.constant(IDS)), (tf.function(encoder), batch)):
        ops = function.get_concrete_function(inputs).graph.get_operations()
        assert not [op.name for op in ops if "Assert" in op.type]
    # Nor do the outputs of an encoder change a loss of the user's.
    assert not hasattr(encoder(batch)["sequence_output"], "_keras_mask")


def test_gradient_checkpointing_keeps_the_mask():
    table, block = embedding(), layers.TransformerBlock(3, 20, dropout=0.0)
    expected = block(table(IDS), training=True)
    checkpoint_gradients(block)
    assert_close(block(table(IDS), training=True), expected)
    assert_close(block(table(IDS)), expected)
    with pytest.raises(ValueError, match="two masks that differ"):
        block(table(IDS), padding_mask=np.ones_like(IDS), training=True)


def test_time_distributed_layer_takes_a_mask_of_tokens_and_sentences():
    ids = np.stack([IDS, IDS[::-1]], axis=1)  # (3, 2, 7): two sentences a row
    table, layer = embedding(), layers.BidirectionalLSTM(5)
    model = keras.Sequential(
        [
            keras.Input((2, None), dtype="int32"),
            table,
            keras.layers.TimeDistributed(layer),
        ]
    )
    assert_close(model(ids)[:, 1], layer(table(IDS[::-1])))


def test_mask_of_floats_holds_zeros_and_ones():
    layer, x = layers.SelfAttention(3), RNG.normal(size=(3, 7, 12)).astype("float32")
    mask = (IDS != 0).astype("float32")
    assert_close(layer(x, padding_mask=mask), layer(x, padding_mask=IDS != 0), 0.0)
    with pytest.raises(
        ValueError, match="`padding_mask` of SelfAttention .* must be 1"
    ):
        layer(x, padding_mask=mask * 0.5)


def test_mask_may_be_a_list():
    layer, x = layers.SwishRNN(20), RNG.normal(size=(2, 3, 12)).astype("float32")
    found = layer(x, padding_mask=[[1, 1, 0], [1, 0, 0]])
    assert_close(found, layer(x, padding_mask=np.array([[1, 1, 0], [1, 0, 0]])), 0.0)
    with pytest.raises(ValueError, match="sequence_length is 3 of `inputs` and 2 of"):
        layer(x, padding_mask=[[1, 1], [1, 0]])


def test_error_says_what_came_and_what_was_expected():
    layer, x = layers.SwishRNN(20, name="swish"), np.ones((2, 3, 12), "float32")
    with pytest.raises(ValueError) as error:
        layer(x, np.ones((2, 5), "int32"))
    assert str(error.value) == (
        "SwishRNN 'swish' expected `inputs` (batch_size, sequence_length, hidden_dim), "
        "`padding_mask` (batch_size, sequence_length); sequence_length is 3 of "
        "`inputs` and 5 of `padding_mask`. Received shapes: inputs (2, 3, 12), "
        "padding_mask (2, 5)."
    )
    with pytest.raises(ValueError, match="`inputs` has 2 axes instead of 3"):
        layer(x[0])
    assert not layer.built
    layer(x)
    with pytest.raises(ValueError, match="is 12 of the layer as built and 6 of"):
        layer(keras.Input((None, 6)))
    with pytest.raises(ValueError, match=r"mask \(2, 5\)"):
        layer(x, mask=tf.ones((2, 5), "bool"))
    with pytest.raises(ValueError, match="one tensor an argument.*a list as the first"):
        layer([x, np.ones((2, 3))])
    with pytest.raises(ValueError, match=r"`x` \(\.\.\., dim\).*\(2, 3\) of `x`"):
        layers.AddNorm()(x, x[:1])
    with pytest.raises(ValueError, match="`inputs` has 1 axes"):
        layers.FeedForward(20)(x[0, 0])


def test_unknown_sizes_fit():
    layer = layers.SwishRNN(20)
    inputs = keras.Input((None, 12)), keras.Input((None,), dtype="int32")
    assert layer(*inputs).shape == (None, None, 12)
    assert layer(keras.Input((5, 12)), inputs[1]).shape == (None, 5, 12)
    spec = tf.TensorSpec((None, None, 12)), tf.TensorSpec((2, None), "bool")
    graph = tf.function(layer, input_signature=spec)
    assert graph(np.ones((2, 3, 12), "float32"), np.ones((2, 3), "bool")).shape[0] == 2


def test_unknown_width_is_refused_where_weights_have_it():
    unknown = keras.Input((None, None))
    for layer in (layers.BidirectionalLSTM(5), layers.SwishRNN(20), layers.Dense(5)):
        with pytest.raises(ValueError, match="_dim must be known, for the shapes of"):
            layer(unknown)
        assert layer(keras.Input((None, 12))).shape[:2] == (None, None)
        assert layer(unknown).shape[:2] == (None, None)  # it is built now
    assert layers.MeanPooling()(unknown).shape == (None, None)


def test_too_long_a_row_is_refused_before_it_runs():
    layer = layers.BertEmbeddings(9, 12, max_sequence_length=5)
    ids = keras.Input((6,), dtype="int32")
    with pytest.raises(ValueError, match="sequence_length=6, max_sequence_length=5"):
        layer(ids, ids)
