import json
import shutil

import numpy as np
import pytest
import tensorflow as tf
import torch
from foreign_berts import PIECES, SIZES, outputs_of_torch, transformers_bert
from harness import assert_close, ragged_mask

import keras_recbert
from keras_recbert.convert.checkpoint import CheckpointError

QUERY = "bert/encoder/layer_1/attention/self/query/kernel"


def google_names(model):
    """Tensors of a `transformers` BERT under the names of google-research/bert.

    Written from the names in that project's modeling.py, not from this package's
    table.
    """
    tensors = {}
    for name, value in model.state_dict().items():
        value = value.numpy()
        if name.endswith("_embeddings.weight"):
            name = name.removesuffix(".weight")
        elif "LayerNorm" in name:
            name = name.replace(".weight", ".gamma").replace(".bias", ".beta")
        elif name.endswith(".weight"):
            name, value = name.removesuffix("weight") + "kernel", value.T
        name = name.replace("layer.", "layer_").replace(".", "/")
        tensors[f"bert/{name}"] = value
    return tensors


def save_tf1(tensors, prefix):
    """Writes tensors with TensorFlow 1's own `Saver`."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        variables = {
            name: tf.compat.v1.get_variable(name, initializer=value)
            for name, value in tensors.items()
        }
        session.run(tf.compat.v1.global_variables_initializer())
        saver = tf.compat.v1.train.Saver(variables)
        saver.save(session, str(prefix), write_meta_graph=False, write_state=False)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder as Google's archives have it, and the model whose weights it holds."""
    folder = tmp_path_factory.mktemp("tf1") / "uncased_L-2_H-12_A-3"
    folder.mkdir()
    model = transformers_bert()
    tensors = google_names(model)
    tensors["cls/predictions/output_bias"] = np.ones(13, "float32")
    tensors["bert/pooler/dense/bias/adam_m"] = np.ones(12, "float32")
    tensors["global_step"] = np.int64(1000)
    save_tf1(tensors, folder / "bert_model.ckpt")
    config = {
        "hidden_size": 12,
        "num_hidden_layers": 2,
        "num_attention_heads": 3,
        "intermediate_size": 20,
        "vocab_size": 13,
        "max_position_embeddings": 24,
        "type_vocab_size": 2,
        "hidden_act": "gelu",
    }
    (folder / "bert_config.json").write_text(json.dumps(config))
    (folder / "vocab.txt").write_text("\n".join(PIECES) + "\n")
    return folder, model, tensors


@pytest.fixture
def copied(written, tmp_path):
    """A copy of that folder, to damage."""
    shutil.copytree(written[0], tmp_path / "bert")
    return tmp_path / "bert"


def assert_same_outputs(encoder, model, lengths=(9, 5, 1)):
    rng = np.random.default_rng(0)
    shape = (len(lengths), max(lengths))
    batch = {
        "token_ids": rng.integers(0, model.config.vocab_size, shape, "int32"),
        "segment_ids": rng.integers(0, 2, shape, "int32"),
        "padding_mask": ragged_mask(lengths, max(lengths)),
    }
    outputs = encoder(batch)
    sequence, pooled = outputs_of_torch(model, batch)
    real = batch["padding_mask"].astype(bool)
    assert_close(outputs["sequence_output"].numpy()[real], sequence[real], 1e-5)
    assert_close(outputs["pooled_output"], pooled, 1e-5)


def test_outputs_equal_those_of_transformers(written):
    folder, model, tensors = written
    encoder = keras_recbert.load(folder)
    assert_same_outputs(encoder, model)
    assert {key: encoder.config[key] for key in SIZES} == SIZES
    assert encoder.preprocessor.tokenizer.vocabulary == tuple(PIECES)
    assert encoder.preprocessor.tokenizer.lowercase
    report = encoder.weights_report
    assert set(report.used) | set(report.unused) == set(tensors)
    assert sorted(report.unused) == [
        "bert/pooler/dense/bias/adam_m",
        "cls/predictions/output_bias",
        "global_step",
    ]


def test_a_checkpoint_may_be_named(written, copied):
    _, model, tensors = written
    moved = dict(tensors)
    moved["bert/pooler/dense/bias"] = moved["bert/pooler/dense/bias"] + 1.0
    save_tf1(moved, copied / "bert_model.ckpt-200")
    with pytest.raises(CheckpointError, match="holds several checkpoints: bert_model"):
        keras_recbert.load(copied)
    assert_same_outputs(keras_recbert.load(copied / "bert_model.ckpt"), model)
    later = keras_recbert.load(copied / "bert_model.ckpt-200")
    bias = {weight.path: weight for weight in later.weights}["pooler/bias"]
    assert np.array_equal(bias.numpy(), moved["bert/pooler/dense/bias"])


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda t: t.update({QUERY + "s": t.pop(QUERY)}), f"'{QUERY}'.*was it renamed"),
        (
            lambda t: t.update({QUERY: t[QUERY][:, :-1].copy()}),
            rf"'{QUERY}' has the shape \(12, 11\).*must be \(12, 12\)",
        ),
        (
            lambda t: t.update({QUERY: np.full((12, 12), np.inf, "float32")}),
            f"'{QUERY}' holds 144 of 144 numbers that are NaN or infinite",
        ),
    ],
)
def test_a_damaged_tensor_is_named(written, copied, change, message):
    tensors = dict(written[2])
    change(tensors)
    save_tf1(tensors, copied / "bert_model.ckpt")
    with pytest.raises(CheckpointError, match=message) as error:
        keras_recbert.load(copied)
    assert "bert_model.ckpt" in str(error.value)


def test_cut_files_are_named(copied):
    (data,) = copied.glob("*.data-*")
    data.write_bytes(data.read_bytes()[:-1000])
    with pytest.raises(CheckpointError, match="bert_model.ckpt: the tensor 'bert/"):
        keras_recbert.load(copied)
    data.unlink()
    with pytest.raises(CheckpointError, match="bert_model.ckpt.*cannot"):
        keras_recbert.load(copied)
    (copied / "bert_model.ckpt.index").write_bytes(b"no index")
    with pytest.raises(CheckpointError, match="cannot read the checkpoint"):
        keras_recbert.load(copied)


def test_the_config_is_needed(copied):
    (copied / "bert_config.json").unlink()
    with pytest.raises(CheckpointError, match="bert_config.json is missing"):
        keras_recbert.load(copied)


@pytest.mark.slow
def test_a_checkpoint_that_google_code_wrote(data_dir):
    folder = data_dir / "checkpoints" / "tiny_tf_bert_keras-bert"
    encoder = keras_recbert.load(folder)
    # The same numbers in transformers, put there by the names of its own attributes.
    import transformers

    reader = tf.train.load_checkpoint(str(folder / "bert_model.ckpt"))
    config = transformers.BertConfig(
        **json.loads((folder / "bert_config.json").read_text())
    )
    model = transformers.BertModel(config).eval()
    expected = google_names(model)
    state = {}
    for name, value in zip(model.state_dict(), expected.items(), strict=True):
        tensor = torch.tensor(reader.get_tensor(value[0]))
        kernel = value[0].endswith("/kernel")
        state[name] = tensor.T if kernel else tensor
    model.load_state_dict(state)
    assert_same_outputs(encoder, model)
    report = encoder.weights_report
    shapes = reader.get_variable_to_shape_map()
    assert len(report.used) + len(report.unused) == len(shapes) == 139
    for weight in encoder.weights:
        assert weight.path in report.copied
