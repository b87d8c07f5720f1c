"""`recbert prepare`: a folder of text to a tokenised corpus."""

import hashlib
import json
import os
import pathlib
import re
import shutil
import time

from keras_recbert.core.beam_options import read_beam_options
from keras_recbert.core.checks import check_integer
from keras_recbert.core.extras import check_installed
from keras_recbert.core.folders import check_folder, write_folder
from keras_recbert.core.lines import MAX_LINE_BYTES
from keras_recbert.data.corpus import DESCRIPTION, FORMAT_VERSION, VOCABULARY
from keras_recbert.data.documents import (
    UNKNOWN_WORD,
    Reading,
    read_documents,
)
from keras_recbert.data.prepare_progress import quiet, watch
from keras_recbert.data.prepare_sources import check_sources, divide, find_sources
from keras_recbert.text.vocabulary import (
    check_vocabulary,
    learn_vocabulary,
    load_vocabulary,
    save_vocabulary,
)

_SHARD = re.compile(r"corpus-\d{5}-of-\d{5}\.tfrecord")
_COUNTS = (
    "documents",
    "empty_documents",
    "sentences",
    "words",
    "tokens",
    "unknown_tokens",
    "bad_lines",
    "long_lines",
    "longest_document",
)


def prepare(
    inputs,
    output_dir,
    vocabulary=None,
    vocabulary_size=None,
    lowercase=True,
    strip_accents=None,
    format=None,
    documents="blocks",
    sentences="split",
    text_field="text",
    split="train",
    tfds_data_dir=None,
    num_shards=16,
    num_workers=1,
    beam_options="",
    overwrite=False,
    max_line_bytes=MAX_LINE_BYTES,
):
    """Cuts documents into word pieces and writes them as a corpus.

    The shards are the same, byte for byte, whatever the number of workers and the
    order of `inputs`. Bytes that are not UTF-8 are dropped and their lines counted;
    documents without a word are left out and counted. A line of JSON that is not JSON
    is an error: a document would be lost. Lines over `max_line_bytes` are counted: of
    text their beginning is read, of JSON none.

    Args:
        inputs: list of str or paths: files, folders, patterns, or `tfds:` and a name.
            Text (.txt), JSON lines (.jsonl), SQuAD (.json) and WikiText (.tokens),
            also compressed (.gz, .bz2).
        output_dir: folder to write.
        vocabulary: str or path of a `vocab.txt`, or a list of word pieces.
        vocabulary_size: int. Learn a vocabulary of so many pieces from the documents.
        lowercase: bool. Lower-case the text, and strip accents.
        strip_accents: bool or None. None means the value of `lowercase`.
        format: str or None. text, jsonl, squad or wikitext; None goes by the endings.
        documents: str. blocks: text files hold documents with blank lines between;
            files: each is a document, its paragraphs with blank lines between.
        sentences: str. split: lines (with `files`, paragraphs) are split into
            sentences; lines: each line is one.
        text_field: str. Field of JSON lines or of a data set that holds the text.
        split: str. Split of a data set.
        tfds_data_dir: str or None. Where TensorFlow Datasets keeps its files.
        num_shards: int. Files to write.
        num_workers: int. Processes.
        beam_options: str or list of str. Options of Apache Beam, such as
            `--runner=FlinkRunner --flink_master=...`. Workers must see the inputs and
            the output folder under the same paths.
        overwrite: bool. Whether to replace a corpus that is there.
        max_line_bytes: int. The most that is read of a line.

    Returns:
        dict, what corpus.json holds.

    Raises:
        FileNotFoundError: for an input that names nothing.
        FileExistsError: if `output_dir` may not be written.
        ValueError: for an option, a vocabulary or a file that cannot be used.
        ImportError: without Apache Beam.
    """
    started = time.monotonic()
    _check_choices(documents=documents, sentences=sentences)
    # A worker has a file open for each.
    check_integer(most=512, num_shards=num_shards)
    check_integer(most=1_000, num_workers=num_workers)
    check_integer(max_line_bytes=max_line_bytes)
    beam_options = read_beam_options(beam_options, num_workers)
    output_dir = pathlib.Path(os.path.abspath(output_dir))
    files = _corpus_files(output_dir)
    check_folder(output_dir, files, overwrite)
    pieces = _read_vocabulary(vocabulary, vocabulary_size)
    pipeline, check_options = _import_pipeline(sentences)
    check_options(beam_options)
    reading = Reading(
        documents,
        sentences == "split",
        text_field,
        split,
        tfds_data_dir,
        max_line_bytes,
    )
    sources = find_sources(inputs, format, reading)
    check_sources(sources)
    items = divide(sources, reading)
    options = _options(
        sources, reading, sentences, lowercase, strip_accents, num_shards
    )
    measured = {}
    with write_folder(output_dir, files, overwrite) as folder:
        if pieces is None:
            start = time.monotonic()
            pieces = _learn(sources, reading, vocabulary_size, lowercase, strip_accents)
            measured["seconds_learning_vocabulary"] = round(time.monotonic() - start, 2)
        save_vocabulary(pieces, folder / VOCABULARY)
        job = pipeline.Job(
            os.fspath(output_dir),
            os.fspath(folder),
            os.fspath(folder / "parts"),
            num_shards,
            tuple(pieces),
            lowercase,
            strip_accents,
            sentences,
            reading,
        )
        start = time.monotonic()
        shards, counts = _tokenize(pipeline, job, items, num_workers, beam_options)
        seconds = time.monotonic() - start
        if not counts["tokens"]:
            raise ValueError(
                f"No words in {len(sources)} inputs, the first of them "
                f"{sources[0].path}: nothing to write."
            )
        measured |= {
            "num_workers": num_workers,
            "seconds_tokenizing": round(seconds, 2),
            "tokens_per_second": round(counts["tokens"] / seconds),
            "seconds": round(time.monotonic() - started, 2),
        }
        return _write_description(folder, counts, options, pieces, shards, measured)


def _tokenize(pipeline, job, items, num_workers, beam_options):
    """Writes the shards of a corpus: their descriptions, and counts by name."""
    parts = pathlib.Path(job.parts)
    parts.mkdir()
    with watch(parts, len(items)):
        shards, counts = pipeline.run_pipeline(job, items, num_workers, beam_options)
    shutil.rmtree(parts)
    return shards, {name: counts.get(name, 0) for name in _COUNTS}


def _options(sources, reading, sentences, lowercase, strip_accents, num_shards):
    """What corpus.json says of how it was made."""
    return {
        "inputs": [source.path for source in sources],
        "formats": sorted({source.format for source in sources}),
        "documents": reading.documents,
        "sentences": sentences,
        "text_field": reading.text_field,
        "split": reading.split,
        "lowercase": lowercase,
        "strip_accents": strip_accents,
        "num_shards": num_shards,
        "max_line_bytes": reading.max_line_bytes,
    }


def _check_choices(**given):
    choices = {"documents": ("blocks", "files"), "sentences": ("split", "lines")}
    for name, value in given.items():
        if value not in choices[name]:
            raise ValueError(
                f"`{name}` must be {' or '.join(choices[name])}. Received: {value!r}."
            )


def _write_description(folder, counts, options, pieces, shards, measured):
    """Writes corpus.json into the folder of a finished corpus; returns what it says."""
    vocabulary = (folder / VOCABULARY).read_bytes()
    description = {
        "format_version": FORMAT_VERSION,
        "counts": counts,
        "options": options,
        "vocabulary": {
            "size": len(pieces),
            "sha256": hashlib.sha256(vocabulary).hexdigest(),
        },
        "shards": shards,
        "measured": measured,
    }
    text = json.dumps(description, indent=2)  # names may be no UTF-8
    (folder / DESCRIPTION).write_text(text + "\n", encoding="utf-8")
    return description


def _corpus_files(folder):
    """Names of the files of a corpus that is there already, corpus.json first."""
    there = os.listdir(folder) if folder.is_dir() else []
    return (DESCRIPTION, VOCABULARY, *filter(_SHARD.fullmatch, there))


def _read_vocabulary(vocabulary, vocabulary_size):
    if (vocabulary is None) == (vocabulary_size is None):
        raise ValueError(
            "Pass either `vocabulary`, a vocab.txt, or `vocabulary_size`, to learn one "
            f"from the documents. Received: vocabulary={vocabulary!r}, "
            f"vocabulary_size={vocabulary_size!r}."
        )
    if vocabulary is None:
        return None
    from_file = isinstance(vocabulary, (str, os.PathLike))
    pieces = load_vocabulary(vocabulary) if from_file else check_vocabulary(vocabulary)
    if "[MASK]" not in pieces:
        source = os.fspath(vocabulary) if from_file else "`vocabulary`"
        raise ValueError(
            f"{source} lacks [MASK], which masked language modelling needs. Append it "
            "(the ids of the other pieces stay), or learn a vocabulary: "
            "--vocabulary-size 8000."
        )
    return pieces


def _import_pipeline(sentences):
    modules = ("apache_beam", "nupunkt") if sentences == "split" else ("apache_beam",)
    check_installed("`recbert prepare`", "prepare", *modules)
    with quiet():
        from keras_recbert.data import prepare_pipeline
        from keras_recbert.data.beam_runs import check_options

    return prepare_pipeline, check_options


def _learn(sources, reading, size, lowercase, strip_accents):
    def paragraphs():
        for source in sources:
            for document in read_documents(source, reading):
                for paragraph in document.paragraphs:
                    yield paragraph.replace(UNKNOWN_WORD, "")

    return learn_vocabulary(paragraphs(), size, lowercase, strip_accents)
