"""The real 6-layer MiniLM, against transformers on torch, over real sentences."""

import csv
import json

import keras
import numpy as np
import pytest
import torch
import transformers
from foreign_berts import minilm_folder, outputs_of_torch
from harness import gradients

import keras_recbert

pytestmark = pytest.mark.slow
NUM_SENTENCES = 90


def real_sentences(data_dir):
    """Sentences of 1 to over 100 words, from three corpora."""

    def column(path, name):
        with open(data_dir / "glue" / path, encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
            return [row[name] for row in rows]

    phrases = column("SST-2/train.tsv", "sentence")[:30]
    premises = column("RTE/dev.tsv", "sentence1")
    longest = sorted(premises, key=len)[-10:]
    validation = column("SST-2/dev.tsv", "sentence")[:50]
    sentences = phrases + longest + validation
    assert len(sentences) == len(phrases) + 60 == NUM_SENTENCES
    return sentences


@pytest.fixture(scope="module")
def minilm():
    return minilm_folder()


@pytest.fixture(scope="module")
def encoder(minilm):
    return keras_recbert.build("bert_minilm", weights=minilm)


@pytest.fixture(scope="module")
def batch(encoder, data_dir):
    return {
        key: value.numpy()
        for key, value in encoder.preprocessor(real_sentences(data_dir)).items()
    }


@pytest.fixture(scope="module")
def short(batch):
    """The last 40 sentences, padded to the longest of them."""
    length = batch["padding_mask"][-40:].sum(axis=1).max()
    return {key: value[-40:, :length] for key, value in batch.items()}


def rows_of(batch, size=100):
    """Slices of one padded batch: memory for all rows at once is not at hand."""
    for start in range(0, len(batch["token_ids"]), size):
        yield {key: value[start : start + size] for key, value in batch.items()}


def outputs_of(encoder, batch):
    parts = [encoder(rows) for rows in rows_of(batch)]
    return [
        np.concatenate([part[key] for part in parts])
        for key in ("sequence_output", "pooled_output")
    ]


def differences(outputs, expected, batch):
    real = batch["padding_mask"].astype(bool)
    apart = np.abs(outputs[0].astype("float64") - expected[0])[real]
    pooled = np.abs(outputs[1].astype("float64") - expected[1])
    return apart.max(), apart.mean(), pooled.max()


def test_outputs_equal_those_of_transformers(minilm, encoder, batch):
    model = transformers.AutoModel.from_pretrained(minilm).eval()
    parts = [outputs_of_torch(model, rows) for rows in rows_of(batch)]
    expected = [np.concatenate(part) for part in zip(*parts, strict=True)]
    lengths = batch["padding_mask"].sum(axis=1)
    largest, mean, pooled = differences(outputs_of(encoder, batch), expected, batch)
    print(
        f"\n{len(lengths)} sentences of {lengths.min()} to {lengths.max()} pieces "
        f"({len(np.unique(lengths))} lengths) in one batch padded to "
        f"{batch['token_ids'].shape[1]}: largest difference {largest:.2g}, mean "
        f"{mean:.2g}, pooled {pooled:.2g}"
    )
    assert largest <= 1e-4
    assert mean <= 1e-6
    assert pooled <= 1e-4


def test_sentence_embeddings_equal_those_of_sentence_transformers(
    minilm, encoder, data_dir
):
    """Its modules for MiniLM: the encoder, the mean over real tokens, length 1."""
    modules = json.loads((minilm / "modules.json").read_text())
    names = [module["type"].rpartition(".")[2] for module in modules]
    assert names == ["Transformer", "Pooling", "Normalize"]
    pooling = json.loads((minilm / "1_Pooling" / "config.json").read_text())
    assert [key for key, value in pooling.items() if value is True] == [
        "pooling_mode_mean_tokens"
    ]
    sentences = real_sentences(data_dir)
    tokenizer = transformers.AutoTokenizer.from_pretrained(minilm)
    model = transformers.AutoModel.from_pretrained(minilm).eval()
    expected = np.empty((NUM_SENTENCES, 384))
    for row, sentence in enumerate(sentences):
        with torch.no_grad():
            tokens = model(**tokenizer(sentence, return_tensors="pt")).last_hidden_state
        mean = tokens[0].numpy().astype("float64").mean(axis=0)
        expected[row] = mean / np.linalg.norm(mean)
    apart = np.abs(encoder.encode(sentences, verbose=0) - expected)
    print(
        f"\n{NUM_SENTENCES} sentence embeddings: largest difference {apart.max():.2g}"
    )
    assert apart.max() <= 1e-5


def test_round_trips_are_bit_equal(minilm, encoder, tmp_path):
    encoder.save_huggingface(tmp_path / "out")
    theirs = transformers.AutoModel.from_pretrained(minilm).state_dict()
    back = transformers.AutoModel.from_pretrained(tmp_path / "out").state_dict()
    assert theirs.keys() == back.keys()
    for name, tensor in theirs.items():
        assert torch.equal(tensor, back[name]), name
    encoder.save_preset(tmp_path / "preset", source=str(minilm))
    for again in (
        keras_recbert.load(tmp_path / "out"),
        keras_recbert.load(tmp_path / "preset"),
    ):
        for a, b in zip(encoder.weights, again.weights, strict=True):
            assert np.array_equal(a.numpy(), b.numpy()), a.path


@pytest.mark.usefixtures("eager_steps")
@pytest.mark.parametrize("name", ["trans_blstm_minilm", "trans_blstm_half_minilm"])
def test_a_warm_start_changes_nothing_and_then_learns(minilm, encoder, short, name):
    keras.utils.set_random_seed(0)
    model = keras_recbert.build(
        name, task="classifier", weights=minilm, pooling="mean", dropout=0.0
    )
    expected = outputs_of(encoder, short)
    before = differences(outputs_of(model.encoder, short), expected, short)
    assert before[0] <= 1e-6 and before[2] <= 1e-6
    rows = {key: value[:16] for key, value in short.items()}
    model.compile_for_fine_tuning(1, learning_rate=5e-5)  # one step
    model.train_on_batch(rows, np.arange(16) % 2)
    after = differences(outputs_of(model.encoder, short), expected, short)
    print(
        f"\n{name}: largest difference to MiniLM {before[0]:.2g} at the start, "
        f"{after[0]:.2g} after one step (mean {after[1]:.2g})"
    )
    assert after[0] > 1e-4
    new = [w for w in model.weights if w.path in model.encoder.weights_report.new]
    assert len(new) == (30 if name == "trans_blstm_minilm" else 18)
    found = gradients(model.encoder, new, rows)
    for weight, gradient in zip(new, found, strict=True):
        assert np.all(np.isfinite(gradient)) and np.any(gradient), weight.path


def cosine(outputs, expected, batch):
    """Mean cosine at real positions of what differs from the mean output."""
    real = batch["padding_mask"].astype(bool)
    a, b = (x[0][real] - expected[0][real].mean(axis=0) for x in (outputs, expected))
    norms = np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1)
    return float(np.mean(np.sum(a * b, axis=-1) / norms))


@pytest.mark.parametrize(
    "name, sizes, part, least",
    [
        ("swish_minilm", {}, "/swish_rnn/", 0.7),
        ("swish_minilm", {"recurrent_dim": 1536}, "/swish_rnn/", 0.95),
        ("trans_blstm_1_minilm", {}, "/projection/", 0.6),
        ("trans_blstm_1_minilm", {"recurrent_dim": 768}, "/projection/", 0.95),
    ],
)
def test_what_replaces_the_feed_forward_starts_nearer_than_at_random(
    minilm, encoder, short, name, sizes, part, least
):
    expected = outputs_of(encoder, short)
    recurrent = keras_recbert.build(name, weights=minilm, **sizes)
    near = cosine(outputs_of(recurrent, short), expected, short)
    random = keras_recbert.build(name, max_sequence_length=512, **sizes)
    for weight, drawn in zip(recurrent.weights, random.weights, strict=True):
        if part in weight.path:
            weight.assign(drawn)
    far = cosine(outputs_of(recurrent, short), expected, short)
    print(f"\n{name} {sizes}: cosine to MiniLM {near:.3f}, drawn at random {far:.3f}")
    assert near > least > far + 0.1
