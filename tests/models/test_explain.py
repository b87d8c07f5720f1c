"""What `explain` says is what runs; the argument `implementation` on its way down."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf
from harness import assert_close, build_shrunk, token_batch
from toy_texts import tiny_model

import keras_recbert
from keras_recbert.builder import encoder_arguments
from keras_recbert.config import FineTuningConfig
from keras_recbert.layers.bidirectional_lstm import BidirectionalLSTM
from keras_recbert.layers.swish_rnn import SwishRNN
from keras_recbert.models.explain import explain
from keras_recbert.models.recbert_encoder import RecBertEncoder
from keras_recbert.ops.implementation import portable_graphs
from keras_recbert.ops.matrix_product import matrix_product

NAMES = ("bert_tiny", "swish_tiny", "trans_blstm_tiny")
IMPLEMENTATIONS = {"reference", "loop", "packed", "xla"}
# Some layers at least as wide as XLA pays for, some not.
WIDE = {"hidden_dim": 256, "num_heads": 2}


def rows_of(explanation):
    return {row.what: row for row in explanation.rows}


# What runs ---------------------------------------------------------------------


def compiled_layers(encoder, training):
    """Number of layers that call a function that XLA must compile, as traced."""
    spec = {key: tf.TensorSpec((2, 5), "int32") for key in encoder.input}
    call = tf.function(lambda batch: encoder(batch, training=training))
    graph = call.get_concrete_function(spec).graph
    definitions = {
        one.signature.name: one for one in graph.as_graph_def().library.function
    }
    calls = [
        op
        for op in graph.get_operations()
        if op.type in ("PartitionedCall", "StatefulPartitionedCall")
        and definitions[op.get_attr("f").name].attr["_XlaMustCompile"].b
    ]
    # An op is named after the layer that it is in.
    return len({op.name.rpartition("/")[0] for op in calls})


@pytest.mark.parametrize(
    ("name", "implementation", "sizes"),
    [
        *((name, "auto", WIDE) for name in NAMES),
        *(pytest.param(name, "xla", {}, marks=pytest.mark.slow) for name in NAMES),
        ("bert_tiny", "auto", {}),
        ("swish_tiny", "loop", WIDE),
        ("trans_blstm_tiny", "reference", WIDE),
    ],
)
def test_the_rows_are_what_is_traced(name, implementation, sizes):
    sizes = {"num_layers": 1, "implementation": implementation, **sizes}
    encoder = build_shrunk(name, dropout=0.1, **sizes)
    rows = explain(encoder).rows

    def promised(column):
        return sum(r.num_layers for r in rows if getattr(r, column) == "xla")

    assert compiled_layers(encoder, training=True) == promised("training")
    assert compiled_layers(encoder, training=False) == promised("inference")
    with portable_graphs():
        assert compiled_layers(encoder, training=False) == 0
    assert promised("exported") == 0
    is_compiled = implementation == "xla" or sizes.get("hidden_dim") == 256
    if implementation in ("loop", "reference"):
        is_compiled = False
    assert (promised("training") > 3) is (promised("inference") > 0) is is_compiled


@pytest.mark.parametrize(
    ("name", "what", "cls", "op"),
    [
        ("swish_tiny", "SwishRNN", SwishRNN, "swish_rnn"),
        (
            "trans_blstm_tiny",
            "bidirectional LSTM",
            BidirectionalLSTM,
            "bidirectional_lstm",
        ),
    ],
)
@pytest.mark.parametrize("implementation", ["auto", "reference", "loop", "xla"])
def test_the_recurrences_are_asked_for_what_the_rows_say(
    monkeypatch, name, what, cls, op, implementation
):
    encoder = build_shrunk(name, implementation=implementation)
    asked = []
    layer_module = __import__(cls.__module__, fromlist=[op])
    real = getattr(layer_module, op)

    def spy(*args, **kwargs):
        asked.append(IMPLEMENTATIONS & {a for a in args if type(a) is str})
        return real(*args, **kwargs)

    monkeypatch.setattr(layer_module, op, spy)
    encoder(token_batch())
    row = rows_of(explain(encoder))[what]
    assert asked == [{row.inference}] * row.num_layers
    with portable_graphs(packing=True):
        encoder(token_batch())
    assert asked[row.num_layers :] == [{row.exported}] * row.num_layers


def test_rows_of_named_sizes():
    swish = rows_of(keras_recbert.explain("swish_base"))
    row = swish["SwishRNN"]
    assert (row.num_layers, row.width) == (12, 2048)
    assert (row.training, row.inference, row.exported) == ("xla", "xla", "loop")
    assert row.exported_reason == "a SavedModel must run where there is no XLA"
    assert "GELU" not in swish
    assert swish["dropout, residual, LayerNorm"].num_layers == 24
    lstm = rows_of(keras_recbert.explain("trans_blstm_base"))["bidirectional LSTM"]
    assert (lstm.num_layers, lstm.width, lstm.exported) == (12, 768, "packed")
    tiny = rows_of(keras_recbert.explain("bert_tiny", implementation="xla"))
    assert (tiny["GELU"].width, tiny["GELU"].reason) == (512, "asked for")
    # Six products a block would be counted here if queries and keys had their own.
    assert tiny["matrix products, float32"].num_layers == 2 * 4 + 1


def test_where_nothing_is_dropped_nothing_is_said_of_it():
    rows = rows_of(keras_recbert.explain("bert_tiny", dropout=0.0))
    assert not [what for what in rows if "dropout" in what]
    assert rows["residual, LayerNorm"].num_layers == 4


def test_beside_an_accelerator_xla_is_left_alone(monkeypatch):
    from keras_recbert.ops import implementation

    monkeypatch.setattr(implementation, "accelerators", lambda: ("GPU",))
    row = rows_of(keras_recbert.explain("swish_base"))["SwishRNN"]
    assert row.training == "loop"
    assert "XLA was compared on CPUs only" in row.reason


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_matrix_products_are_those_that_tensorflow_takes(dtype):
    library, fused = matrix_product(dtype)
    assert library in ("oneDNN", "Eigen")
    if library == "Eigen":
        assert fused is False
    if dtype == "float64":  # oneDNN has no such type
        assert (library, fused) == ("Eigen", False)


def test_the_printed_table_tells_the_rows():
    explanation = keras_recbert.explain(
        "swish_base", gradient_checkpointing=True, dtype="mixed_bfloat16"
    )
    first, second, *lines = str(explanation).splitlines()
    assert first == (
        "swish_base: 12 blocks of kind swish_rnn, 768 wide, mixed_bfloat16, "
        "implementation=auto, on CPU."
    )
    assert "each block twice" in second
    assert lines[0].split()[:3] == ["what", "layers", "width"]
    (line,) = [line for line in lines if line.startswith("SwishRNN")]
    words = "SwishRNN 12 2048 xla xla loop fuses what is not a matrix product"
    assert line.split() == words.split()
    assert "Why in a SavedModel: a SavedModel must run" in str(explanation)


def test_no_weight_is_filled(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a weight was filled")

    monkeypatch.setattr(keras.initializers.TruncatedNormal, "__call__", refuse)
    with pytest.raises(AssertionError, match="a weight was filled"):
        keras_recbert.build("bert_tiny")
    explanation = keras_recbert.explain("trans_blstm_large")
    assert rows_of(explanation)["bidirectional LSTM"].num_layers == 24


# Of what ------------------------------------------------------------------------


def test_saved_models_are_explained_as_they_were_saved(tmp_path):
    encoder = build_shrunk("swish_tiny", implementation="loop", step_size=2)
    encoder.save(tmp_path / "encoder.keras")
    encoder.save_preset(tmp_path / "preset")
    for path in ("encoder.keras", "preset"):
        path = tmp_path / path
        explanation = keras_recbert.explain(path)
        assert explanation == keras_recbert.explain(str(path))
        assert explanation.config == encoder.config
        assert explanation.name == "swish_tiny"
        assert rows_of(explanation)["SwishRNN"].training == "loop"
        other = rows_of(keras_recbert.explain(path, implementation="xla"))
        assert other["SwishRNN"].training == "xla"
        with pytest.raises(ValueError, match="takes no argument 'intermediate_dim'"):
            keras_recbert.explain(path, intermediate_dim=3)


def test_of_a_task_the_encoder_is_explained(tmp_path):
    model = tiny_model()
    model.save(tmp_path / "model.keras")
    model.save_preset(tmp_path / "preset")
    for path in ("model.keras", "preset"):
        explanation = keras_recbert.explain(tmp_path / path)
        assert explanation.config == model.encoder.config


def test_what_is_nowhere_is_told(tmp_path):
    message = "No model is called 'swish_bse'. Did you mean 'swish_base'.* no file or"
    with pytest.raises(ValueError, match=message):
        keras_recbert.explain("swish_bse")
    with pytest.raises(FileNotFoundError, match="There is no file none.keras"):
        keras_recbert.explain("none.keras")
    with pytest.raises(ValueError, match="holds no checkpoint that can be read"):
        keras_recbert.explain(tmp_path)
    with pytest.raises(ValueError, match="takes no argument 'implementaton'"):
        keras_recbert.explain("swish_tiny", implementaton="loop")


# The argument --------------------------------------------------------------------


@pytest.mark.parametrize("name", [*NAMES, "blstm_base"])
def test_implementation_reaches_every_layer(name):
    encoder = build_shrunk(name, implementation="loop")
    assert encoder.get_config()["implementation"] == "loop"
    asked = {
        layer.path: layer.implementation
        for layer in encoder._flatten_layers()
        if hasattr(layer, "implementation")
    }
    assert len(asked) > 2 * len(encoder.blocks)
    assert set(asked.values()) == {"loop"}, asked


def test_implementations_agree():
    encoders = [
        build_shrunk("swish_tiny", implementation=implementation)
        for implementation in ("auto", "reference", "loop", "xla")
    ]
    batch = token_batch()
    first, *others = (encoder(batch)["sequence_output"] for encoder in encoders)
    for other in others:
        assert_close(other, first)


def test_an_unknown_implementation_is_refused_before_any_work():
    message = "must be one of auto, reference, loop, xla. Received: .*'fast'"
    with pytest.raises(ValueError, match=message):
        keras_recbert.build("trans_blstm_large", implementation="fast")


def test_what_was_saved_before_there_was_the_argument_still_loads(tmp_path):
    encoder = build_shrunk("swish_tiny")
    batch = token_batch()
    expected = encoder(batch)["sequence_output"]
    for key in ("implementation", "gradient_checkpointing"):
        encoder.config.pop(key)
    encoder.save(tmp_path / "old.keras")
    encoder.save_preset(tmp_path / "old")
    written = json.loads((tmp_path / "old" / "config.json").read_text())
    assert "implementation" not in written["arguments"]
    for path in ("old.keras", "old"):
        loaded = keras_recbert.load(tmp_path / path)
        assert loaded.config["implementation"] == "auto"
        assert loaded.config["gradient_checkpointing"] is False
        assert_close(loaded(batch)["sequence_output"], expected, 1e-6)


def test_a_preset_starts_an_encoder_of_another_implementation(tmp_path):
    encoder = build_shrunk("swish_tiny", implementation="xla")
    encoder.save_preset(tmp_path / "preset")
    for implementation in ("auto", "loop"):
        again = build_shrunk(
            "swish_tiny",
            weights=tmp_path / "preset",
            implementation=implementation,
        )
        assert again.config["implementation"] == implementation
    arguments = encoder_arguments(tmp_path / "preset", implementation="loop")
    assert RecBertEncoder(**arguments).config["implementation"] == "loop"


def test_a_recipe_names_it_among_the_overrides():
    overrides = {"implementation": "loop", "num_layers": 1}
    config = FineTuningConfig(model="bert_tiny", overrides=overrides)
    encoder = keras_recbert.build(config.model, **config.overrides)
    assert encoder.config["implementation"] == "loop"
    assert np.all(np.isfinite(encoder(token_batch())["pooled_output"]))
