import pathlib
import resource

import keras
import numpy as np
import pytest
import safetensors.numpy
from harness import SHRUNK, build_shrunk, first_alike, randomize, token_batch
from presets import load
from toy_texts import VOCABULARY, review_pairs, reviews, tiny_model

import keras_recbert
from keras_recbert.blocks import block_kind, get_block
from keras_recbert.convert import preset
from keras_recbert.convert.checkpoint import CheckpointError
from keras_recbert.convert.preset import read_preset, write_preset
from keras_recbert.core.json_files import file_sha256
from keras_recbert.models.recbert_encoder import RecBertEncoder
from keras_recbert.tasks.text_classifier import TextClassifier
from keras_recbert.tasks.text_regressor import TextRegressor
from keras_recbert.text.text_preprocessor import TextPreprocessor
from keras_recbert.text.wordpiece_tokenizer import WordPieceTokenizer

TEXTS, _ = reviews()
BATCH = token_batch()
NAMES = keras_recbert.list_models()
# One name for each kind of block; the first that is registered.
KINDS = {
    card.sizes["block"]: card.name
    for card in map(keras_recbert.get_card, reversed(NAMES))
    if "block" in card.sizes
}


def assert_same_model(loaded, model, inputs=BATCH):
    """Class, arguments, weights and outputs, all bit by bit."""
    assert type(loaded) is type(model)
    # A preprocessor is compared where there is one: its layers are named anew.
    config, wanted = loaded.get_config(), model.get_config()
    fronts = [part.pop("preprocessor", None) is None for part in (config, wanted)]
    assert fronts[0] == fronts[1]
    assert config == wanted
    assert [weight.path for weight in loaded.weights] == [
        weight.path for weight in model.weights
    ]
    for weight, wanted in zip(loaded.weights, model.weights, strict=True):
        assert weight.dtype == wanted.dtype
        assert weight.trainable == wanted.trainable, weight.path
        np.testing.assert_array_equal(weight.numpy(), wanted.numpy(), weight.path)
    outputs, expected = map(keras.tree.flatten, (loaded(inputs), model(inputs)))
    for output, wanted in zip(outputs, expected, strict=True):
        assert output.dtype == wanted.dtype
        np.testing.assert_array_equal(output.numpy(), wanted.numpy())


def contents(folder):
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


# There and back ------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(set(map(first_alike, NAMES))))
def test_every_model_comes_back_bit_by_bit(name, tmp_path):
    encoder = build_shrunk(name)
    encoder.save_preset(tmp_path / "encoder")
    assert_same_model(keras_recbert.load(tmp_path / "encoder"), encoder)
    model = TextClassifier(encoder, num_classes=3, dropout=0.3)
    model.save_preset(tmp_path / "classifier")
    assert_same_model(keras_recbert.load(tmp_path / "classifier"), model)


@pytest.mark.parametrize("block", KINDS)
def test_every_kind_of_block_comes_back_as_a_regressor(block, tmp_path):
    model = TextRegressor(
        build_shrunk(KINDS[block]), freeze=1, layerwise_decay=0.9, pooling="mean"
    )
    model.save_preset(tmp_path / "regressor")
    assert_same_model(keras_recbert.load(tmp_path / "regressor"), model)


def test_a_block_of_ones_own_must_be_known_to_load(tmp_path, monkeypatch):
    sizes = {"num_layers": 1, "hidden_dim": 12, "num_heads": 3, "vocabulary_size": 9}
    with monkeypatch.context() as patch:
        patch.setattr(block_kind._KINDS, "entries", dict(block_kind._KINDS.entries))
        block_kind._KINDS.add("mine", get_block("transformer"))
        RecBertEncoder("mine", **sizes).save_preset(tmp_path / "preset")
        assert keras_recbert.load(tmp_path / "preset").config["block"] == "mine"
    with pytest.raises(CheckpointError) as caught:
        keras_recbert.load(tmp_path / "preset")
    message = str(caught.value)
    assert "No kind of block is called 'mine'" in message
    assert "import the module that adds it before you load" in message
    assert "opy the preset again" not in message


def test_every_kind_of_block_is_in_the_zoo():
    assert set(KINDS) == set(SHRUNK)


@pytest.mark.parametrize("block", [kind for kind in KINDS if kind != "blstm"])
def test_lora_adapters_come_back(block, tmp_path):
    model = TextClassifier(build_shrunk(KINDS[block]), lora_rank=2)
    randomize(model)  # the adapters too: at their start B is zero
    write_preset(model, tmp_path / "lora")
    tensors = safetensors.numpy.load_file(tmp_path / "lora" / "model.safetensors")
    adapters = [name for name in tensors if "lora_kernel" in name]
    assert len(adapters) >= 4
    assert all(np.any(tensors[name]) for name in adapters)
    assert_same_model(load(tmp_path / "lora"), model)


@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "float64", "bfloat16"])
def test_precision_comes_back(dtype, tmp_path):
    model = TextRegressor(build_shrunk("swish_tiny", dtype=dtype))
    write_preset(model, tmp_path / "preset")
    loaded = load(tmp_path / "preset")
    assert loaded.encoder.policy.name == dtype
    assert_same_model(loaded, model)


def test_texts_are_read_as_before(classifier, written):
    loaded = load(written)
    assert_same_model(loaded, classifier, classifier.preprocessor(TEXTS))
    assert loaded.label_names == ["bad", "good"]


def test_pairs_are_exported_as_pairs(tmp_path):
    model = tiny_model(task="regressor", truncation="only_second", lowercase=False)
    first, second, _ = review_pairs()
    model.fields = ("text", "text_pair")  # as `fit` does that sees pairs
    randomize(model)
    write_preset(model, tmp_path / "preset")
    loaded = load(tmp_path / "preset")
    assert loaded.fields == ("text", "text_pair")
    assert loaded.preprocessor.truncation == "only_second"
    assert not loaded.preprocessor.tokenizer.lowercase
    assert loaded.preprocessor.max_sequence_length == 64
    assert_same_model(loaded, model, model.preprocessor((first, second)))


def test_odd_word_pieces_come_back(tmp_path):
    pieces = [*VOCABULARY[:5], "a ", " b", "\u2028", "x\ry", "\u00a0", "\x0b", "\x85"]
    pieces += ["\ufeffx", "\u0130", "e\u0301", "\u00e9", "##\U0001f600", "\t", "\r#"]
    encoder = build_shrunk("bert_tiny")
    encoder.preprocessor = TextPreprocessor(
        WordPieceTokenizer(pieces, lowercase=False, strip_accents=True),
        sequence_length=7,
        max_sequence_length=9,
    )
    write_preset(encoder, tmp_path / "preset")
    preprocessor = load(tmp_path / "preset").preprocessor
    assert preprocessor.tokenizer.vocabulary == tuple(pieces)
    assert preprocessor.tokenizer.lowercase is False
    assert preprocessor.tokenizer.strip_accents is True
    assert (preprocessor.sequence_length, preprocessor.max_sequence_length) == (7, 9)


def test_the_same_model_gives_the_same_files(written, tmp_path):
    write_preset(load(written), tmp_path / "again")
    first, second = contents(written), contents(tmp_path / "again")
    assert first.keys() == second.keys()
    for name in first.keys() - {"card.json"}:
        assert first[name] == second[name], name


def test_a_name_scope_changes_no_name(tmp_path):
    with keras.name_scope("student"):
        model = RecBertEncoder(**build_shrunk("blstm_base").config, name="inner")
    assert model.weights[0].path.startswith("student/")
    write_preset(model, tmp_path / "preset")
    loaded = load(tmp_path / "preset")
    for weight, wanted in zip(loaded.weights, model.weights, strict=True):
        assert wanted.path == f"student/{weight.path}"
        np.testing.assert_array_equal(weight.numpy(), wanted.numpy())


def test_the_card_says_what_is_in_the_folder(classifier, tmp_path):
    folder = tmp_path / "new" / "preset"
    metrics = {
        "SST-2 validation accuracy": np.float32(0.5),
        "range": [90, 91.5],
        "runs": {},
    }
    write_preset(classifier, folder, metrics, source="toy texts", license="CC0-1.0")
    assert {file.name for file in folder.iterdir()} == {
        "card.json",
        "config.json",
        "model.safetensors",
        "vocab.txt",
    }
    modes = {file.stat().st_mode for file in folder.iterdir()}
    assert len(modes) == 1  # the weights as readable as the rest
    read = read_preset(folder)
    assert read.path == folder
    assert read.config["class"] == read.card["class"] == "TextClassifier"
    assert read.config["encoder"]["arguments"]["dtype"] == "float32"
    assert read.card["name"] == "bert_tiny"
    assert read.card["sizes"] == classifier.encoder.config
    assert read.card["metrics"] == {**metrics, "SST-2 validation accuracy": 0.5}
    assert (read.card["source"], read.card["license"]) == ("toy texts", "CC0-1.0")
    assert read.card["versions"]["keras_recbert"] == keras_recbert.__version__
    assert read.card["date"].endswith("+00:00")
    tensors = safetensors.numpy.load_file(folder / "model.safetensors")
    assert read.card["num_parameters"] == sum(t.size for t in tensors.values())
    assert set(tensors) == {weight.path for weight in classifier.weights}
    for name in ("config.json", "model.safetensors", "vocab.txt"):
        entry = read.card["files"][name]
        assert entry["bytes"] == (folder / name).stat().st_size
        assert entry["sha256"] == file_sha256(folder / name)


# What is not written -----------------------------------------------------------------


def test_an_existing_folder_is_refused_before_any_work(
    classifier, copied, monkeypatch, tmp_path
):
    def work(*args):
        raise AssertionError("work has started")

    monkeypatch.setattr(preset, "weights_by_name", work)
    with pytest.raises(FileExistsError, match="exists already.* overwrite=True"):
        write_preset(classifier, copied)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "plan.txt").write_text("mine")
    for overwrite, message in ((False, "exists already"), (True, "holds no card.json")):
        with pytest.raises(FileExistsError, match=message):
            write_preset(classifier, tmp_path / "notes", overwrite=overwrite)
    assert (tmp_path / "notes" / "plan.txt").read_text() == "mine"


def test_overwriting_replaces_the_whole_folder(copied):
    encoder = build_shrunk("bert_tiny")
    write_preset(encoder, copied, overwrite=True)
    assert not (copied / "vocab.txt").exists()
    assert_same_model(load(copied), encoder)
    assert [file.name for file in copied.parent.iterdir()] == ["preset"]


def test_a_crash_leaves_nothing(classifier, tmp_path, monkeypatch):
    def crash(tensors, file, metadata):
        file.write_bytes(b"half")
        raise OSError("No space left on device")

    monkeypatch.setattr(safetensors.numpy, "save_file", crash)
    with pytest.raises(OSError, match="No space left"):
        write_preset(classifier, tmp_path / "preset")
    assert not list(tmp_path.iterdir())


def test_a_full_disk_names_the_file_and_leaves_nothing(classifier, written, tmp_path):
    """Files may not grow to the size of the weights, as on a disk that is full."""
    size = (written / "model.safetensors").stat().st_size
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size - 64, limits[1]))
    try:
        with pytest.raises(OSError, match="preset/model.safetensors'$"):
            classifier.save_preset(tmp_path / "preset")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(tmp_path.iterdir()) == []


def test_a_stop_while_overwriting_leaves_the_old_preset(
    classifier, copied, monkeypatch
):
    before, rename = contents(copied), pathlib.Path.rename

    def stop(self, target):
        if self.name == "new":  # the old folder has made room already
            assert not copied.exists()
            raise KeyboardInterrupt
        return rename(self, target)

    monkeypatch.setattr(pathlib.Path, "rename", stop)
    with pytest.raises(KeyboardInterrupt):
        write_preset(classifier, copied, {"seeds": 4}, overwrite=True)
    assert contents(copied) == before
    assert [file.name for file in copied.parent.iterdir()] == ["preset"]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"metrics": {"accuracy": float("nan")}}, ValueError, "finite .*nan"),
        ({"metrics": {"accuracy": np.float32("inf")}}, ValueError, "finite .*inf"),
        ({"metrics": {"model": object()}}, ValueError, "of type object is no JSON"),
        ({"metrics": {1: 2.0}}, ValueError, "strings as keys.* Received: {1: 2.0}"),
        ({"metrics": [91.4]}, ValueError, r"`metrics` must be .* Received: \[91.4\]"),
        ({"source": 5}, TypeError, "`source` must be a str or None. Received: 5"),
        ({"license": ["MIT"]}, TypeError, r"`license` must be .*\['MIT'\]"),
    ],
)
def test_a_bad_card_is_refused(classifier, tmp_path, arguments, error, message):
    with pytest.raises(error, match=message):
        write_preset(classifier, tmp_path / "preset", **arguments)
    assert not list(tmp_path.iterdir())


def test_diverged_weights_are_not_written(tmp_path):
    model = build_shrunk("bert_tiny")
    model.pooler.bias.assign(np.full(12, np.nan))
    with pytest.raises(ValueError, match="weight 'pooler/bias' holds NaN .* diverge"):
        write_preset(model, tmp_path / "preset")
    assert not list(tmp_path.iterdir())


def test_weights_that_no_argument_names_are_not_written(tmp_path):
    adapted = build_shrunk("bert_tiny")
    adapted.blocks[1].attention.output_dense.enable_lora(2)
    quantized = build_shrunk("bert_tiny")
    quantized.pooler.quantize("int8")
    for model, message in (
        (adapted, "has 31 weights, and it has 33; they agree up to number 21"),
        (quantized, "cannot be a preset.*`quantize`"),
    ):
        with pytest.raises(ValueError, match=message):
            write_preset(model, tmp_path / "preset")
    assert not list(tmp_path.iterdir())


class Wider(RecBertEncoder):
    """A class of a user's own, which is built with other arguments."""

    def __init__(self, factor, **kwargs):
        super().__init__(**kwargs)

    def get_config(self):
        return {key: v for key, v in super().get_config().items() if key != "factor"}


class Shouting(TextPreprocessor):
    """A preprocessor of a user's own."""


def test_classes_of_ones_own_are_not_written(tmp_path):
    model = Wider(2, **build_shrunk("bert_tiny").config)
    with pytest.raises(ValueError, match="arguments do not build it again .*'factor'"):
        write_preset(model, tmp_path / "preset")
    encoder = build_shrunk("bert_tiny")
    encoder.preprocessor = Shouting(WordPieceTokenizer(VOCABULARY))
    with pytest.raises(ValueError, match="that is registered .* with a Shouting"):
        write_preset(encoder, tmp_path / "preset")
    assert not list(tmp_path.iterdir())


def test_word_pieces_that_no_file_can_hold_are_refused(tmp_path):
    encoder = build_shrunk("bert_tiny")
    for pieces, message in (
        (["\ufeffy", *VOCABULARY], "cannot be the first .* a byte order mark"),
        ([*VOCABULARY, "y\r"], r"index 26: 'y\\r' holds a line end"),
    ):
        encoder.preprocessor = TextPreprocessor(WordPieceTokenizer(pieces))
        with pytest.raises(ValueError, match=message):
            write_preset(encoder, tmp_path / "preset")
    assert not list(tmp_path.iterdir())
