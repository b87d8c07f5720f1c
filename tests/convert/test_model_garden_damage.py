"""Checkpoints of the Model Garden that are damaged or not BERT's are refused."""

import json

import numpy as np
import pytest
import tensorflow as tf
from model_garden_files import assert_official, change, of, tensors_of, write
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

import keras_recbert
from keras_recbert.convert.checkpoint import CheckpointError
from keras_recbert.convert.model_garden import read_tf_hub
from keras_recbert.convert.open_checkpoint import open_checkpoint

QUERY = "transformer/layer_1/self_attention/query/kernel"


@of("archive")
def test_renamed_tensor_names_file_and_tensor(folder):
    change(folder, lambda t: t.update({QUERY.replace("query", "qery"): t.pop(QUERY)}))
    with pytest.raises(
        CheckpointError,
        match=rf"bert_model.ckpt lacks the tensor '{QUERY}', which .* It has "
        r"'transformer/layer_1/self_attention/qery/kernel': was it renamed\?",
    ):
        open_checkpoint(folder)


@pytest.mark.parametrize(
    "name", ["word_embeddings/embeddings", "transformer/layer_0/intermediate/kernel"]
)
@of("archive")
def test_tensor_that_says_the_sizes_is_missed(name, folder):
    (folder / "bert_config.json").unlink()
    change(folder, lambda tensors: tensors.update({f"x{name}": tensors.pop(name)}))
    with pytest.raises(
        CheckpointError, match=rf"lacks the tensor '{name}', .* It has 'x{name}'"
    ):
        open_checkpoint(folder)


@of("archive")
def test_wrong_shape_names_file_tensor_and_both_shapes(folder):
    change(folder, lambda t: t.update({QUERY: t[QUERY].reshape(12, 12)}))
    with pytest.raises(
        CheckpointError,
        match=rf"bert_model.ckpt: the tensor '{QUERY}' has the shape \(12, 12\). By "
        r"the sizes in .*bert_config.json it must be \(12, 3, 4\)",
    ):
        open_checkpoint(folder)


@of("archive")
def test_wrong_rank_of_a_tensor_that_says_the_sizes(folder):
    (folder / "bert_config.json").unlink()
    name = QUERY.replace("1", "0")
    change(folder, lambda tensors: tensors.update({name: tensors[name].ravel()}))
    with pytest.raises(
        CheckpointError, match=rf"'{name}' has the shape \(144,\). .* it has 3 axes"
    ):
        open_checkpoint(folder)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@of("archive")
def test_number_that_is_not_finite_names_file_and_tensor(value, folder):
    def edit(tensors):
        tensors[QUERY][3, 1, 2] = value

    change(folder, edit)
    with pytest.raises(
        CheckpointError, match=rf"bert_model.ckpt: .*'{QUERY}' holds 1 of 144 numbers"
    ):
        keras_recbert.load(folder)


@of("archive", "tf_hub")
def test_truncated_data_file_names_file_and_tensor(folder):
    data = next(folder.rglob("*.data-00000-of-00001"))
    data.write_bytes(data.read_bytes()[:4000])
    prefix = data.name.removesuffix(".data-00000-of-00001")
    with pytest.raises(
        CheckpointError, match=f"{prefix}: the tensor '.+' cannot be read"
    ):
        keras_recbert.load(folder)


@of("archive")
def test_changed_bytes_name_file_and_tensor(folder):
    name = "transformer/layer_0/output/kernel"
    weight = tensors_of(open_checkpoint(folder))[name].tobytes()
    data = folder / "bert_model.ckpt.data-00000-of-00001"
    content = data.read_bytes()
    assert content.count(weight) == 1
    data.write_bytes(content.replace(weight, weight[4:] + weight[:4]))
    with pytest.raises(
        CheckpointError,
        match="bert_model.ckpt: the tensor 'model/.+/_output_dense/kernel/.+' cannot "
        f"be read .* It is the variable '{name}'",
    ):
        keras_recbert.load(folder)


@of("tf_hub")
def test_missing_index_names_the_file(folder):
    (folder / "variables" / "variables.index").unlink()
    with pytest.raises(
        CheckpointError, match="variables/variables: TensorFlow cannot read"
    ):
        open_checkpoint(folder)


@of("trainer")
def test_missing_index_of_a_run_says_what_is_there(folder):
    (folder / "ckpt-100.index").unlink()
    with pytest.raises(
        CheckpointError, match=r"holds no checkpoint that can be read. .*ckpt-100.data"
    ):
        open_checkpoint(folder)


@of("archive")
def test_config_with_fewer_layers_than_the_tensors(folder):
    config = json.loads((folder / "bert_config.json").read_text())
    config["num_hidden_layers"] = 1
    (folder / "bert_config.json").write_text(json.dumps(config))
    with pytest.raises(
        CheckpointError, match="says 1 layers, but .*ckpt holds the tensors of 2"
    ):
        open_checkpoint(folder)


@of("archive")
def test_two_encoders_are_refused(folder):
    tensors = tensors_of(open_checkpoint(folder))
    student = {f"student/{name}": value for name, value in tensors.items()}
    write(folder / "bert_model.ckpt", tensors | student)
    with pytest.raises(
        CheckpointError,
        match="holds 2 encoders: .*'student/word_embeddings/embeddings' at 'v39/",
    ):
        open_checkpoint(folder)


@of("archive")
def test_activation_other_than_gelu_is_refused(folder):
    config = json.loads((folder / "bert_config.json").read_text())
    (folder / "bert_config.json").write_text(json.dumps({**config, "hidden_act": "x"}))
    with pytest.raises(
        CheckpointError, match="bert_config.json: hidden_act must be 'gelu'.*'x'"
    ):
        open_checkpoint(folder)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "hidden_activation: gelu",
            "hidden_activation: relu",
            "must be 'gelu'.*'relu'",
        ),
        ("norm_first: false", "norm_first: true", "norm_first must be False.*True"),
        ("output_range: null", "output_range: 1", "output_range must be None.* 1"),
        ("embedding_size: null", "embedding_size: 6", "embedding_size must be .* 6"),
        ("num_layers: 2", "num_layers: 0", "num_layers must be a whole .* It is 0"),
        ("        vocab_size: 37\n", "", "vocab_size must be .* It is missing"),
        ("heads: 3", "heads: 5", "multiple of num_attention_heads. They are 12 and 5"),
        ("type: bert\n", "type: albert\n", "must be 'bert' or 'bert_v2'.*'albert'"),
        ("type: bert\n", "type: bert_v2\n", "bert_v2 must hold the sizes. It is None"),
        ("task:", "job:", "type must be 'bert' or 'bert_v2'. It is None"),
        ("runtime:", "runtime: [", "is not valid YAML"),
        ("task:", "x: !!python/name:os.system\ntask:", "is not valid YAML"),
    ],
)
@of("trainer")
def test_params_of_another_encoder_are_refused(old, new, message, folder):
    path = folder / "params.yaml"
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))
    with pytest.raises(CheckpointError, match=f"params.yaml.*{message}"):
        open_checkpoint(folder)


def swap(folder, ops):
    """Replaces operations in the graph of a SavedModel."""
    path = folder / "saved_model.pb"
    model = SavedModel.FromString(path.read_bytes())
    for graph in model.meta_graphs:
        for function in graph.graph_def.library.function:
            for node in function.node_def:
                node.op = ops.get(node.op, node.op)
    path.write_bytes(model.SerializeToString())


@of("tf_hub")
def test_savedmodel_with_exact_gelu_is_read(folder, expected):
    # A graph that TensorFlow refuses to load: Erf takes one tensor, Pow took two.
    swap(folder, {"Pow": "Erf"})
    assert_official(keras_recbert.load(folder), expected)


@of("tf_hub")
def test_savedmodel_with_another_activation_is_refused(folder):
    swap(folder, {"Pow": "Relu"})
    with pytest.raises(
        CheckpointError, match=r"saved_model.pb: nothing in its graph computes a GELU"
    ):
        open_checkpoint(folder)


@of("tf_hub")
def test_damaged_graph_names_the_file(folder):
    path = folder / "saved_model.pb"
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(CheckpointError, match="saved_model.pb is damaged"):
        read_tf_hub(folder)


def write_raw(prefix, tensors):
    """A checkpoint without the object graph that `tf.train.Checkpoint` adds."""
    tf.raw_ops.SaveV2(
        prefix=str(prefix),
        tensor_names=list(tensors),
        shape_and_slices=[""] * len(tensors),
        tensors=[tf.constant(value) for value in tensors.values()],
    )


@of("tf_hub")
def test_module_of_tf1_is_refused(folder):
    write_raw(folder / "variables" / "variables", {"module/bert/x": [1.0]})
    with pytest.raises(CheckpointError, match="no object graph .* modules of TF1"):
        open_checkpoint(folder)


@of("archive")
def test_damaged_object_graph_is_named(folder):
    graph = {"_CHECKPOINTABLE_OBJECT_GRAPH": b"\xff\xff no proto", "x": [1.0]}
    write_raw(folder / "bert_model.ckpt", graph)
    with pytest.raises(
        CheckpointError, match="'_CHECKPOINTABLE_OBJECT_GRAPH' is damaged"
    ):
        open_checkpoint(folder)


@of("archive")
def test_checkpoint_of_something_else_says_what_it_has(folder):
    write(folder / "bert_model.ckpt", {"dense/kernel": np.ones((2, 2), "float32")})
    with pytest.raises(
        CheckpointError,
        match="lacks the tensor 'word_embeddings/embeddings'.* It has.*pass what it",
    ):
        open_checkpoint(folder)
