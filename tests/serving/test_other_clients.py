"""A bundle asked by programs that are not this package: C, and TensorFlow's command."""

import pathlib
import shutil
import subprocess

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_text
from tensorflow.core.protobuf import saved_model_pb2
from toy_texts import tiny_model

from keras_recbert.serving.bundle import write_bundle
from keras_recbert.serving.savedmodel import saved_model_cli_line

TEXTS = ["a good film.", "", "Straße, \U0001f600 and a film " * 9, "dull"]
SOURCE = pathlib.Path(__file__).with_name("saved_model_client.c")
LIBRARIES = ("_fast_wordpiece_tokenizer.so", "_normalize_ops.so", "_regex_split_ops.so")


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """Path of a version, and the scores of the texts as the model gives them."""
    model = tiny_model("swish_tiny", label_names=["bad", "good"])
    path = write_bundle(model, tmp_path_factory.mktemp("bundles") / "films", 1)
    return path, tf.nn.softmax(model.predict(TEXTS, verbose=0)).numpy()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler, cc")
def test_a_program_in_c_has_the_same_scores(asked, tmp_path):
    path, expected = asked
    folder = pathlib.Path(tf.sysconfig.get_lib())
    libraries = [folder / f"libtensorflow_{name}.so.2" for name in ("cc", "framework")]
    program = tmp_path / "client"
    subprocess.run(
        ["cc", "-std=c11", "-Wall", SOURCE, "-o", program]
        + ["-I", tf.sysconfig.get_include(), *libraries, f"-Wl,-rpath,{folder}"],
        check=True,
    )
    proto = saved_model_pb2.SavedModel()
    proto.ParseFromString((path / "saved_model.pb").read_bytes())
    signature = proto.meta_graphs[0].signature_def["serving_default"]
    names = signature.inputs["text"].name, signature.outputs["scores"].name
    (tmp_path / "texts").write_text("\n".join([*TEXTS, ""]), encoding="utf-8")
    ops = pathlib.Path(tensorflow_text.__file__).parent / "python" / "ops"
    ended = subprocess.run(
        [program, path, *names, tmp_path / "texts", *(ops / one for one in LIBRARIES)],
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    found = np.array([line.split() for line in ended.stdout.splitlines()], "float32")
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert np.ptp(expected[:, 0]) > 1e-3


@pytest.mark.slow
def test_the_command_of_tensorflow_has_the_same_scores(asked):
    path, _ = asked
    command = saved_model_cli_line(path)
    ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    served = tf.saved_model.load(str(path)).signatures["serving_default"]
    scores = served(text=tf.constant(["a sentence"]))["scores"].numpy()
    assert "Result for output key scores:" in ended.stdout
    printed = ended.stdout.split("key scores:")[1].strip().splitlines()[0]
    found = np.array(printed.strip("[]").split(), "float32")
    np.testing.assert_allclose(found, scores[0], atol=1e-5)
