"""Every public layer passes the contract; a layer without a case fails."""

import numpy as np
import pytest
from harness import ragged_mask
from layer_contract import run_layer_contract

import keras_recbert

RNG = np.random.default_rng(0)
HIDDEN = RNG.normal(size=(3, 7, 12)).astype("float32")
PADDING_MASK = ragged_mask((7, 4, 1), 7)
SEQUENCE = {"inputs": HIDDEN, "padding_mask": PADDING_MASK}
TOKENS = {
    "token_ids": RNG.integers(0, 11, (3, 7)).astype("int32"),
    "segment_ids": RNG.integers(0, 3, (3, 7)).astype("int32"),
}

# Second texts of 4, 2 and no tokens.
SECOND = ((np.arange(7) >= [[3], [2], [7]]) & (PADDING_MASK == 1)).astype("int32")

# What is added is whole numbers, which the contract passes in other types too.
SUM = {"x": HIDDEN, "update": RNG.integers(0, 5, HIDDEN.shape).astype("float32")}

# Whole numbers too.
SENTENCE = RNG.integers(0, 5, (3, 5)).astype("float32")

# Outputs of five layers.
STACKED = RNG.normal(size=(*HIDDEN.shape, 5)).astype("float32")

# (layer, arguments, inputs[, shape of the output])
CASES = [
    ("AddNorm", {"dropout": 0.3}, SUM),
    ("AddNorm", {"epsilon": 1e-6, "implementation": "xla"}, SUM),
    (
        "BertEmbeddings",
        {
            "vocabulary_size": 11,
            "hidden_dim": 12,
            "max_sequence_length": 9,
            "num_segments": 3,
            "dropout": 0.3,
        },
        TOKENS,
        (3, 7, 12),
    ),
    ("BidirectionalLSTM", {"units": 5}, SEQUENCE, (3, 7, 10)),
    ("BidirectionalLSTM", {"units": 5}, {"inputs": HIDDEN}, (3, 7, 10)),
    (
        "BiAttentiveStudent",
        {"recurrent_dim": 3, "projection_dim": 4},
        {**SEQUENCE, "segment_ids": SECOND},
        (3, 36),
    ),
    ("BLSTMBlock", {"recurrent_dim": 5, "dropout": 0.3}, SEQUENCE),
    (
        "ConcatenateSentence",
        {},
        {"inputs": HIDDEN, "sentence": SENTENCE},
        (3, 7, 17),
    ),
    ("Dense", {"units": 10, "activation": "gelu"}, {"inputs": HIDDEN}, (3, 7, 10)),
    (
        "Dense",
        {"units": 10, "use_bias": False, "implementation": "loop"},
        {"inputs": HIDDEN},
        (3, 7, 10),
    ),
    ("Dropout", {"rate": 0.3}, {"inputs": HIDDEN}),
    ("FeedForward", {"intermediate_dim": 20}, {"inputs": HIDDEN}),
    ("FinalStates", {}, SEQUENCE, (3, 12)),
    (
        "MaskedLMHead",
        {"vocabulary_size": 11, "hidden_dim": 10},
        {"inputs": HIDDEN, "mask_positions": RNG.integers(0, 7, (3, 5))},
        (3, 5, 11),
    ),
    ("MaxPooling", {}, SEQUENCE, (3, 12)),
    ("MeanPooling", {}, SEQUENCE, (3, 12)),
    ("ScalarMix", {}, {"inputs": STACKED}, (3, 7, 12)),
    ("SelfAttention", {"num_heads": 3, "dropout": 0.3}, SEQUENCE),
    (
        "SelfAttention",
        {
            "num_heads": 2,
            "dropout": 0.3,
            "relative_attention_bias": True,
            "causal": True,
        },
        SEQUENCE,
    ),
    ("SwishRNN", {"recurrent_dim": 20}, {"inputs": HIDDEN}),
    ("SwishRNN", {"recurrent_dim": 20, "step_size": 2, "gate": "sigmoid"}, SEQUENCE),
    (
        "SwishRNNBlock",
        {"num_heads": 3, "recurrent_dim": 20, "step_size": 4, "dropout": 0.3},
        SEQUENCE,
    ),
    (
        "SwishRNNOnlyBlock",
        {"recurrent_dim": 20, "step_size": 2, "go_backwards": True, "dropout": 0.3},
        SEQUENCE,
    ),
    (
        "TransBLSTMBlock",
        {"num_heads": 3, "recurrent_dim": 5, "variant": 1, "dropout": 0.3},
        SEQUENCE,
    ),
    (
        "TransBLSTMBlock",
        {
            "num_heads": 3,
            "recurrent_dim": 5,
            "intermediate_dim": 20,
            "variant": 2,
            "dropout": 0.3,
        },
        SEQUENCE,
    ),
    (
        "TransBLSTMBlock",  # half the width: no projection
        {"num_heads": 3, "recurrent_dim": 6, "intermediate_dim": 20, "dropout": 0.3},
        SEQUENCE,
    ),
    (
        "TransformerBlock",
        {"num_heads": 3, "intermediate_dim": 20, "dropout": 0.3},
        SEQUENCE,
    ),
    (
        "TransformerBlock",
        {
            "num_heads": 3,
            "intermediate_dim": 20,
            "dropout": 0.3,
            "relative_attention_bias": True,
            "causal": True,
        },
        SEQUENCE,
    ),
    (
        "WordEmbeddings",
        {"vocabulary_size": 11, "vector_dim": 5, "channels": "multichannel"},
        {"token_ids": TOKENS["token_ids"]},
        (3, 7, 10),
    ),
]


@pytest.mark.parametrize(
    "case", CASES, ids=[f"{case[0]}-{number}" for number, case in enumerate(CASES)]
)
def test_layer_keeps_the_contract(case, tmp_path):
    name, config, inputs, *output_shape = case
    cls = getattr(keras_recbert.layers, name)
    run_layer_contract(cls, config, inputs, tmp_path, *output_shape)


def test_every_public_layer_has_a_case():
    assert {case[0] for case in CASES} == set(keras_recbert.layers.__all__)


def test_unknown_layer_is_an_attribute_error():
    with pytest.raises(AttributeError, match="attribute Attention"):
        keras_recbert.layers.Attention  # noqa: B018


@pytest.mark.parametrize("name", keras_recbert.layers.__all__)
def test_public_layer_is_registered_under_the_package(name):
    import keras

    cls = getattr(keras_recbert.layers, name)
    assert keras.saving.get_registered_name(cls) == f"keras_recbert>{name}"
