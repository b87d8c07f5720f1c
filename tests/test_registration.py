"""Keras finds every class of the package in a process that only imported it."""

import ast
import importlib.util
import pathlib
import re
import subprocess
import sys
import textwrap
import zipfile

import keras
import numpy as np
import pytest
from harness import build_shrunk, token_batch
from layers.test_layer_contract import CASES
from toy_texts import VOCABULARY, tiny_model

import keras_recbert
from keras_recbert.heads.regression import MeanRowSquaredError, RowSquaredError
from keras_recbert.losses import DistillationLoss, TeacherAgreement
from keras_recbert.registration import (
    CLASSES,
    AfterImport,
    LazyClass,
    call_after_import,
    register_classes,
)
from keras_recbert.tasks.fine_tuning_optimizer import fine_tuning_optimizer
from keras_recbert.tasks.optimizers import Adadelta, AdamW
from keras_recbert.tasks.partial_training import learning_rate_factors

PACKAGE = pathlib.Path(keras_recbert.__file__).parent
NAMES = [(module, name) for module, names in CLASSES.items() for name in names]


def registered_in(path):
    """Names of the classes of a file that are registered with Keras."""
    return tuple(
        node.name
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
        and any(
            "register_keras_serializable" in ast.dump(d) for d in node.decorator_list
        )
    )


def test_the_table_has_every_registered_class():
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        if names := registered_in(path):
            module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
            found[module] = names
    assert found == CLASSES


@pytest.mark.parametrize("module, name", NAMES)
def test_a_stand_in_gives_the_class_of_its_name(module, name):
    lazy = LazyClass(f"keras_recbert.{module}", name)
    assert repr(lazy) == f"<class keras_recbert.{module}.{name}, not imported yet>"
    assert keras.saving.get_registered_name(lazy.load()) == f"keras_recbert>{name}"
    assert lazy.from_config == lazy.load().from_config


def test_a_stand_in_builds_and_yields_to_the_class(monkeypatch):
    known = keras.saving.get_custom_objects()
    registered = dict(known)
    for _, name in NAMES:
        monkeypatch.delitem(known, f"keras_recbert>{name}", raising=False)
    register_classes(keras)
    assert isinstance(known["keras_recbert>SwishRNN"], LazyClass)
    layer = keras_recbert.layers.SwishRNN(4)
    again = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(layer)
    )
    assert type(again) is keras_recbert.layers.SwishRNN
    # What is registered already stays.
    known.update(registered)
    register_classes(keras)
    assert known["keras_recbert>SwishRNN"] is keras_recbert.layers.SwishRNN


def test_a_function_is_called_when_its_module_is_imported(tmp_path, monkeypatch):
    (tmp_path / "module_of_a_test.py").write_text("value = 3\n")
    monkeypatch.syspath_prepend(tmp_path)
    seen = []
    call_after_import("module_of_a_test", lambda module: seen.append(module.value))
    assert importlib.util.find_spec("module_of_a_test") is not None
    assert seen == []  # found, not imported
    import module_of_a_test  # noqa: F401

    assert seen == [3]
    assert not any(
        isinstance(finder, AfterImport) and finder.name == "module_of_a_test"
        for finder in sys.meta_path
    )
    call_after_import("module_of_a_test", lambda module: seen.append(module.value))
    assert seen == [3, 3]


def test_a_module_that_is_not_there_stays_missing():
    finder = AfterImport("module_of_nobody", print)
    sys.meta_path.insert(0, finder)
    try:
        with pytest.raises(ModuleNotFoundError, match="module_of_nobody"):
            import module_of_nobody  # noqa: F401
    finally:
        sys.meta_path.remove(finder)


# In new processes ------------------------------------------------------------------

LOAD = """
    import pathlib, sys
    import {first}
    assert ("tensorflow" in sys.modules) == ("keras" in sys.modules)
    import keras, keras_recbert
    import numpy as np

    batch = dict(np.load(sys.argv[1]))
    for path in map(pathlib.Path, sys.argv[2:]):
        model = keras.models.load_model(path)
        inputs = {{
            key: batch[key][:, None] if symbol.ndim > batch[key].ndim else batch[key]
            for key, symbol in model.input.items()
        }}
        found = keras.tree.flatten(model(inputs))[0]
        expected = np.load(path.with_suffix(".npy"))
        assert np.max(np.abs(np.asarray(found) - expected)) < 1e-5, path
    print(len(sys.argv) - 2)
"""
# Made by the constructor of a model, never read from a file.
NOT_IN_FILES = {"LoraAdapters", "PoolToken", "TokenEmbedding"}


def models(batch):
    """Models that together have an object of every class in their files."""
    yield build_shrunk("bi_attentive_student")
    for name in ("swish_tiny", "trans_blstm_tiny", "trans_blstm_1_base", "blstm_base"):
        yield build_shrunk(name)
    yield tiny_model(task="multilabel_classifier", label_names=["good", "long"])
    regressor = tiny_model(task="regressor")
    regressor.compile(
        "adam", RowSquaredError(), weighted_metrics=[MeanRowSquaredError("mse")]
    )
    yield regressor
    yield tiny_model(lora_rank=2)
    yield tiny_model(long_texts="windows")
    words = [piece.replace("##", "behind") for piece in VOCABULARY]
    yield keras_recbert.build(
        "bilstm_student",
        task="classifier",
        vocabulary=words,
        num_classes=2,
        vector_dim=3,
    )
    yield tiny_model(task="question_answering")
    yield tiny_model(task="multiple_choice")
    yield build_shrunk("bi_attentive_word_student")
    tagger = tiny_model(task="token_classifier", label_names=["O", "B-person"])
    head = tagger.head
    tagger.compile("adam", head.loss(), weighted_metrics=head.metrics())
    yield tagger
    layerwise = tiny_model()
    factors = learning_rate_factors(layerwise, 0.5)
    layerwise.compile(fine_tuning_optimizer(10, rate_factors=factors), "mse")
    yield layerwise
    adadelta = tiny_model()
    loss, metrics = DistillationLoss(), [TeacherAgreement()]
    adadelta.compile(Adadelta(1e-3), loss, weighted_metrics=metrics)
    yield adadelta
    objectives = {"masked_lm": None, "next_sentence": None, "bigram_shift": None}
    pretrainer = tiny_model(task="pretrainer", objectives=objectives)
    pretrainer.compile_for_pretraining(AdamW(1e-3))
    yield pretrainer
    for number, (name, config, inputs, *_) in enumerate(CASES):
        inputs = {f"{number}_{key}": value for key, value in inputs.items()}
        batch |= inputs
        symbols = {
            key: keras.Input(value.shape[1:], dtype=value.dtype, name=key)
            for key, value in inputs.items()
        }
        layer = getattr(keras_recbert.layers, name)(**config)
        yield keras.Model(symbols, layer(*symbols.values()))


@pytest.mark.slow  # two processes that import TensorFlow
def test_keras_loads_every_model_in_a_new_process(tmp_path):
    batch = {**token_batch(sequence_length=11), "mask_positions": np.ones((3, 2), int)}
    batch["token_ids"] %= len(VOCABULARY)
    files, known = [], set()
    for number, model in enumerate(models(batch)):
        path = tmp_path / f"{number}.keras"
        model.save(path)
        inputs = {  # one choice each, one window each
            key: batch[key][:, None] if symbol.ndim > batch[key].ndim else batch[key]
            for key, symbol in model.input.items()
        }
        np.save(path.with_suffix(".npy"), keras.tree.flatten(model(inputs))[0])
        with zipfile.ZipFile(path) as archive:
            config = archive.read("config.json").decode()
        known.update(re.findall("keras_recbert>([A-Za-z]+)", config))
        files.append(path)
    assert known == {name for _, name in NAMES} - NOT_IN_FILES
    np.savez(tmp_path / "batch.npz", **batch)
    processes = {
        first: subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(LOAD.format(first=first))]
            + [str(path) for path in (tmp_path / "batch.npz", *some)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for first, some in (("keras_recbert", files), ("keras", files[5:7]))
    }
    for process, count in zip(processes.values(), (len(files), 2), strict=True):
        output, error = process.communicate(timeout=300)
        assert process.returncode == 0, error
        assert output.split() == [str(count)]
