"""What the encoders compute: composition, direction, pooling, limits."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import weights_of
from harness import assert_close, build_shrunk, ragged_mask, token_batch
from reference import bert, trans_blstm
from reference.numbers import layer_norm
from reference.swish_rnn import swish_rnn

from keras_recbert.layers import AddNorm, Dense
from keras_recbert.models.recbert_encoder import PoolToken

LENGTHS = (11, 7, 1)


def reference_encoder(encoder, batch):
    """Outputs of the blocks in float64, from embeddings to the last block."""
    config, mask = encoder.get_config(), batch["padding_mask"]
    x = bert.embeddings(
        batch["token_ids"],
        batch["segment_ids"],
        weights_of.embeddings(encoder.embeddings),
    )
    outputs = []
    for index, block in enumerate(encoder.blocks):
        if config["block"] in ("blstm", "swish_rnn_only"):
            weights = {"output_norm": weights_of.norm(block.output_norm)}
        else:
            weights = weights_of.block_frame(block)
            heads = config["num_heads"]
        if "blstm" in config["block"]:
            weights["blstm"] = weights_of.blstm(block)
        match config["block"]:
            case "transformer":
                weights["feed_forward"] = weights_of.feed_forward(block.feed_forward)
                x = bert.transformer_block(x, weights, heads, mask, config["causal"])
            case "swish_rnn":
                step_size = (1, 2, 4)[index % 3]
                attended = bert.attention(x, weights["attention"], heads, mask)
                hidden = layer_norm(x + attended, *weights["attention_norm"])
                recurrent = weights_of.swish_rnn(block.feed_forward)
                update = swish_rnn(hidden, recurrent, mask, step_size, "gelu")
                x = layer_norm(hidden + update, *weights["output_norm"])
            case "swish_rnn_only":
                # Rows of their own length, every second block from right to left.
                recurrent, step_size = weights_of.swish_rnn(block.swish_rnn), (1, 2)
                update, turn = np.zeros_like(x), slice(None, None, (1, -1)[index % 2])
                for row, length in enumerate(mask.sum(axis=1)):
                    text, ones = x[row : row + 1, :length], np.ones((1, length))
                    read = text[:, turn], recurrent, ones, step_size[index % 2], "gelu"
                    update[row, :length] = swish_rnn(*read)[0, turn]
                x = layer_norm(x + update, *weights["output_norm"])
            case "trans_blstm" | "trans_blstm_half":
                weights["feed_forward"] = weights_of.feed_forward(block.feed_forward)
                x = trans_blstm.trans_blstm_2(x, weights, heads, mask)
            case "trans_blstm_1":
                x = trans_blstm.trans_blstm_1(x, weights, heads, mask)
            case "blstm":
                x = trans_blstm.blstm_block(x, weights, mask)
        outputs.append(x)
    return outputs


@pytest.mark.parametrize(
    "name",
    [
        "bert_tiny",
        "bert_ltr_base",
        "bert_rab_base",
        "swish_base",
        "trans_blstm_base",
        "trans_blstm_half_base",
        "trans_blstm_1_base",
        "blstm_base",
        "transformer_student",
        "swish_student",
    ],
)
def test_whole_encoder_matches_the_papers(name):
    encoder = build_shrunk(name)
    batch = token_batch(LENGTHS)
    outputs = encoder(batch)
    expected = reference_encoder(encoder, batch)
    compared = np.ones_like(batch["padding_mask"], bool)
    if name == "swish_student":  # whose reference reads no padding
        compared = batch["padding_mask"] == 1
    for layer, wanted in zip(outputs["encoder_outputs"], expected, strict=True):
        assert_close(layer.numpy()[compared], wanted[compared])
    last = expected[-1]
    if name == "transformer_student":  # Liu 2020, section 4.1.3
        assert len(expected) > 1
        last = sum(expected) / len(expected)
    if name == "bert_ltr_base":  # the last real token is pooled
        last = np.stack([row[n - 1 : n] for row, n in zip(last, LENGTHS, strict=True)])
    pooled = bert.pooler(
        last, encoder.pooler.kernel.numpy(), encoder.pooler.bias.numpy()
    )
    assert_close(outputs["pooled_output"], pooled)


@pytest.mark.parametrize("name", ["bert_tiny", "swish_tiny", "trans_blstm_tiny"])
def test_layer_norms_have_the_epsilon_of_the_release(name):
    """Too small to show in outputs of this size, and lost on small activations."""
    layers = build_shrunk(name)._flatten_layers()
    kinds = (AddNorm, keras.layers.LayerNormalization)
    norms = [one for one in layers if isinstance(one, kinds)]
    assert len(norms) == 1 + 2 * len(build_shrunk(name).blocks)
    assert {norm.epsilon for norm in norms} == {1e-12}


def positions_that_change(name, moved):
    """Which positions another token at `moved` changes, in the last block."""
    encoder = build_shrunk(name)
    batch = token_batch(lengths=(9,), sequence_length=9)
    before = encoder(batch)
    batch["token_ids"][0, moved] = (batch["token_ids"][0, moved] + 1) % 37
    after = encoder(batch)
    difference = np.abs(before["sequence_output"] - after["sequence_output"])
    pooled = np.abs(before["pooled_output"] - after["pooled_output"])
    return np.max(difference[0], axis=-1) > 1e-6, np.max(pooled) > 1e-6


def test_left_to_right_model_sees_nothing_to_its_right():
    changed, pooled = positions_that_change("bert_ltr_base", moved=4)
    np.testing.assert_array_equal(changed, [False] * 4 + [True] * 5)
    assert pooled  # the last token sees all


@pytest.mark.parametrize(
    "name",
    ["bert_tiny", "swish_tiny", "trans_blstm_tiny", "blstm_base", "swish_student"],
)
def test_other_models_see_both_sides(name):
    changed, pooled = positions_that_change(name, moved=4)
    assert np.all(changed)
    assert pooled


@pytest.mark.parametrize("last", [False, True])
def test_pooled_token(last):
    hidden = np.random.default_rng(0).normal(size=(4, 5, 3)).astype("float32")
    mask = ragged_mask((5, 3, 1, 0), 5)
    index = [4, 2, 0, 0] if last else [0, 0, 0, 0]
    pooled = PoolToken(last=last)(hidden, mask)
    np.testing.assert_array_equal(pooled, hidden[np.arange(4), index])
    stored = PoolToken(last=last).get_config()
    assert PoolToken.from_config(stored).last is last


def test_sequence_longer_than_max_sequence_length():
    encoder = build_shrunk("swish_tiny", max_sequence_length=8)
    encoder(token_batch((8, 3), sequence_length=8))
    message = "Received: sequence_length=9, max_sequence_length=8. Truncate the input"
    with pytest.raises(ValueError, match=message):
        encoder(token_batch((9, 3), sequence_length=9))


@pytest.mark.parametrize("name", ["bert_tiny", "swish_tiny", "trans_blstm_tiny"])
def test_dropout_acts_in_training_only(name):
    encoder = build_shrunk(name, dropout=0.5)
    batch = token_batch()
    outputs = encoder(batch)["sequence_output"]
    assert_close(outputs, encoder(batch, training=False)["sequence_output"], 0.0)
    dropped = encoder(batch, training=True)["sequence_output"]
    assert np.max(np.abs(outputs - dropped)) > 0.1
    still = build_shrunk(name, dropout=0.0)
    trained = still(batch, training=True)["sequence_output"]
    assert_close(trained, still(batch)["sequence_output"], 1e-6)


@pytest.mark.parametrize("name", ["swish_tiny", "trans_blstm_tiny"])
def test_training_step_compiles_with_xla(name):
    """Static shapes: XLA needs a bound for the loops of the gradient."""
    encoder = build_shrunk(name, num_layers=1)
    batch = {key: tf.constant(value) for key, value in token_batch().items()}

    def step(batch):
        with tf.GradientTape() as tape:
            outputs = encoder(batch, training=False)
            total = tf.reduce_sum(outputs["pooled_output"] ** 2)
        weights = [weight.value for weight in encoder.trainable_weights]
        return [tf.convert_to_tensor(g) for g in tape.gradient(total, weights)]

    compiled = tf.function(step, jit_compile=True)(batch)
    for one, other in zip(compiled, step(batch), strict=True):
        assert_close(one, other, 1e-5, "gradients under XLA")


def test_encoder_is_part_of_another_model_that_saves(tmp_path):
    encoder = build_shrunk("trans_blstm_half_base")
    inputs = {
        key: keras.Input((None,), dtype="int32", name=key) for key in encoder.input
    }
    model = keras.Model(
        inputs, keras.layers.Dense(2, name="head")(encoder(inputs)["pooled_output"])
    )
    batch = token_batch()
    expected = model(batch)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert_close(loaded(batch), expected, 1e-6)


WIDE = {"hidden_dim": 256, "num_heads": 2, "num_layers": 1, "dropout": 0.0}
NAMES = ["bert_rab_tiny", "swish_tiny", "trans_blstm_tiny"]


@tf.function
def trained_once(encoder, batch):
    """Outputs of a training step, and gradients."""
    with tf.GradientTape() as tape:
        outputs = encoder(batch, training=True)["sequence_output"]
        total = tf.reduce_sum(outputs**3)
    weights = [weight.value for weight in encoder.trainable_weights]
    gradients = tape.gradient(total, weights, unconnected_gradients="zero")
    return outputs, [tf.convert_to_tensor(gradient) for gradient in gradients]


@pytest.mark.parametrize("name", NAMES)
def test_a_wide_encoder_is_the_same_by_every_implementation(name):
    """Only from 256 wide on does the automatic choice leave something to XLA."""
    batch = token_batch()
    real = batch["padding_mask"] == 1
    reference = build_shrunk(name, **WIDE, implementation="reference")
    expected, wanted = trained_once(reference, batch)
    for implementation in ("auto", "loop"):
        encoder = build_shrunk(name, **WIDE, implementation=implementation)
        encoder.set_weights(reference.get_weights())
        outputs, gradients = trained_once(encoder, batch)
        assert_close(outputs.numpy()[real], expected.numpy()[real])
        for one, other in zip(gradients, wanted, strict=True):
            scale = max(1.0, float(tf.reduce_max(tf.abs(other))))
            assert_close(one / scale, other / scale)


@pytest.mark.parametrize("name", [*NAMES, "bert_ltr_base"])
def test_float16_masks_what_float32_does(name):
    """-1e9 is no number of float16."""
    batch = token_batch(lengths=(11, 7, 0))
    full = build_shrunk(name)
    half = build_shrunk(name, dtype="mixed_float16")
    half.set_weights(full.get_weights())
    outputs = half(batch)["sequence_output"].numpy().astype("float32")
    assert np.all(np.isfinite(outputs))
    real = batch["padding_mask"] == 1
    assert_close(outputs[real], full(batch)["sequence_output"].numpy()[real], 0.05)


@pytest.mark.slow
def test_an_encoder_is_quantized_whole():
    encoder = build_shrunk("bert_tiny")
    before = encoder(token_batch())["sequence_output"].numpy()
    encoder.quantize("int8")
    dense = [one for one in encoder._flatten_layers() if isinstance(one, Dense)]
    assert len(dense) == 4 * len(encoder.blocks)
    assert {one.quantization_mode for one in dense} == {"int8"}
    after = encoder(token_batch())["sequence_output"].numpy()
    assert 0.0 < np.max(np.abs(after - before)) < 0.2 * np.max(np.abs(before))
