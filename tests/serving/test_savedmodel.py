import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from foreign_berts import minilm_folder
from harness import largest_difference
from savedmodels import CASES, FIRST, SECOND, SLOW, TEXTS
from tensorflow.core.protobuf import saved_model_pb2
from toy_texts import VOCABULARY, tiny_model

import keras_recbert
from keras_recbert.ops.implementation import MIN_XLA_WIDTH
from keras_recbert.serving import clean_process
from keras_recbert.serving.answers import (
    Predictor,
    format_answers,
    print_answers,
    savedmodel_predictor,
)
from keras_recbert.serving.clean_process import ask_in_clean_process
from keras_recbert.serving.savedmodel import foreign_ops, read_savedmodel

ODD = {
    "empty": "",
    "NUL": "a\0film",
    "not UTF-8": b"good \xff\xfe film",
    "emoji": "good \U0001f600\U0001f468\u200d\U0001f469 film",
    "right to left": "\u05e9\u05dc\u05d5\u05dd",
    "surrogate": "\ud83d",
    "long": "film " * 2000,
}


def tensors(inputs):
    return {name: tf.constant(values) for name, values in inputs.items()}


@pytest.mark.parametrize(
    "case",
    [
        # A process each, which loads TensorFlow.
        case if case == "swish" else pytest.param(case, marks=SLOW)
        for case in CASES
    ],
)
def test_eager_dataset_and_fresh_process_agree(written, case):
    it = written(case)
    eager = it.model(it.model.preprocessor(it.texts))
    predicted = it.model.predict(it.texts, batch_size=4, verbose=0)
    answers = {k: v.numpy() for k, v in it.model.answer(eager).items()}
    fresh = ask_in_clean_process(it.path, it.inputs)

    assert set(fresh) == set(answers)
    scores = np.asarray(fresh["scores"])
    differences = {
        "eager and tf.data": largest_difference(eager, predicted),
        "eager and fresh process": largest_difference(answers["scores"], scores),
    }
    print(case, differences)
    assert max(differences.values()) <= 1e-5
    assert np.ptp(scores, axis=0).max() > 0.01  # the texts are told apart
    if "label" in fresh:
        names = ["schlecht", "gr\u00fcn"]
        assert fresh["label_names"] == [names] * 6
        assert fresh["label"] == [names[index] for index in scores.argmax(axis=1)]
        np.testing.assert_allclose(scores.sum(axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize("case", CASES)
def test_signatures(written, case):
    it = written(case)
    loaded = it.loaded
    assert set(loaded.signatures) == {"serving_default", "ids", "tokenize"}
    default, ids = loaded.signatures["serving_default"], loaded.signatures["ids"]

    inputs = default.structured_input_signature[1]
    assert set(inputs) == {"text", "text_pair"} if it.num_texts == 2 else {"text"}
    for spec in inputs.values():
        assert spec.dtype == tf.string
        assert spec.shape.as_list() == [None]
    inputs = ids.structured_input_signature[1]
    assert set(inputs) == {"token_ids", "segment_ids", "padding_mask"}
    for spec in inputs.values():
        assert spec.dtype == tf.int32
        assert spec.shape.as_list() == [None, None]

    for outputs in (default.structured_outputs, ids.structured_outputs):
        found = {k: (v.dtype, v.shape.as_list()) for k, v in outputs.items()}
        if CASES[case][1] == "regressor":
            assert found == {"scores": (tf.float32, [None])}
        else:
            assert found == {
                "scores": (tf.float32, [None, 2]),
                "label_names": (tf.string, [None, 2]),
                "label": (tf.string, [None]),
            }


@pytest.mark.parametrize("case", ["swish", "scores"])
def test_ids_signature_needs_no_honest_mask(written, case):
    it = written(case)
    packed = it.model.preprocessor(it.texts)
    expected = it.ask(**tensors(it.inputs))["scores"]
    ids = it.loaded.signatures["ids"]
    mask = packed["padding_mask"].numpy()
    assert 0 in mask
    for padding_mask in (mask, np.ones_like(mask)):
        scores = ids(**{**packed, "padding_mask": tf.constant(padding_mask)})["scores"]
        assert largest_difference(scores, expected) <= 1e-5


@pytest.mark.parametrize("case", ["bert", "swish"])
def test_what_tokenize_gives_is_what_ids_takes(written, case):
    it = written(case)
    tokenize, ids = (it.loaded.signatures[name] for name in ("tokenize", "ids"))
    scores = ids(**tokenize(**tensors(it.inputs)))["scores"]
    assert largest_difference(scores, it.ask(**tensors(it.inputs))["scores"]) <= 1e-5
    masked = {name: ["a [MASK]film", "[MASK]"] for name in it.inputs}
    texts = tuple(masked.values()) if it.num_texts == 2 else masked["text"]
    expected = it.model.preprocessor.reading_masks()(texts)
    for name, found in tokenize(**tensors(masked)).items():
        np.testing.assert_array_equal(found, expected[name])
    of_pieces = it.model.preprocessor(texts)["token_ids"]
    assert of_pieces.shape != found.shape  # there [MASK] is cut into pieces


@pytest.mark.parametrize("bad", [-1, len(VOCABULARY), 2**30])
def test_ids_outside_the_vocabulary_are_an_error(written, bad):
    it = written("bert")
    packed = {key: tf.identity(x) for key, x in it.model.preprocessor(TEXTS).items()}
    packed["token_ids"] = tf.where(packed["padding_mask"] == 1, bad, 0)
    ids = it.loaded.signatures["ids"]
    rule = f"from 0 to {len(VOCABULARY) - 1}, the ids of the vocabulary"
    with pytest.raises(tf.errors.InvalidArgumentError, match=rule):
        ids(**packed)


def test_only_ops_of_tensorflow_and_its_text_library(written):
    for case in CASES:
        assert foreign_ops(written(case).path) == []


@SLOW  # a process that loads TensorFlow
def test_ops_are_those_of_a_process_without_keras(written):
    paths = [written(case).path for case in CASES]
    script = """
import pathlib, tensorflow as tf, tensorflow_text, sys
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow.python.framework import op_def_registry
for path in sys.argv[1:]:
    proto = saved_model_pb2.SavedModel()
    proto.ParseFromString(pathlib.Path(path, "saved_model.pb").read_bytes())
    (meta,) = proto.meta_graphs
    library = meta.graph_def.library.function
    nodes = [*meta.graph_def.node, *(n for f in library for n in f.node_def)]
    ops = {n.op for n in nodes} - {f.signature.name for f in library}
    assert len(nodes) > 300 and len(ops) > 30, (len(nodes), len(ops))
    assert any("Wordpiece" in op for op in ops), ops
    unknown = [op for op in ops if op_def_registry.get(op) is None]
    python = [op for op in ops if "PyFunc" in op or "Cudnn" in op or "Custom" in op]
    print(unknown, python)
"""
    result = subprocess.run(
        [sys.executable, "-I", "-c", script, *map(str, paths)],
        capture_output=True,
        text=True,
    )
    assert result.stdout == "[] []\n" * len(CASES), result.stderr[-2000:]


def written_variables(path):
    """Names and shapes of the variables in a SavedModel."""
    variables = tf.train.list_variables(str(path / "variables" / "variables"))
    return [(name, shape) for name, shape in variables if "OBJECT_GRAPH" not in name]


@pytest.mark.parametrize("case", ["swish", "scores"])
def test_each_weight_is_written_once(written, case, tmp_path):
    it = written(case)
    shapes = sorted(list(weight.shape) for weight in it.model.weights)
    packed = it.model.preprocessor(it.texts)
    logits = it.model(packed)
    it.model.export(tmp_path / "packed", verbose=False)
    for path in (it.path, tmp_path / "packed"):
        assert sorted(shape for _, shape in written_variables(path)) == shapes
        loaded = tf.saved_model.load(str(path))
        assert len(loaded.variables) == len(shapes)
        assert len(loaded.trainable_variables) == len(it.model.trainable_weights)
    # What Keras's own export gives: `serve`, and a signature of the same function.
    assert set(loaded.signatures) == {"serve", "serving_default"}
    assert largest_difference(loaded.serve(packed), logits) <= 1e-5


@SLOW  # a process that loads TensorFlow
def test_weights_of_two_devices_are_written_once(tmp_path):
    """In a process of its own, because devices are made before TensorFlow starts."""
    script = f"""
import sys
sys.path.insert(0, {str(pathlib.Path(__file__).parents[1])!r})
import tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
two = [tf.config.LogicalDeviceConfiguration()] * 2
tf.config.set_logical_device_configuration(cpu, two)
from toy_texts import tiny_model
with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
    model = tiny_model()
model.export_savedmodel("it")
variables = tf.train.list_variables("it/variables/variables")
print(len(variables) - 1, len(model.weights))
"""
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path
    )
    written, weights = result.stdout.split()
    assert written == weights


@SLOW
def test_a_real_model_takes_no_more_than_its_weights(tmp_path):
    model = keras_recbert.build(
        "bert_minilm", task="classifier", weights=minilm_folder(), num_classes=2
    )
    model.export_savedmodel(tmp_path / "it")
    model.export(tmp_path / "packed", verbose=False)
    weights = sum(weight.value.numpy().nbytes for weight in model.weights)
    for name in ("it", "packed"):
        files = [path for path in (tmp_path / name).rglob("*") if path.is_file()]
        size = sum(path.stat().st_size for path in files)
        print(f"{name}: {size / 1e6:.1f} MB for {weights / 1e6:.1f} MB of weights")
        assert size < 1.1 * weights


def test_foreign_ops_are_found(tmp_path):
    class Foreign(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
        def __call__(self, x):
            return tf.raw_ops.CudnnRNNParamsSize(
                num_layers=1, num_units=1, input_size=1, T=tf.float32, S=tf.int32
            ) + tf.cast(tf.size(x), tf.int32)

    module = Foreign()
    tf.saved_model.save(module, str(tmp_path / "it"), signatures=module.__call__)
    assert foreign_ops(tmp_path / "it") == ["CudnnRNNParamsSize"]


def left_to_xla(graph):
    """Names of the functions in a GraphDef that XLA must compile."""
    names = [
        function.signature.name
        for function in graph.library.function
        if function.attr["_XlaMustCompile"].b or function.attr["_XlaCompile"].b
    ]
    nodes = [*graph.node, *(n for f in graph.library.function for n in f.node_def)]
    return names + [
        node.name
        for node in nodes
        if node.attr["_XlaMustCompile"].b or node.attr["_XlaCompile"].b
    ]


@pytest.mark.parametrize(
    "name", ["swish_tiny", pytest.param("trans_blstm_tiny", marks=SLOW)]
)
def test_nothing_is_left_to_xla(name, tmp_path):
    """Though it runs compiled here, being wide enough: not every server has XLA."""
    wide = {"hidden_dim": MIN_XLA_WIDTH, "recurrent_dim": MIN_XLA_WIDTH}
    model = tiny_model(name, implementation="xla", **wide)
    packed = model.preprocessor(TEXTS)
    here = tf.function(model).get_concrete_function(packed)
    assert left_to_xla(here.graph.as_graph_def())

    model.export_savedmodel(tmp_path / name)
    proto = saved_model_pb2.SavedModel()
    proto.ParseFromString((tmp_path / name / "saved_model.pb").read_bytes())
    (meta,) = proto.meta_graphs
    assert len(meta.graph_def.library.function) > 2
    assert left_to_xla(meta.graph_def) == []
    scores = read_savedmodel(tmp_path / name)(text=tf.constant(TEXTS))["scores"]
    expected = model.answer(model(packed))["scores"]
    assert largest_difference(scores, expected) <= 1e-5
    again = tf.function(model).get_concrete_function(packed)
    assert left_to_xla(again.graph.as_graph_def())  # compiled here, as before


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("bert_tiny", "classifier"),
        ("swish_tiny", "regressor"),
        ("trans_blstm_tiny", "classifier"),
    ],
)
def test_mixed_bfloat16_is_written_as_it_is_cast(name, task, tmp_path):
    model = tiny_model(name, task=task, dtype="mixed_bfloat16", implementation="loop")
    whole = tiny_model(name, task=task, implementation="loop")
    for one, other in ((model, "it"), (whole, "whole")):
        one.export_savedmodel(tmp_path / other)
    assert model.encoder.policy.name == "mixed_bfloat16"  # left as it was
    sizes = [
        (tmp_path / it / "variables" / "variables.data-00000-of-00001").stat().st_size
        for it in ("it", "whole")
    ]
    assert sizes[0] < 0.7 * sizes[1]  # a few weights stay float32
    packed = model.preprocessor(TEXTS)
    expected = model.answer(model(packed))
    found = read_savedmodel(tmp_path / "it", "ids")(**packed)
    assert set(found) == set(expected)
    for key, values in expected.items():
        # TensorFlow fuses ops of a graph, whose last bits may differ.
        assert largest_difference(found[key], values) <= 1e-4


def test_export_of_keras_leaves_nothing_to_xla_either(tmp_path):
    model = tiny_model("swish_tiny", implementation="xla")
    model.export(tmp_path / "it", verbose=False)
    proto = saved_model_pb2.SavedModel()
    proto.ParseFromString((tmp_path / "it" / "saved_model.pb").read_bytes())
    assert left_to_xla(proto.meta_graphs[0].graph_def) == []


def test_odd_texts_are_answered(written):
    it = written("bert")
    answers = it.ask(
        text=tf.constant(
            [
                t if isinstance(t, bytes) else t.encode("utf-8", "surrogatepass")
                for t in ODD.values()
            ]
        )
    )
    scores = dict(zip(ODD, answers["scores"].numpy(), strict=True))
    for what, row in scores.items():
        assert np.all(np.isfinite(row)), what
        assert row.sum() == pytest.approx(1, rel=1e-5), what
    predicted = tf.nn.softmax(it.model.predict(list(ODD.values()), verbose=0))
    assert largest_difference(predicted, np.stack(list(scores.values()))) <= 1e-5
    # What is dropped makes no difference; what is left does.
    dropped = it.ask(text=tf.constant(["afilm", "good film", ""]))
    dropped = dropped["scores"].numpy()
    assert largest_difference(scores["NUL"], dropped[0]) <= 1e-6
    assert largest_difference(scores["not UTF-8"], dropped[1]) <= 1e-6
    assert largest_difference(scores["surrogate"], dropped[2]) <= 1e-6
    assert largest_difference(scores["emoji"], dropped[1]) > 1e-4


def test_no_texts_give_no_answers(written):
    answers = written("bert").ask(text=tf.constant([], tf.string))
    assert answers["scores"].shape == (0, 2)
    assert answers["label"].shape == (0,)


# Asking ------------------------------------------------------------------------


def test_the_clean_process_cannot_import_this_package():
    script = clean_process.STANDALONE.read_text().partition("def main")[0]
    # As it is run, from a folder that holds the package, and even when told where.
    result = subprocess.run(
        [sys.executable, "-I", "-c", script + "import keras_recbert"],
        cwd=pathlib.Path(clean_process.__file__).parents[2],
        capture_output=True,
        text=True,
    )
    assert result.returncode == 1
    assert "import of keras_recbert halted; None in sys.modules" in result.stderr


@SLOW  # two processes that load TensorFlow
def test_what_the_clean_process_says_when_it_fails(tmp_path, written):
    with pytest.raises(RuntimeError, match="did not answer in a fresh process:(.|\n)*"):
        ask_in_clean_process(tmp_path / "none", {"text": ["a"]})
    with pytest.raises(RuntimeError, match="KeyError: 'other'"):
        ask_in_clean_process(written("bert").path, {"text": ["a"]}, signature="other")


@SLOW  # a process that loads TensorFlow
def test_clean_process_reads_ids(written):
    it = written("bert")
    packed = it.model.preprocessor(TEXTS)
    inputs = {key: value.numpy().tolist() for key, value in packed.items()}
    json.dumps(inputs)
    by_ids = ask_in_clean_process(it.path, inputs, signature="ids")
    by_text = it.ask(**tensors(it.inputs))
    assert largest_difference(by_ids["scores"], by_text["scores"]) <= 1e-5


def test_reading_what_is_no_savedmodel(tmp_path):
    with pytest.raises(FileNotFoundError, match="no SavedModel at .*`recbert export`"):
        read_savedmodel(tmp_path)


def test_print_answers_checks_how_many_texts(written, capsys):
    single, pair = (
        (savedmodel_predictor(written(case).path), "m") for case in ("bert", "scores")
    )
    with pytest.raises(ValueError, match="takes 1 text.*an example. Leave --pairs out"):
        print_answers(*single, ["a", "x"], pairs=True)
    with pytest.raises(ValueError, match="takes 2 text.*an example. Add --pairs.$"):
        print_answers(*pair, ["a", "x"])
    with pytest.raises(ValueError, match="even number of texts. Received: 3 texts"):
        print_answers(*pair, ["a", "x", "a"], pairs=True)
    heads = {"tone": ("text",), "same": ("text", "text_pair")}
    several = Predictor(None, heads["same"], heads=heads)
    with pytest.raises(ValueError, match="Add --pairs, or name a head: --head tone.$"):
        print_answers(several, "m", ["a"])
    assert capsys.readouterr().out == ""
    print_answers(*pair, [FIRST[0], SECOND[0], FIRST[1], SECOND[1]], pairs=True)
    lines = capsys.readouterr().out.splitlines()
    expected = written("scores").model.predict((FIRST[:2], SECOND[:2]), verbose=0)
    assert lines == [
        f"{score:8.3f}  {a} | {b}"
        for score, a, b in zip(expected, FIRST, SECOND, strict=False)
    ]


def test_answers_are_one_line_each():
    outputs = {"scores": [[0.25, 0.75]], "label": [b"gr\xc3\xbcn"]}
    assert format_answers([("A\nfilm",)], outputs) == [
        "          gr\u00fcn  75.0 %  A film"
    ]
    assert format_answers([("a", "b")], {"scores": [1.5]}) == ["   1.500  a | b"]
    several = {
        "scores": [[0.9, 0.25, 0.5], [0.1, 0.0, 0.0]],
        "label_names": 2 * [[b"war", b"opera", b"long"]],
        "has_label": [[True, False, True], 3 * [False]],
    }
    assert format_answers([("a",), ("b",)], several) == [
        "war 90.0 %, long 50.0 %  a",
        "            no label  b",
    ]
    assert format_answers([("a",)], {"rank": [3]}) == ["rank 3  a"]
