import errno
import io
import json
import os
import sys
import time

import numpy as np
import pytest
import tensorflow as tf
from prepared_corpora import VOCABULARY, shards

from keras_recbert.data import prepare_sources
from keras_recbert.data.corpus import load_corpus
from keras_recbert.data.documents import DocumentError
from keras_recbert.data.prepare import prepare
from keras_recbert.data.prepare_progress import watch
from keras_recbert.data.prepare_tokens import DocumentTokenizer
from keras_recbert.text.vocabulary import save_vocabulary
from keras_recbert.text.wordpiece_tokenizer import WordPieceTokenizer


def texts(corpus):
    """Documents of a corpus: lists of sentences, pieces joined by spaces."""
    pieces = [corpus.vocabulary[index] for index in corpus.token_ids]
    starts = corpus.sentence_starts
    sentences = [
        " ".join(pieces[a:b]) for a, b in zip(starts[:-1], starts[1:], strict=True)
    ]
    starts = corpus.document_starts
    return [sentences[a:b] for a, b in zip(starts[:-1], starts[1:], strict=True)]


# --- word pieces -------------------------------------------------------------


def test_words_that_are_looked_up_are_cut_as_they_are_in_their_sentence(monkeypatch):
    sentences = [
        "The windmills  turn.",
        "",
        " ",
        "x" * 101,
        "Old\x0bis é\u0301 \u0301a",
    ]
    sentences += ["THE\tthe\xa0the\u2028old \ud800 \x00 [MASK]", "old " * 50, "é-é-é"]
    for lowercase in (True, False):
        tokenizer = WordPieceTokenizer(VOCABULARY, lowercase)
        expected = [tokenizer(text).numpy()[0].tolist() for text in sentences]
        cutter = DocumentTokenizer(VOCABULARY, lowercase, None, "lines")
        for _ in range(2):  # the second time from memory
            (cut,), counts = cutter([sentences])
            assert cut[0].tolist() == sum(expected, [])
            assert cut[1].tolist() == [len(row) for row in expected if row]
        assert counts["tokens"] == len(cut[0])
        assert counts["sentences"] == sum(map(bool, expected))
        monkeypatch.setattr("keras_recbert.data.prepare_tokens._MOST_WORDS", 1)
        again, _ = cutter([sentences[:1], [], sentences[1:]])
        assert [ids.tolist() for ids, _ in again][1] == []
        assert sum((ids.tolist() for ids, _ in again), []) == sum(expected, [])


def test_prepare_writes_what_load_corpus_reads(inputs, tmp_path):
    output = tmp_path / "new" / "corpus"
    description = prepare(inputs, output, tmp_path / "vocab.txt", num_shards=3)
    corpus = load_corpus(output)
    documents = texts(corpus)
    assert ["the wind ##mill ##s turn .", "a wind ##mill is old ."] in documents
    assert ["old wind ."] in documents
    assert documents.count(["the wind is [UNK] .", "turn ."]) == 40
    assert len(documents) == 42
    counts = description["counts"]
    assert counts == {
        "documents": 42,
        "empty_documents": 2,
        "sentences": 83,
        "words": 9 + 3 + 40 * 7,
        "tokens": 12 + 3 + 40 * 7,
        "unknown_tokens": 40,
        "bad_lines": 1,
        "long_lines": 0,
        "longest_document": 12,
    }
    assert corpus.vocabulary == tuple(VOCABULARY)
    assert (corpus.lowercase, corpus.strip_accents) == (True, None)
    names = ["corpus.json", *(f"corpus-0000{i}-of-00003.tfrecord" for i in range(3))]
    assert sorted(os.listdir(output)) == sorted([*names, "vocab.txt"])
    assert json.loads((output / "corpus.json").read_text()) == description
    assert os.listdir(output.parent) == ["corpus"]


def test_shards_without_documents_are_there(write, inputs, tmp_path, monkeypatch):
    """In a notebook: where Beam asks IPython for the number of the cell."""
    kernel = "apache_beam.utils.interactive_utils.is_in_ipython"
    monkeypatch.setattr(kernel, lambda: True)
    path = write("one.txt", "The wind.")
    output = tmp_path / "corpus"
    description = prepare(path, output, VOCABULARY, num_shards=4)
    assert sorted(shard["documents"] for shard in description["shards"]) == [0, 0, 0, 1]
    assert texts(load_corpus(output)) == [["the wind ."]]


def test_shards_do_not_depend_on_how_the_work_is_divided(inputs, tmp_path, monkeypatch):
    prepare(inputs, tmp_path / "a", VOCABULARY, num_shards=3)
    monkeypatch.setattr(prepare_sources, "BYTES_PER_ITEM", 70)
    paths = [inputs / "b.jsonl", inputs / "a.txt"]
    prepare(paths, tmp_path / "b", VOCABULARY, num_shards=3)
    assert shards(tmp_path / "a") == shards(tmp_path / "b")


def test_another_runner_by_options(inputs, tmp_path):
    prepare(inputs, tmp_path / "a", VOCABULARY, num_shards=3)
    options = "--runner=BundleBasedDirectRunner"
    prepare(inputs, tmp_path / "b", VOCABULARY, num_shards=3, beam_options=options)
    assert shards(tmp_path / "a") == shards(tmp_path / "b")
    with pytest.raises(ValueError, match="num_workers=2 and a --runner"):
        prepare(inputs, tmp_path / "c", VOCABULARY, num_workers=2, beam_options=options)


def test_a_learned_vocabulary(inputs, tmp_path):
    description = prepare(inputs, tmp_path / "a", vocabulary_size=60, num_shards=1)
    corpus = load_corpus(tmp_path / "a")
    assert {"[MASK]", "the", "wind", "turn"} <= set(corpus.vocabulary)
    assert description["vocabulary"]["size"] == len(corpus.vocabulary) <= 60


def test_errors_come_before_anything_is_written(inputs, tmp_path, monkeypatch):
    def fails(message, error=ValueError, paths=inputs, output="corpus", **options):
        options = {"vocabulary": VOCABULARY, **options}
        before = sorted(os.listdir(tmp_path))
        with pytest.raises(error, match=message):
            prepare(paths, tmp_path / output, **options)
        assert sorted(os.listdir(tmp_path)) == before

    without = [piece for piece in VOCABULARY if piece != "[MASK]"]
    fails(r"`vocabulary` lacks \[MASK\], which masked language", vocabulary=without)
    save_vocabulary(without, tmp_path / "small.txt")
    path = tmp_path / "small.txt"
    fails(rf"{path} lacks \[MASK\]", vocabulary=path)
    fails("No vocabulary file", FileNotFoundError, vocabulary=tmp_path / "no.txt")
    fails("either `vocabulary`, a vocab.txt, or `vocabulary_size`", vocabulary=None)
    fails("either `vocabulary`", vocabulary_size=100)
    fails("`documents` must be blocks or files. Received: 'lines'", documents="lines")
    fails("`sentences` must be split or lines", sentences="no")
    fails("`num_shards` must be a whole number from 1 to", num_shards=0)
    fails("`num_workers` must be a whole number from 1 to", num_workers=True)
    fails("names anything", FileNotFoundError, paths=tmp_path / "none*")
    for options, message in (
        ("--nope", "Beam has no option --nope"),
        ("nope", "Beam has no option nope"),
        ("--runner=Nope", "Unexpected pipeline runner: Nope"),
        ("--direct_running_mode=x", "invalid choice: 'x'"),
        ("--help", "Beam's help is no work"),
    ):
        fails(f"`beam_options`.*{message}.*Received: .{options}", beam_options=options)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("x")
    fails("full exists already", FileExistsError, output="full")
    fails(
        "no corpus.json, so it is not", FileExistsError, output="full", overwrite=True
    )
    (inputs / "b.jsonl").write_text('{"text": "good"}\n{"text": ')
    fails(r"b.jsonl, line 2: not JSON \(Expecting value", DocumentError)
    (inputs / "b.jsonl").write_text("")
    (inputs / "a.txt").write_text("\x00\n\n \n")
    fails("No words in 2 inputs, the first of them .*a.txt")
    monkeypatch.setitem(sys.modules, "nupunkt", None)
    fails(r'needs nupunkt: pip install -e "\.\[prepare\]"', ImportError)


def test_a_corpus_is_replaced_only_when_asked(inputs, tmp_path):
    output = tmp_path / "corpus"
    prepare(inputs, output, VOCABULARY, num_shards=5)
    with pytest.raises(FileExistsError, match="corpus exists already.*--overwrite"):
        prepare(inputs, output, VOCABULARY, num_shards=2)
    assert len(load_corpus(output).document_starts) == 43
    prepare(inputs / "a.txt", output, VOCABULARY, num_shards=2, overwrite=True)
    assert len(load_corpus(output).document_starts) == 3
    assert len(os.listdir(output)) == 4


def test_a_full_disk_ends_with_a_message_and_nothing_left(
    inputs, tmp_path, monkeypatch
):
    def full(path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    monkeypatch.setattr(tf.io, "TFRecordWriter", full)
    full_disk = f"{tmp_path}/corpus cannot be written: no space is left on its disk"
    with pytest.raises(DocumentError, match=full_disk):
        prepare(inputs, tmp_path / "corpus", VOCABULARY)
    assert sorted(os.listdir(tmp_path)) == ["in", "vocab.txt"]


def test_a_terminal_shows_how_far_it_is(tmp_path):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    for number, tokens in enumerate((1000, 234)):
        content = {"documents": 3, "sentences": 5, "tokens": tokens}
        (tmp_path / f"progress-{number:06d}.json").write_text(json.dumps(content))
    terminal, log = Terminal(), io.StringIO()
    with watch(tmp_path, 4, terminal):
        deadline = time.monotonic() + 10
        while "begun" not in terminal.getvalue() and time.monotonic() < deadline:
            time.sleep(0.02)
    assert "6 documents, 1,234 word pieces, " in terminal.getvalue()
    assert "2 of 4 parts begun" in terminal.getvalue()
    with watch(tmp_path, 4, log):
        pass
    assert log.getvalue() == ""


# --- TensorFlow Datasets -----------------------------------------------------


@pytest.fixture
def data_set(tmp_path):
    """A data set with two splits and three features, prepared on disk."""
    tfds = pytest.importorskip("tensorflow_datasets")

    def examples(start, end):
        for n in range(start, end):
            body = f"The wind is {n}.\n\nOld.".encode() if n else b"a\xff"
            yield {"title": f"T{n}".encode(), "text": body, "id": n}

    def split(start, end):
        signature = {
            "title": tf.TensorSpec((), tf.string),
            "text": tf.TensorSpec((), tf.string),
            "id": tf.TensorSpec((), tf.int32),
        }
        return tf.data.Dataset.from_generator(
            lambda: examples(start, end), output_signature=signature
        )

    folder = tmp_path / "tfds"
    text = tfds.features.Text()
    number = tfds.features.Scalar(np.int32)
    tfds.dataset_builders.store_as_tfds_dataset(
        name="windy",
        version="1.0.0",
        features=tfds.features.FeaturesDict(
            {"title": text, "text": text, "id": number}
        ),
        split_datasets={"train": split(0, 7), "test": split(7, 9)},
        data_dir=os.fspath(folder),
    )
    return folder


def test_a_data_set_of_tfds(data_set, tmp_path, monkeypatch):
    pytest.importorskip("apache_beam")
    options = {"num_shards": 1, "sentences": "lines", "tfds_data_dir": str(data_set)}
    description = prepare("tfds:windy", tmp_path / "a", VOCABULARY, **options)
    counts = description["counts"]
    assert (counts["documents"], counts["bad_lines"]) == (7, 1)
    documents = texts(load_corpus(tmp_path / "a"))
    assert sorted(documents)[0] == ["a"]
    assert documents.count(["the wind is [UNK] .", "old ."]) == 6
    monkeypatch.setattr(prepare_sources, "EXAMPLES_PER_ITEM", 3)
    prepare("tfds:windy", tmp_path / "b", VOCABULARY, **options)
    assert shards(tmp_path / "a") == shards(tmp_path / "b")
    options["split"] = "test"
    test = prepare("tfds:windy", tmp_path / "c", VOCABULARY, **options)
    assert test["counts"]["documents"] == 2
    for changes, message in [
        ({"text_field": "body"}, "no feature 'body' of text.*one of: text, title"),
        (
            {"split": "validation"},
            "has no split 'validation'. --split names one of: test, train",
        ),
    ]:
        with pytest.raises(DocumentError, match=message):
            prepare("tfds:windy", tmp_path / "d", VOCABULARY, **{**options, **changes})
    with pytest.raises(DocumentError, match="tfds:windless: "):
        prepare("tfds:windless", tmp_path / "d", VOCABULARY, **options)
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", None)
    with pytest.raises(ImportError, match=r'pip install -e "\.\[data\]"'):
        prepare("tfds:windy", tmp_path / "d", VOCABULARY, **options)


# --- real text ---------------------------------------------------------------


@pytest.mark.slow
def test_squad_wikitext_and_books(data_dir, tmp_path):
    pytest.importorskip("apache_beam")
    pytest.importorskip("nupunkt")
    vocabulary = data_dir / "vocab/bert-base-uncased-vocab.txt"
    squad = data_dir / "squad/dev-v1.1.json"
    counts = prepare(squad, tmp_path / "squad", vocabulary)["counts"]
    assert counts["documents"] == 48
    articles = json.loads(squad.read_text("utf-8"))["data"]
    corpus = load_corpus(tmp_path / "squad")
    tokenizer = WordPieceTokenizer(vocabulary)
    expected = [
        tokenizer([p["context"] for p in article["paragraphs"]]).flat_values.numpy()
        for article in articles
    ]
    bounds = corpus.sentence_starts[corpus.document_starts]
    found = [
        corpus.token_ids[a:b].tolist()
        for a, b in zip(bounds[:-1], bounds[1:], strict=True)
    ]
    assert sorted(found) == sorted(ids.tolist() for ids in expected)
    assert 8 < counts["sentences"] / 2067 * 2 < 12  # 2,067 paragraphs, about 5 each

    for name in ("valid", "test"):
        path = data_dir / f"wikitext-2/{name}.txt"
        output = tmp_path / name
        wikitext = prepare(path, output, vocabulary, format="wikitext")["counts"]
        assert wikitext["documents"] == 60  # as its authors say
        text = path.read_text("utf-8")
        assert wikitext["unknown_tokens"] >= text.count("<unk>") > 10_000

    books = prepare(
        data_dir / "corpus/gutenberg/*.txt",
        tmp_path / "books",
        vocabulary,
        documents="files",
    )["counts"]
    assert (books["documents"], books["empty_documents"]) == (13, 0)
    assert books["bad_lines"] == 4  # Latin-1 among them
