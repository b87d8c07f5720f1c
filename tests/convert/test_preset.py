import json
import pathlib
import resource
import shutil

import keras
import numpy as np
import pytest
import safetensors.numpy
from harness import SHRUNK, build_shrunk, randomize, token_batch
from toy_texts import VOCABULARY, review_pairs, reviews, tiny_model

import keras_recbert
from keras_recbert.blocks import block_kind, get_block
from keras_recbert.convert import preset
from keras_recbert.convert.checkpoint import CheckpointError
from keras_recbert.convert.preset import load_preset, read_preset, write_preset
from keras_recbert.convert.preset_files import checksum_of_card
from keras_recbert.core.json_files import file_sha256, to_json
from keras_recbert.models.backbone import RecBertBackbone
from keras_recbert.tasks.text_classifier import TextClassifier
from keras_recbert.tasks.text_regressor import TextRegressor
from keras_recbert.text.text_preprocessor import TextPreprocessor
from keras_recbert.text.wordpiece_tokenizer import WordPieceTokenizer

CLASSES = {
    cls.__name__: cls for cls in (RecBertBackbone, TextClassifier, TextRegressor)
}
TEXTS, _ = reviews()
BATCH = token_batch()
# One name for each kind of block; the first that is registered.
KINDS = {
    keras_recbert.get_card(name).sizes["block"]: name
    for name in reversed(keras_recbert.list_models())
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


def load(folder):
    return load_preset(folder, CLASSES)


def contents(folder):
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


def change_json(file, change):
    content = json.loads(file.read_text())
    change(content)
    file.write_text(to_json(content))


def sign(folder):
    """Makes the card agree with the files, as somebody who means harm would."""

    def update(card):
        for name, entry in card["files"].items():
            if (folder / name).is_file():
                entry["bytes"] = (folder / name).stat().st_size
                entry["sha256"] = file_sha256(folder / name)
        card["sha256"] = checksum_of_card(card)

    change_json(folder / "card.json", update)


@pytest.fixture(scope="module")
def classifier():
    """A classifier with texts; tests leave it alone."""
    model = tiny_model(label_names=["bad", "good"], pooling="mean", sequence_length=16)
    randomize(model)
    return model


@pytest.fixture(scope="module")
def written(classifier, tmp_path_factory):
    folder = tmp_path_factory.mktemp("presets") / "classifier"
    write_preset(classifier, folder, {"SST-2 dev accuracy": 91.4, "seeds": 3})
    return folder


@pytest.fixture
def copied(written, tmp_path):
    """A preset that a test may damage."""
    return pathlib.Path(shutil.copytree(written, tmp_path / "preset"))


# There and back ------------------------------------------------------------------


@pytest.mark.parametrize("name", keras_recbert.list_models())
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
        patch.setitem(block_kind._KINDS, "mine", get_block("transformer"))
        RecBertBackbone("mine", **sizes).save_preset(tmp_path / "preset")
        assert keras_recbert.load(tmp_path / "preset").config["block"] == "mine"
    with pytest.raises(CheckpointError) as caught:
        keras_recbert.load(tmp_path / "preset")
    message = str(caught.value)
    assert "Received: block='mine'" in message
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
    assert loaded.backbone.policy.name == dtype
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
    front = load(tmp_path / "preset").preprocessor
    assert front.tokenizer.vocabulary == tuple(pieces)
    assert front.tokenizer.lowercase is False
    assert front.tokenizer.strip_accents is True
    assert (front.sequence_length, front.max_sequence_length) == (7, 9)


def test_the_same_model_gives_the_same_files(written, tmp_path):
    write_preset(load(written), tmp_path / "again")
    first, second = contents(written), contents(tmp_path / "again")
    assert first.keys() == second.keys()
    for name in first.keys() - {"card.json"}:
        assert first[name] == second[name], name


def test_a_name_scope_changes_no_name(tmp_path):
    with keras.name_scope("student"):
        model = RecBertBackbone(**build_shrunk("blstm_base").config, name="inner")
    assert model.weights[0].path.startswith("student/")
    write_preset(model, tmp_path / "preset")
    loaded = load(tmp_path / "preset")
    for weight, wanted in zip(loaded.weights, model.weights, strict=True):
        assert wanted.path == f"student/{weight.path}"
        np.testing.assert_array_equal(weight.numpy(), wanted.numpy())


def test_the_card_says_what_is_in_the_folder(classifier, tmp_path):
    folder = tmp_path / "new" / "preset"
    metrics = {"SST-2 dev accuracy": np.float32(0.5), "range": [90, 91.5], "runs": {}}
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
    assert read.config["backbone"]["arguments"]["dtype"] == "float32"
    assert read.card["name"] == "bert_tiny"
    assert read.card["sizes"] == classifier.backbone.config
    assert read.card["metrics"] == {**metrics, "SST-2 dev accuracy": 0.5}
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


# Damage ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["card.json", "config.json", "model.safetensors", "vocab.txt"]
)
def test_one_flipped_byte_is_found(copied, name):
    content = bytearray((copied / name).read_bytes())
    for index in (content.find(b"9"), len(content) // 2, len(content) - 2):
        changed = bytearray(content)
        changed[index] ^= 1
        (copied / name).write_bytes(changed)
        with pytest.raises(CheckpointError, match=f"{name}.*"):
            load(copied)


def test_the_sums_are_shown(copied):
    file = copied / "vocab.txt"
    wanted = file_sha256(file)
    file.write_bytes(file.read_bytes().replace(b"good", b"food"))
    message = f"vocab.txt was changed or damaged: its sha256 is {file_sha256(file)}"
    with pytest.raises(CheckpointError, match=f"{message}, and .* {wanted}. Copy the"):
        read_preset(copied)


def test_a_changed_metric_is_found(copied):
    change_json(
        copied / "card.json", lambda card: card["metrics"].update({"seeds": 30})
    )
    with pytest.raises(
        CheckpointError, match="card.json was changed or damaged: its s"
    ):
        load(copied)


def test_a_cut_file_is_found(copied):
    file = copied / "model.safetensors"
    size = file.stat().st_size
    file.write_bytes(file.read_bytes()[:-7])
    message = f"model.safetensors was .*its bytes is {size - 7}, and .* be {size}"
    with pytest.raises(CheckpointError, match=message):
        load(copied)
    sign(copied)
    with pytest.raises(CheckpointError, match="model.safetensors is damaged or cut"):
        load(copied)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "vocab.txt"])
def test_a_missing_file_is_named(copied, name):
    (copied / name).unlink()
    with pytest.raises(CheckpointError, match=f"{name} is missing, which card.json"):
        load(copied)


def test_load_tells_a_preset_that_lost_its_card(copied):
    (copied / "card.json").unlink()
    for load in (
        keras_recbert.load,
        lambda path: keras_recbert.build("bert_tiny", weights=path),
    ):
        with pytest.raises(FileNotFoundError, match="card.json is missing"):
            load(copied)


def test_a_folder_without_a_card_is_no_preset(copied, tmp_path):
    (copied / "card.json").unlink()
    with pytest.raises(FileNotFoundError, match="card.json is missing. `model.save_p"):
        load(copied)
    with pytest.raises(FileNotFoundError, match="There is no preset at .*nowhere"):
        load(tmp_path / "nowhere")


# A card that agrees with the damage ------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda config: config.update({"class": "os.system"}),
            "config.json says that the model is a 'os.system', card.json",
        ),
        (
            lambda config: config["backbone"].update({"class": "os.system"}),
            "the class must be one of 'RecBertBackbone', 'TextClassifier', "
            "'TextRegressor'. It is 'os.system'",
        ),
        (
            lambda config: config["backbone"].update({"class": ["os"]}),
            r"a class is a string. It is \['os'\]",
        ),
        (
            lambda config: config["backbone"]["arguments"].update(
                {"dtype": {"module": "os", "class_name": "system", "config": {}}}
            ),
            "backbone.arguments must hold numbers, strings and lists",
        ),
        (
            lambda config: config["arguments"].update({"shell": "true"}),
            "does not describe a model .*'shell'",
        ),
        (
            lambda config: config["backbone"]["arguments"].update({"num_layers": -1}),
            "does not describe a model .*num_layers=-1",
        ),
        (
            lambda config: config["arguments"].pop("fields"),
            "does not describe a model .*'fields'",
        ),
        (
            lambda config: config["preprocessor"]["arguments"].update(
                {"truncation": "none"}
            ),
            "does not describe a model .*truncation='none'",
        ),
        (
            lambda config: config.update({"preprocessor": None}),
            "card.json must name vocab.txt if and only if",
        ),
        (
            lambda config: config.update({"module": "os"}),
            r"Missing: \[\]. Unknown: \['module'\]",
        ),
        (
            lambda config: config["preprocessor"].pop("lowercase"),
            r"preprocessor must have .* Missing: \['lowercase'\]",
        ),
        (
            lambda config: config.update({"backbone": ["RecBertBackbone"]}),
            "backbone must be a JSON object",
        ),
        (
            lambda config: config.update({"format_version": 3}),
            "config.json: the format version is 3. This .* reads version 2",
        ),
    ],
)
def test_a_config_that_is_none_is_refused(copied, change, message):
    change_json(copied / "config.json", change)
    sign(copied)
    with pytest.raises(CheckpointError, match=message):
        load(copied)


def test_a_class_of_another_name_is_never_called(copied):
    called = []
    change_json(copied / "config.json", lambda config: config.update({"class": "f"}))
    change_json(copied / "card.json", lambda card: card.update({"class": "f"}))
    sign(copied)
    with pytest.raises(CheckpointError, match="config.json: the class .* It is 'f'"):
        load_preset(copied, {"g": called.append})
    assert not called


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda card: card["files"].update({"../run.sh": {}}),
            r"files must have .* Unknown: \['../run.sh'\]",
        ),
        (
            lambda card: card["files"].pop("model.safetensors"),
            r"files must have .* Missing: \['model.safetensors'\]",
        ),
        (
            lambda card: card["files"].pop("vocab.txt"),
            "card.json must name vocab.txt if and only if",
        ),
        (
            lambda card: card["files"].update({"config.json": 5}),
            "config.json must be a JSON object. It is 5",
        ),
        (
            lambda card: card.update({"format_version": 7}),
            "card.json: the format version is 7. This .*'tensorflow'",
        ),
        (lambda card: card.pop("license"), r"Missing: \['license'\]"),
        (lambda card: card.update({"run": "sh"}), r"Unknown: \['run'\]"),
    ],
)
def test_a_card_that_is_none_is_refused(copied, change, message):
    change_json(copied / "card.json", change)
    change_json(
        copied / "card.json",
        lambda card: card.update({"sha256": checksum_of_card(card)}),
    )
    with pytest.raises(CheckpointError, match=message):
        load(copied)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tensors: tensors.pop("head/bias"), "lacks the tensor 'head/bias'. The"),
        (
            lambda tensors: tensors.update({"head/scale": tensors["head/bias"]}),
            "holds, beside those of the model, the tensor 'head/scale'",
        ),
        (
            lambda tensors: tensors.update({"head/bias": np.zeros(3, "float32")}),
            r"the tensor 'head/bias' has .*\(\(3,\), 'F32'\).* be \(\(2,\), 'F32'\)",
        ),
        (
            lambda tensors: tensors.update({"head/bias": np.zeros(2, "float64")}),
            r"the tensor 'head/bias' has .*\(\(2,\), 'F64'\)",
        ),
        (
            lambda tensors: tensors["head/kernel"].fill(np.nan),
            "the tensor 'head/kernel' holds NaN or infinite numbers",
        ),
    ],
)
def test_wrong_tensors_are_named(copied, change, message):
    file = copied / "model.safetensors"
    tensors = {k: v.copy() for k, v in safetensors.numpy.load_file(file).items()}
    change(tensors)
    safetensors.numpy.save_file(tensors, file)
    sign(copied)
    with pytest.raises(CheckpointError, match=f"model.safetensors.*{message}"):
        load(copied)


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


class Wider(RecBertBackbone):
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
