import numpy as np
import pytest
import tensorflow as tf
from foreign_berts import SIZES, write_huggingface_folder
from harness import assert_close, gradients, largest_difference, set_seed, token_batch

import keras_recbert
from keras_recbert.convert.checkpoint import CheckpointError

OWN = {k: v for k, v in SIZES.items() if k not in ("num_layers", "intermediate_dim")}
FEED_FORWARD = {"intermediate_dim": SIZES["intermediate_dim"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("bert")
    write_huggingface_folder(path)
    return path


@pytest.fixture(scope="module")
def bert(folder):
    return keras_recbert.load(folder)


def batch_of():
    batch = token_batch()
    batch["token_ids"] %= SIZES["vocabulary_size"]
    return batch


def build(name, folder, **sizes):
    set_seed(0)
    return keras_recbert.build(
        name, weights=folder, **{"num_layers": 2, **OWN}, **sizes
    )


def assert_same(encoder, bert, tolerance=1e-6):
    batch = batch_of()
    outputs, expected = encoder(batch), bert(batch)
    real = batch["padding_mask"].astype(bool)
    for key in ("sequence_output", "pooled_output"):
        a, b = outputs[key].numpy(), expected[key].numpy()
        if key == "sequence_output":
            a, b = a[real], b[real]
        assert_close(a, b, tolerance, key)


def step(encoder, batch, learning_rate=0.1):
    """One step of plain gradient descent on a random weighting of the outputs."""
    weights = encoder.trainable_weights
    for weight, gradient in zip(
        weights, gradients(encoder, weights, batch), strict=True
    ):
        weight.assign_sub(learning_rate * gradient)


@pytest.mark.parametrize(
    "name, sizes",
    [
        ("trans_blstm_tiny", {**FEED_FORWARD, "recurrent_dim": 7}),
        ("trans_blstm_half_base", FEED_FORWARD),
        ("trans_blstm_tiny", {**FEED_FORWARD, "recurrent_dim": 6}),
    ],
)
def test_trans_blstm_starts_as_bert_and_all_of_it_learns(folder, bert, name, sizes):
    encoder = build(name, folder, **sizes)
    assert_same(encoder, bert)
    new = encoder.weights_report.new
    weights = [weight for weight in encoder.weights if weight.path in new]
    assert weights and all("lstm" in p or "projection" in p for p in new)
    batch = batch_of()
    at_start = gradients(encoder, weights, batch)
    assert any(np.any(gradient) for gradient in at_start)
    step(encoder, batch)
    for weight, gradient in zip(
        weights, gradients(encoder, weights, batch), strict=True
    ):
        assert np.all(np.isfinite(gradient)), weight.path
        assert np.any(gradient), f"{weight.path} gets no gradient after the first step"
    moved = encoder(batch)["sequence_output"] - bert(batch)["sequence_output"]
    assert largest_difference(moved, np.zeros_like(moved)) > 1e-3


def test_the_report_of_trans_blstm_says_what_is_copied_and_what_is_new(folder, bert):
    encoder = build("trans_blstm_tiny", folder, **FEED_FORWARD, recurrent_dim=7)
    report = encoder.weights_report
    assert set(report.copied) == {weight.path for weight in bert.weights}
    assert set(report.copied) | set(report.new) == {w.path for w in encoder.weights}
    assert not report.adapted and not report.unused
    text = str(report)
    assert (
        "new       2 x block_*/projection/kernel: zero: the LSTM adds nothing" in text
    )
    assert "2 x block_*/bidirectional_lstm/recurrent_kernel: as in a model" in text


def test_swish_rnn_with_room_for_all_units_is_nearly_the_feed_forward(folder, bert):
    """Near in the limit: the memory shrinks with 1 - sigmoid(beta)."""
    encoder = build("swish_tiny", folder, recurrent_dim=20)
    for beta, tolerance in ((4.0, 3.0), (12.0, 0.02), (20.0, 1e-4)):
        for block in encoder.blocks:
            block.feed_forward.beta.assign(np.full(20, beta))
        assert_same(encoder, bert, tolerance)


def test_a_wider_swish_rnn_starts_no_farther_off(folder):
    encoder = build("swish_tiny", folder, recurrent_dim=23)
    layer = encoder.blocks[0].feed_forward
    kernel = layer.input_dense.kernel.numpy().reshape(12, 2, 23)
    assert np.array_equal(kernel[:, 0, :20], kernel[:, 1, :20])
    assert not np.array_equal(kernel[:, 0, 20:], kernel[:, 1, 20:])
    assert not np.any(layer.output_dense.kernel.numpy()[20:])


def test_a_narrower_swish_rnn_keeps_the_strongest_units(folder, bert):
    encoder = build("swish_tiny", folder, recurrent_dim=13)
    layer, source = encoder.blocks[1].feed_forward, bert.blocks[1].feed_forward
    kernel = source.intermediate_dense.kernel.numpy()
    out = source.output_dense.kernel.numpy()
    strength = [
        np.sqrt(sum(kernel[:, j] ** 2)) * np.sqrt(sum(out[j] ** 2)) for j in range(20)
    ]
    kept = sorted(sorted(range(20), key=lambda j: -strength[j])[:13])
    assert np.array_equal(layer.output_dense.kernel.numpy(), out[kept])
    assert np.array_equal(
        layer.gate_bias.numpy(), source.intermediate_dense.bias.numpy()[kept]
    )
    report = encoder.weights_report
    assert report.adapted["block_1/swish_rnn/input_dense/kernel"] == (
        ("encoder.layer.1.intermediate.dense.weight",),
        "13 of 20 units, for x1 and for x2",
    )
    assert report.new["block_1/attention/relative_attention_bias"].startswith("zero")
    every = {*report.copied, *report.adapted, *report.new}
    assert every == {weight.path for weight in encoder.weights}


def test_variant_1_with_room_for_all_units_is_near_the_feed_forward(folder):
    """The sub-layer alone: sigmoid(1.702 z) z is near to GELU for every z."""
    encoder = build("trans_blstm_1_base", folder, recurrent_dim=10)
    plain = keras_recbert.load(folder)
    inputs = 0.3 * np.random.default_rng(0).normal(size=(2, 9, 12)).astype("float32")
    for block, source in zip(encoder.blocks, plain.blocks, strict=True):
        lstm = block.bidirectional_lstm
        bias = lstm.bias.numpy().reshape(2, 4, 10)
        bias[:, 0], bias[:, 1] = 30.0, -30.0  # input open, forget shut, for good
        lstm.bias.assign(bias.reshape(2, 40))
        opening = np.float32(1.0 + np.exp(-4.0))
        projection = block.projection.kernel / opening
        outputs = lstm(inputs) @ projection + block.projection.bias
        expected = source.feed_forward(inputs)
        # What changes with the input, as the constant part is easily met.
        both = np.asarray(outputs), np.asarray(expected)
        apart = [x - np.mean(x, axis=(0, 1)) for x in both]
        assert np.std(apart[1]) > 0.05
        assert np.std(apart[0] - apart[1]) < 0.1 * np.std(apart[1])


@pytest.mark.parametrize(
    "name, sizes",
    [
        ("swish_tiny", {"recurrent_dim": 13}),
        ("trans_blstm_1_base", {"recurrent_dim": 7}),
    ],
)
def test_what_replaces_the_feed_forward_learns_at_once(folder, name, sizes):
    encoder = build(name, folder, **sizes)
    report = encoder.weights_report
    weights = [w for w in encoder.weights if w.path not in report.copied]
    assert weights
    for weight, gradient in zip(
        weights, gradients(encoder, weights, batch_of()), strict=True
    ):
        assert np.all(np.isfinite(gradient)) and np.any(gradient), weight.path


def test_blstm_takes_embeddings_and_pooler_only(folder):
    encoder = keras_recbert.build(
        "blstm_base",
        weights=folder,
        num_layers=2,
        recurrent_dim=5,
        **{key: size for key, size in OWN.items() if key != "num_heads"},
    )
    report = encoder.weights_report
    assert all(path.startswith(("embeddings/", "pooler/")) for path in report.copied)
    assert all(path.startswith("block_") for path in report.new)
    assert any("attention.self.query" in name for name in report.unused)


def test_the_first_layers_and_positions(folder, bert):
    encoder = keras_recbert.build(
        "bert_tiny",
        weights=folder,
        **{**OWN, "num_layers": 1, "max_sequence_length": 11},
        **FEED_FORWARD,
    )
    batch = batch_of()
    assert_close(
        encoder(batch)["sequence_output"], bert(batch)["encoder_outputs"][0], 1e-6
    )
    report = encoder.weights_report
    names, how = report.adapted["embeddings/position_embedding/embeddings"]
    assert how == "the first 11 of 24 rows"
    assert {name.split(".")[2] for name in report.unused} == {"1"}
    start = build_recurrent_prefix(folder)
    assert_close(
        start(batch)["sequence_output"], bert(batch)["encoder_outputs"][0], 1e-6
    )


def build_recurrent_prefix(folder):
    return keras_recbert.build(
        "trans_blstm_tiny",
        weights=folder,
        **{**OWN, "num_layers": 1},
        **FEED_FORWARD,
        recurrent_dim=7,
    )


def test_presets_start_encoders_too(folder, bert, tmp_path):
    recurrent = build("trans_blstm_tiny", folder, **FEED_FORWARD, recurrent_dim=7)
    step(recurrent, batch_of())
    recurrent.save_preset(tmp_path / "recurrent")
    again = build(
        "trans_blstm_tiny", tmp_path / "recurrent", **FEED_FORWARD, recurrent_dim=7
    )
    assert_same(again, recurrent, 0.0)
    assert not again.weights_report.new and not again.weights_report.unused
    with pytest.raises(CheckpointError, match="recurrent_dim: 5 in .*, 7 in the check"):
        build(
            "trans_blstm_tiny", tmp_path / "recurrent", **FEED_FORWARD, recurrent_dim=5
        )
    with pytest.raises(CheckpointError, match="'trans_blstm' blocks; 'swish_tiny' has"):
        build("swish_tiny", tmp_path / "recurrent", recurrent_dim=7)
    bert.save_preset(tmp_path / "bert")
    assert_same(build("trans_blstm_half_base", tmp_path / "bert", **FEED_FORWARD), bert)


def test_a_preset_keeps_its_sizes_under_its_own_name(tmp_path):
    sizes = {**OWN, "num_layers": 3, "recurrent_dim": 7, "step_size": [1, 2, 4]}
    heads = {"next_sentence": {"layer": 2, "concatenate": None}}
    saved = keras_recbert.build("swish_small", pretrained_heads=heads, **sizes)
    saved.save_preset(tmp_path / "preset")
    again = keras_recbert.build("swish_small", weights=tmp_path / "preset")
    assert_same(again, saved, 0.0)
    for name in ("step_size", "pretrained_heads"):
        assert again.config[name] == saved.config[name]
    prefix = keras_recbert.build(
        "swish_small", weights=tmp_path / "preset", num_layers=2
    )
    assert len(prefix.blocks) == 2
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    pretrainer = keras_recbert.build(
        "swish_small",
        task="pretrainer",
        weights=tmp_path / "preset",
        objectives={"masked_lm": {"layer": 3}, "next_sentence": {"layer": 1}},
        vocabulary=special + [f"w{i}" for i in range(OWN["vocabulary_size"] - 5)],
    )
    assert len(pretrainer.encoder.blocks) == 3
    assert pretrainer.encoder.pretrained_heads["next_sentence"]["layer"] == 1
    with pytest.raises(ValueError, match="from 1 to 3. Received: layer=4"):
        keras_recbert.build(
            "swish_small",
            task="pretrainer",
            weights=tmp_path / "preset",
            objectives={"masked_lm": {"layer": 4}},
        )
    with pytest.raises(
        CheckpointError, match="or build 'swish_small', by which it was"
    ):
        keras_recbert.build("swish_tiny", weights=tmp_path / "preset")


def test_a_relative_attention_bias_starts_at_zero(folder, bert, tmp_path):
    assert_same(build("bert_rab_tiny", folder, **FEED_FORWARD), bert)
    bert.save_preset(tmp_path / "bert")
    rab = build("bert_rab_tiny", tmp_path / "bert", **FEED_FORWARD)
    assert_same(rab, bert)
    assert set(rab.weights_report.new) == {
        f"block_{index}/attention/relative_attention_bias" for index in (0, 1)
    }


def test_what_would_be_lost_is_an_error(folder, tmp_path):
    rab = build("bert_rab_tiny", folder, **FEED_FORWARD)
    rab.save_preset(tmp_path / "rab")
    assert build("swish_tiny", tmp_path / "rab", recurrent_dim=8)
    with pytest.raises(CheckpointError, match="relative_attention_bias.*has no place"):
        build("trans_blstm_half_base", tmp_path / "rab", **FEED_FORWARD)
    with pytest.raises(CheckpointError, match="read both ways; 'bert_ltr_base' reads"):
        build("bert_ltr_base", folder, **FEED_FORWARD)
    sizes = {**OWN, **FEED_FORWARD, "num_layers": 2}
    causal = keras_recbert.build("bert_ltr_base", **sizes)
    causal.save_preset(tmp_path / "causal")
    with pytest.raises(CheckpointError, match="from left to right"):
        build("trans_blstm_half_base", tmp_path / "causal", **FEED_FORWARD)
    adapted = keras_recbert.build(
        "bert_tiny",
        task="classifier",
        weights=folder,
        lora_rank=2,
        **{**OWN, "num_layers": 2},
        **FEED_FORWARD,
    )
    adapted.save_preset(tmp_path / "lora")
    with pytest.raises(CheckpointError, match="LoRA adapters .lora_rank=2"):
        build("bert_tiny", tmp_path / "lora", **FEED_FORWARD)


def test_a_task_starts_from_weights_and_trains(eager_steps, folder):
    model = keras_recbert.build(
        "trans_blstm_tiny",
        task="classifier",
        weights=folder,
        dtype="mixed_bfloat16",
        **{key: size for key, size in OWN.items() if key != "vocabulary_size"},
        num_layers=2,
        recurrent_dim=7,
        **FEED_FORWARD,
    )
    before = {weight.path: weight.numpy() for weight in model.weights}
    model.fit(["ab c", "d", "e f", "a"], [0, 1, 0, 1], epochs=2, verbose=0, seed=0)
    moved = {w.path for w in model.weights if np.any(w.numpy() != before[w.path])}
    assert "block_0/projection/kernel" in moved
    assert "block_0/bidirectional_lstm/kernel" in moved
    assert tf.reduce_all(tf.math.is_finite(model.predict(["b"], verbose=0)))
