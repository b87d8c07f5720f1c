"""`.keras` files: loaded whole, or refused in one line that says why."""

import io
import json
import tracemalloc
import zipfile

import h5py
import keras
import numpy as np
import pytest
from harness import assert_close, build_shrunk, randomize, token_batch
from toy_texts import VOCABULARY, reviews, tiny_model

import keras_recbert
from keras_recbert.convert.checkpoint import CheckpointError
from keras_recbert.text.text_preprocessor import TextPreprocessor

TEXTS, _ = reviews(4)
MEMBERS = ("metadata.json", "config.json", "model.weights.h5")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The bytes of the members of a saved classifier, by name."""
    path = tmp_path_factory.mktemp("saved") / "model.keras"
    model = tiny_model(lora_rank=2)
    randomize(model)
    model.save(path)
    np.save(path.with_suffix(".npy"), logits(model))
    with zipfile.ZipFile(path) as archive:
        return path, {name: archive.read(name) for name in MEMBERS}


def logits(model):
    return model(model.preprocessor(TEXTS))


def write(path, members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def write_config(path, saved, change):
    """The saved model with a changed config."""
    config = json.loads(saved[1]["config.json"])
    change(config)
    return write(path, {**saved[1], "config.json": json.dumps(config)})


def write_weights(path, saved, change):
    """The saved model with a changed file of weights."""
    stream = io.BytesIO(saved[1]["model.weights.h5"])
    with h5py.File(stream, "r+") as file:
        change(file)
    return write(path, {**saved[1], "model.weights.h5": stream.getvalue()})


def arrays_of(file):
    found = {}
    file.visititems(
        lambda name, item: (
            found.update({name: item}) if isinstance(item, h5py.Dataset) else None
        )
    )
    return found


def refusal(path):
    """The message of the error that loading raises; short, and naming the file."""
    with pytest.raises(CheckpointError) as caught:
        keras_recbert.load(path)
    message = str(caught.value)
    assert str(path) in message
    assert len(message) < 1000
    return message


def test_a_whole_file_loads(saved, tmp_path):
    path, members = saved
    expected = np.load(path.with_suffix(".npy"))
    for one in (path, write(tmp_path / "again.keras", members)):
        assert_close(logits(keras_recbert.load(one)), expected)
    # Packed again by somebody.
    with zipfile.ZipFile(
        tmp_path / "small.keras", "w", zipfile.ZIP_DEFLATED
    ) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    loaded = keras_recbert.load(tmp_path / "small.keras")
    assert_close(logits(loaded), expected)


def test_a_model_around_a_preprocessor_loads(tmp_path):
    # Its rows may be longer than any axis of a weight.
    text = keras.Input((), dtype="string", name="text")
    packed = TextPreprocessor(tiny_model().preprocessor.tokenizer)(text)
    embedded = keras_recbert.layers.BertEmbeddings(len(VOCABULARY), 6, 9)(
        packed["token_ids"], packed["segment_ids"]
    )
    keras.Model(text, embedded).save(tmp_path / "model.keras")
    assert len(keras_recbert.load(tmp_path / "model.keras").weights) == 5


# Damage --------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 500, -1, -100])
def test_a_cut_file_is_damaged_not_missing(saved, tmp_path, size):
    path = tmp_path / "model.keras"
    path.write_bytes(saved[0].read_bytes()[:size])
    assert "is damaged or cut short" in refusal(path)


@pytest.mark.parametrize("name", MEMBERS)
def test_a_wrong_checksum(saved, tmp_path, name):
    content = bytearray(saved[0].read_bytes())
    with zipfile.ZipFile(saved[0]) as archive:
        info = archive.getinfo(name)
    content[info.header_offset + 30 + len(name) + info.file_size // 2] ^= 4
    path = tmp_path / "model.keras"
    path.write_bytes(content)
    assert f"is damaged or cut short (Bad CRC-32 for file '{name}')" in refusal(path)


def test_missing_and_repeated_members(saved, tmp_path):
    for name in MEMBERS[1:]:
        rest = {key: value for key, value in saved[1].items() if key != name}
        path = write(tmp_path / "model.keras", rest)
        assert f"lacks {name}" in refusal(path)
    path = write(tmp_path / "model.keras", saved[1])
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning):
        archive.writestr("config.json", "{}")
    assert "holds 'config.json' twice" in refusal(path)
    with pytest.raises(CheckpointError, match="is a folder"):
        (tmp_path / "folder.keras").mkdir()
        keras_recbert.load(tmp_path / "folder.keras")


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "7", '{"config": 3}', "[" * 100_000]
)
def test_a_config_that_describes_nothing(saved, tmp_path, content):
    members = {**saved[1], "config.json": content}
    message = refusal(write(tmp_path / "model.keras", members))
    assert "config.json is not valid JSON" in message or "does not describe" in message


def test_members_of_two_models(saved, tmp_path):
    tiny_model(num_classes=3, num_layers=2).save(tmp_path / "other.keras")
    with zipfile.ZipFile(tmp_path / "other.keras") as archive:
        for name in MEMBERS[1:]:
            members = {**saved[1], name: archive.read(name)}
            path = write(tmp_path / "model.keras", members)
            assert "do not belong together" in refusal(path)


def test_random_damage_never_loads_other_weights(saved, tmp_path):
    rng = np.random.default_rng(0)
    whole = saved[0].read_bytes()
    expected = np.load(saved[0].with_suffix(".npy"))
    refused = 0
    for number in range(40):
        content = bytearray(whole)
        position = int(rng.integers(len(content)))
        if number % 4 == 0:
            content = content[:position]
        elif number % 4 == 1:
            del content[position : position + int(rng.integers(1, 9))]
        else:  # a bit flips
            content[position] ^= 1 << int(rng.integers(8))
        path = tmp_path / "model.keras"
        path.write_bytes(content)
        try:
            loaded = keras_recbert.load(path)
        except CheckpointError:
            refused += 1
        else:  # a field of the archive that says nothing, such as a date
            assert_close(logits(loaded), expected, 0.0)
    assert refused >= 35


# What is not a number --------------------------------------------------------------


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_must_be_finite(saved, tmp_path, value):
    def change(file):
        array = next(a for a in arrays_of(file).values() if a.ndim == 2)
        array[1, 2] = value

    path = write_weights(tmp_path / "model.keras", saved, change)
    assert "holds NaN or infinite numbers" in refusal(path)


# Sizes -----------------------------------------------------------------------------


def test_sizes_without_weights_are_refused_before_anything_is_built(saved, tmp_path):
    path = tmp_path / "model.keras"
    for key, size in (
        ("num_layers", 100_000),
        ("vocabulary_size", 10**8),
        ("max_sequence_length", 10**12),
        ("hidden_dim", 10**8),
        ("intermediate_dim", 10**9),
    ):
        write_config(
            path,
            saved,
            lambda c, key=key, size=size: c["config"]["encoder"]["config"].update(
                {key: size}
            ),
        )
        assert f"config.json says {key}={size}" in refusal(path)
    for key in ("num_classes", "lora_rank"):
        write_config(path, saved, lambda c, key=key: c["config"].update({key: 10**9}))
        assert f"config.json says {key}={10**9}" in refusal(path)
    # Within what is stored, but not for so many.
    write_config(
        path, saved, lambda c: c["config"]["encoder"]["config"].update(num_layers=9)
    )
    assert "do not belong together" in refusal(path)


def test_arrays_that_are_declared_and_not_stored(saved, tmp_path):
    def change(file):
        name, array = next(
            (n, a) for n, a in arrays_of(file).items() if len(VOCABULARY) in a.shape
        )
        del file[name]
        file.create_dataset(name, (10**8, 18), "float32", chunks=(1000, 18))

    path = write_weights(tmp_path / "model.keras", saved, change)
    tracemalloc.start()
    assert "does not hold all of its numbers" in refusal(path)
    assert tracemalloc.get_traced_memory()[1] < 2**25
    tracemalloc.stop()


def test_an_archive_that_grows(saved, tmp_path):
    path = tmp_path / "model.keras"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in saved[1].items():
            archive.writestr(name, content)
        archive.writestr("assets/zeros", bytes(2**25))
    assert "assets/zeros would grow from" in refusal(path)


def test_a_config_as_large_as_a_model(saved, tmp_path, monkeypatch):
    monkeypatch.setattr("keras_recbert.convert.keras_file.LARGEST_CONFIG", 1000)
    path = write(tmp_path / "model.keras", saved[1])
    assert "That of a model has at most 1,000" in refusal(path)


# Classes and files of others ---------------------------------------------------------


def test_an_unknown_class_is_named_without_the_vocabulary(saved, tmp_path):
    def rename(config):
        config.update(registered_name="mine>Special", class_name="Special")
        config["module"] = "mine.models"
        pieces = config["config"]["preprocessor"]["config"]["tokenizer"]["config"]
        pieces["vocabulary"] += [f"piece{i}" for i in range(30_000)]

    message = refusal(write_config(tmp_path / "model.keras", saved, rename))
    assert "the class 'Special', which is not registered" in message
    assert "import the module that defines it" in message

    def rename_inside(config):
        preprocessor = config["config"]["preprocessor"]
        preprocessor.update(registered_name="mine>Mine", class_name="Mine", module="m")

    message = refusal(write_config(tmp_path / "model.keras", saved, rename_inside))
    assert "the class 'Mine', which is not registered" in message
    assert "[PAD]" not in message


def test_what_another_version_saved_is_refused_in_short(saved, tmp_path):
    def add(config):
        config["config"]["new_argument"] = ["x" * 50] * 1000

    message = refusal(write_config(tmp_path / "model.keras", saved, add))
    assert "new_argument" in message
    assert "another version" in message


def test_a_config_opens_no_file(saved, tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(VOCABULARY))

    def point(config):
        tokenizer = config["config"]["preprocessor"]["config"]["tokenizer"]["config"]
        tokenizer["vocabulary"] = str(tmp_path / "vocab.txt")

    path = write_config(tmp_path / "model.keras", saved, point)
    assert "must be the list of its word pieces" in refusal(path)
    with pytest.raises(ValueError, match="must be the list of its word pieces"):
        keras.saving.load_model(path)


def test_a_pretrainer_with_all_it_was_compiled_with(tmp_path):
    objectives = {"masked_lm": None, "next_sentence": None, "bigram_shift": None}
    model = tiny_model(task="pretrainer", objectives=objectives)
    model.compile_for_pretraining("adam")
    model.save(tmp_path / "model.keras")
    loaded = keras_recbert.load(tmp_path / "model.keras")
    assert [w.path for w in loaded.weights] == [w.path for w in model.weights]
    loaded.save_preset(tmp_path / "preset")
    encoder = keras_recbert.load(tmp_path / "preset")
    assert encoder.preprocessor.tokenizer.vocabulary == tuple(VOCABULARY)


@pytest.mark.parametrize("name", ["swish_tiny", "trans_blstm_half_base", "blstm_base"])
def test_encoders_of_other_blocks(name, tmp_path):
    encoder = build_shrunk(name)
    encoder.save(tmp_path / "encoder.keras")
    loaded = keras_recbert.load(tmp_path / "encoder.keras")
    batch = token_batch()
    assert_close(loaded(batch)["pooled_output"], encoder(batch)["pooled_output"])
