"""Heads at any block: what they read, what trains, freezing, files, numbers."""

import dataclasses
import warnings

import numpy as np
import pytest
from harness import (
    SHRUNK,
    VOCABULARY_SIZE,
    assert_close,
    assert_every_weight_learns,
    randomize,
    token_batch,
)
from toy_pretrainers import ALL, LOW_SENTENCE, examples, make, repeated
from toy_texts import VOCABULARY

import keras_recbert
from keras_recbert.heads.reading import Reading
from keras_recbert.models.recbert_encoder import RecBertEncoder
from keras_recbert.objectives import MaskedLM, NextSentence, Objectives, read_objectives
from keras_recbert.tasks.optimizers import AdamW
from keras_recbert.tasks.pretrainer import Pretrainer

# The heads know nothing of blocks: two kinds in the fast suite.
BLOCKS = [
    pytest.param(
        block, marks=() if block in ("transformer", "swish_rnn") else pytest.mark.slow
    )
    for block in SHRUNK
]


# What heads read ----------------------------------------------------------------


@pytest.mark.parametrize("entries", ALL, ids=str)
def test_every_weight_that_trains_gets_a_gradient(entries):
    model = make(entries)
    x, y, _ = examples(model)
    outputs = model(x)
    assert set(outputs) == set(y)
    for name, output in outputs.items():
        shape = (
            *y[name].shape,
            *{"masked_lm": (37,), "next_sentence": (2,)}.get(name, ()),
        )
        assert output.shape == shape
        assert output.dtype == "float32"
    assert_every_weight_learns(model, x)
    resting = {w.path.split("/")[0] for w in model.non_trainable_weights}
    assert resting == (set() if "next_sentence" in entries else {"pooler"})
    # The table is one weight; nothing is counted twice.
    assert len({w.path for w in model.weights}) == len(model.weights)
    tables = [w for w in model.weights if tuple(w.shape) == (VOCABULARY_SIZE, 12)]
    assert len(tables) == 1


@pytest.mark.parametrize("block", BLOCKS)
def test_heads_do_not_depend_on_blocks_above_them(block):
    model = make(LOW_SENTENCE, block)
    x, _, _ = examples(model)
    assert_every_weight_learns(model, x)
    layers = {"next_sentence": 1, "bigram_shift": 2, "masked_lm": 3}
    for changed in (3, 2, 1):
        before = {name: output.numpy() for name, output in model(x).items()}
        weight = model.encoder.blocks[changed - 1].weights[-1]
        weight.assign(weight.numpy() + 0.5)
        after = model(x)
        for name, layer in layers.items():
            same = np.array_equal(before[name], after[name])
            assert same == (layer < changed), (name, changed)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("block", "entries", "dtype"),
    [
        ("transformer", ALL[5], "float32"),
        *((block, LOW_SENTENCE, "mixed_bfloat16") for block in SHRUNK),
    ],
    ids=str,
)
def test_every_kind_of_block_trains_with_every_head(block, entries, dtype):
    model = make(entries, block, dtype=dtype)
    batch = examples(model)
    assert_every_weight_learns(model, batch[0])
    model.compile_for_pretraining(AdamW(0.003))
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="Gradients do not exist")
        history = model.fit(repeated(batch, 20), epochs=3, verbose=0).history
    assert history["loss"][2] < history["loss"][0]
    # What may train has moved, the rest not.
    before = [w.numpy() for w in model.weights]
    model.fit(repeated(batch, 1), verbose=0)
    for old, weight in zip(before, model.weights, strict=True):
        assert np.any(old != weight.numpy()) == weight.trainable, weight.path


def test_causal_head_guesses_from_the_left():
    model = make({"causal_lm": None}, causal=True)
    x, _, _ = examples(model)
    x["mask_positions"] = np.tile(np.arange(10, dtype="int32"), (3, 1))
    before = model(x)["causal_lm"].numpy()
    x["token_ids"][:, 6] = (x["token_ids"][:, 6] + 1) % VOCABULARY_SIZE
    after = model(x)["causal_lm"].numpy()
    assert_close(before[:, :6], after[:, :6], 1e-6)
    assert np.abs(before[0, 6:] - after[0, 6:]).max() > 1e-3


def test_bfloat16_gives_float32_logits():
    model = make(LOW_SENTENCE, dtype="mixed_bfloat16")
    x, _, _ = examples(model)
    for output in model(x).values():
        assert output.dtype == "float32"
    assert {output.dtype for output in model.outputs} == {"float32"}


# Files --------------------------------------------------------------------------


@pytest.mark.parametrize("entries", [ALL[5], LOW_SENTENCE], ids=str)
def test_saved_and_loaded(entries, tmp_path):
    model = make(entries)
    x, _, _ = examples(model)
    model.save(tmp_path / "model.keras")
    loaded = keras_recbert.load(tmp_path / "model.keras")
    assert type(loaded) is Pretrainer
    assert loaded.objectives == model.objectives == read_objectives(entries)
    assert loaded.count_params() == model.count_params()
    table = loaded.encoder.embeddings.token_embedding
    assert loaded.heads["masked_lm"].layer.token_embedding is table
    for name, output in loaded(x).items():
        assert_close(output, model(x)[name], 0.0, name)
    assert_every_weight_learns(loaded, x)


def test_encoder_takes_what_it_was_trained_with_along(tmp_path):
    model = keras_recbert.build(
        "swish_tiny",
        task="pretrainer",
        objectives=LOW_SENTENCE,
        vocabulary=VOCABULARY,
        num_layers=3,
        hidden_dim=12,
        num_heads=3,
    )
    randomize(model)
    model.encoder.save_preset(tmp_path / "preset")
    encoder = keras_recbert.load(tmp_path / "preset")
    assert encoder.config == model.encoder.config
    assert encoder.preprocessor.tokenizer.vocabulary == tuple(VOCABULARY)
    classifier = keras_recbert.build(
        "swish_tiny",
        task="classifier",
        weights=tmp_path / "preset",
        num_layers=3,
        hidden_dim=12,
        num_heads=3,
    )
    assert classifier.head.reading == Reading("mean", None, "cls", 1)
    x = token_batch()
    x["token_ids"] %= len(VOCABULARY)
    expected = model.encoder(x)
    for one in (encoder, classifier.encoder):
        outputs = one(x)
        for key in ("pooled_output", "sequence_output"):
            assert_close(outputs[key], expected[key], 0.0, key)
    # And goes on with the same objectives, or with others at other levels.
    same = keras_recbert.build(
        "swish_tiny",
        task="pretrainer",
        objectives=LOW_SENTENCE,
        weights=tmp_path / "preset",
        num_layers=3,
        hidden_dim=12,
        num_heads=3,
    )
    new = same.encoder.weights_report.new
    heads = {"masked_lm", "next_sentence", "bigram_shift_head"}
    assert {path.split("/")[0] for path in new} == heads
    again = keras_recbert.build(
        "swish_tiny",
        task="pretrainer",
        objectives={"masked_lm": None},
        weights=tmp_path / "preset",
        num_layers=3,
        hidden_dim=12,
        num_heads=3,
    )
    noted = {"masked_lm": {"layer": None, "concatenate": None}}
    assert again.encoder.pretrained_heads == noted
    hidden, wanted = again.encoder(x), expected["encoder_outputs"][2]
    assert_close(hidden["sequence_output"], wanted, 0.0)
    new = again.encoder.weights_report.new
    assert {path.split("/")[0] for path in new} == {"masked_lm"}


# Errors -------------------------------------------------------------------------


def error(entries, message, **sizes):
    with pytest.raises(ValueError, match=message):
        make(entries, **sizes)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (
            {"masked_lm": {"layer": 13}},
            "`layer` of masked_lm must be a block of the encoder, from 1 to 3. "
            "Received: layer=13.",
        ),
        (
            {"masked_lm": {"layer": 2}, "next_sentence": {"layer": 1}},
            "No objective reads the blocks above 2, so nothing trains them. Received: "
            "3 blocks. Build the encoder with num_layers=2, or put an objective at "
            "block 3.",
        ),
        (
            {"causal_lm": None},
            "causal_lm needs an encoder that reads from left to right.*'transformer' "
            "blocks, causal=False. Build a 'transformer' encoder",
        ),
        (
            {"masked_lm": None, "next_sentence": {"freeze_at_step": 3}},
            "Freezing next_sentence at the last block would leave no block to train. "
            "Received: layer=3 of 3 blocks. Put next_sentence at a lower block, or do "
            "not freeze it.",
        ),
        (
            {"masked_lm": None, "next_sentence": {"layer": 3, "freeze_patience": 2}},
            "Freezing next_sentence at the last block",
        ),
    ],
)
def test_impossible_objectives(entries, message):
    error(entries, message)


def test_encoder_is_an_encoder():
    with pytest.raises(ValueError, match="`encoder` must be a RecBertEncoder.*str"):
        Pretrainer("bert_tiny", {"masked_lm": None})


def test_left_to_right_encoder_shows_no_token_the_sentence():
    error(
        {"masked_lm": {"concatenate": "cls"}, "next_sentence": None},
        "would show each of them what follows. Received: concatenate='cls', causal",
        causal=True,
    )


def test_last_block_by_its_number_is_the_last_block():
    encoder = RecBertEncoder(**SHRUNK["transformer"], vocabulary_size=37)
    model = Pretrainer(encoder, Objectives(MaskedLM(layer=2), NextSentence(layer=2)))
    assert dataclasses.asdict(model.objectives)["masked_lm"]["layer"] == 2
    assert encoder.pretrained_heads["masked_lm"]["layer"] is None


def test_nothing_to_freeze():
    with pytest.raises(ValueError, match="no next_sentence to freeze.*: masked_lm."):
        make({"masked_lm": None}, num_layers=1).freeze_next_sentence()
    model = make({"masked_lm": None, "next_sentence": None}, num_layers=1)
    with pytest.raises(ValueError, match="would leave no block to train"):
        model.freeze_next_sentence()
    assert not model.next_sentence_frozen
