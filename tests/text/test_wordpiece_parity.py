"""WordPiece ids of real vocabularies beside those of Hugging Face.

Known differences to `tokenizers` 0.23 (Rust), found by trying every code point; each
concerns letters that no published BERT vocabulary holds, so ids are equal there
(`[UNK]` on both sides) and differ only with a vocabulary that holds such letters:

- `NEWER_LETTERS_WITH_CASE`, 95 code points: letters with case added in Unicode 14 to
  17 (Vithkuqi, Garay, Beria Erfe, Latin for IPA and old Polish, ...), lower-cased by
  Rust, not by TensorFlow 2.20, whose Unicode tables are older.
- `NEWER_DECOMPOSITIONS`, 21 code points: composed letters added in Unicode 13 to 16
  (Dives Akuru, Todhri, Tulu-Tigalari, Gurung Khema, Kirat Rai), decomposed by TF
  Text's NFD, not by `tokenizers`, whose NFD tables are older.
"""

import csv
import functools
import gzip
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import time
import unicodedata
import zipfile

import keras
import numpy as np
import pytest
import tensorflow as tf
from toy_word_pieces import AWKWARD, INVALID_UTF8, words_of

from keras_recbert.text.wordpiece_tokenizer import WordPieceTokenizer

NEWER_LETTERS_WITH_CASE = (
    "1C89 2C2F A7C0 A7CB-A7CC A7CE A7D0 A7D2 A7D4 A7D6 A7D8 A7DA A7DC 10570-1057A "
    "1057C-1058A 1058C-10592 10594-10595 10D50-10D65 16EA0-16EB8"
)
NEWER_DECOMPOSITIONS = (
    "105C9 105E4 11383 11385 1138E 11391 113C5 113C7-113C8 11938 16121-16128 "
    "16D68-16D6A"
)


@pytest.fixture(scope="module", params=["uncased", "cased"])
def real(request, data_dir):
    """Our tokenizer and the path of its vocabulary, for both published ones."""
    path = data_dir / "vocab" / f"bert-base-{request.param}-vocab.txt"
    return WordPieceTokenizer(path, lowercase=request.param == "uncased"), path


def is_tried(point):
    """Whether this code point is tried: one of 64 where all are of one kind.

    Those are planes 3 to 16: ideographs, private use and nothing, apart from tags.
    """
    if point >= 0x30000 and not 0xE0000 <= point < 0xE1000:
        return point % 64 == 0
    return not 0xD800 <= point <= 0xDFFF


def code_points(ranges):
    for ends in ranges.split():
        first, _, last = ends.partition("-")
        yield from range(int(first, 16), int(last or first, 16) + 1)


# From here on: real vocabularies, Hugging Face.


def reference(path, lowercase):
    """Hugging Face's tokenizer as a function from a list of str to lists of ids."""
    transformers = pytest.importorskip("transformers")
    tokenizer = transformers.BertTokenizer(
        vocab=str(path), do_lower_case=lowercase, split_special_tokens=True
    )
    assert len(tokenizer) > 20000  # a vocabulary it did not read gives 5

    def ids_of(texts):
        return tokenizer(
            texts,
            add_special_tokens=False,
            return_attention_mask=False,
            return_token_type_ids=False,
        )["input_ids"]

    return ids_of


def reference_words(lowercase, strip_accents):
    tokenizers = pytest.importorskip("tokenizers")
    normalizer = tokenizers.normalizers.BertNormalizer(
        lowercase=lowercase, strip_accents=strip_accents
    )
    splitter = tokenizers.pre_tokenizers.BertPreTokenizer()

    def words(text):
        normalized = normalizer.normalize_str(text)
        return [word for word, _ in splitter.pre_tokenize_str(normalized)]

    return words


def mismatches(tokenizer, ids_of, texts, batch_size=4096):
    different = []
    for start in range(0, len(texts), batch_size):
        batch = texts[start : start + batch_size]
        ours, theirs = tokenizer(batch).to_list(), ids_of(batch)
        different += [
            text for text, a, b in zip(batch, ours, theirs, strict=True) if a != b
        ]
    return different


@functools.cache
def real_lines(root):
    """Distinct texts of the data folder, one a line, TSV cell or JSON string."""
    texts = []
    for path in sorted((root / "glue").rglob("*.tsv")):
        text = path.read_text("utf-8-sig")
        for line in text.split("\n"):
            texts += line.split("\t")
    paths = [root / "corpus" / "tiny_shakespeare.txt"]
    for folder in ("corpus/gutenberg", "wikitext-2", "ud_ewt", "arc"):
        paths += sorted(
            path
            for path in (root / folder).iterdir()
            if path.suffix in (".txt", ".conllu", ".csv")
        )
    for path in paths:
        texts += path.read_text("utf-8", errors="replace").split("\n")
    for path in sorted((root / "corpus").glob("*.zip")):
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if name.endswith(".txt"):
                    content = archive.read(name).decode("utf-8", "replace")
                    texts += content.split("\n")
    for path in sorted((root / "ner").rglob("*.conll")):
        for sentence in path.read_text("utf-8").split("\n\n"):
            rows = csv.reader(
                sentence.split("\n"), delimiter="\t", quoting=csv.QUOTE_NONE
            )
            texts.append(" ".join(row[0] for row in rows if row))
    for path in sorted((root / "squad").iterdir()):
        if path.suffix == ".gz":
            content = gzip.decompress(path.read_bytes())
        elif path.suffix == ".json":
            content = path.read_bytes()
        else:
            continue
        for article in json.loads(content)["data"]:
            for paragraph in article["paragraphs"]:
                texts.append(paragraph["context"])
                for question in paragraph["qas"]:
                    texts.append(question["question"])
                    texts += [answer["text"] for answer in question["answers"]]
    for folder in ("superglue", "nli"):
        for path in sorted((root / folder).rglob("*.jsonl")):
            for line in path.read_text("utf-8").split("\n"):
                if line.strip():
                    texts += [v for v in json.loads(line).values() if type(v) is str]
    return sorted({text for text in texts if text.strip()})


def test_awkward_ids_equal_hugging_face(real):
    tokenizer, path = real
    ids_of = reference(path, tokenizer.lowercase)
    texts = [text for text, _, _ in AWKWARD]
    texts += [raw.decode("utf-8", "replace") for raw, _ in INVALID_UTF8]
    texts += ["x" * 100, "x" * 101, "é" * 100, "é" * 101, "[CLS] [MASK] ##ing [UNK]"]
    assert mismatches(tokenizer, ids_of, texts) == []


@pytest.mark.slow
def test_ids_of_real_lines_equal_hugging_face(real, data_dir, capsys):
    tokenizer, path = real
    texts = real_lines(data_dir)[:: 2 if tokenizer.lowercase else 8]
    different = mismatches(tokenizer, reference(path, tokenizer.lowercase), texts)
    other_scripts = sum(any(ord(c) > 0x24F and c.isalpha() for c in t) for t in texts)
    with capsys.disabled():
        print(
            f"\n{path.name}: {len(texts)} distinct texts, {other_scripts} with letters "
            f"beyond Latin, {sum(map(len, texts)) / 1e6:.1f} M characters, "
            f"{len(different)} mismatches"
        )
    assert len(texts) > 12_000 and other_scripts > 100
    assert different == []


@pytest.mark.slow
def test_ids_of_every_character_in_use_equal_hugging_face(real, capsys):
    """Of planes 0 and 1. No vocabulary has others; the next test splits them."""
    tokenizer, path = real
    ids_of = reference(path, tokenizer.lowercase)
    unused = ("Cn", "Cs", "Co")  # unassigned, surrogates, private use
    characters = [chr(c) for c in range(0x20000)]
    characters = [c for c in characters if unicodedata.category(c) not in unused]
    forms = ("{}", "a{}b", "A{}\u0301Σ")
    texts = [form.format(c) for form in forms for c in characters]
    different = mismatches(tokenizer, ids_of, texts)
    with capsys.disabled():
        print(f"\n{path.name}: {len(texts)} strings, {len(different)} mismatches")
    assert different == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lowercase", "strip_accents"),
    [(True, None), (False, None), (True, False), (False, True)],
)
def test_words_of_code_points_equal_hugging_face(lowercase, strip_accents, capsys):
    """Stricter than ids: words that both sides map to `[UNK]` are compared too."""
    theirs = reference_words(lowercase, strip_accents)
    known = set(code_points(NEWER_LETTERS_WITH_CASE)) if lowercase else set()
    if strip_accents or (strip_accents is None and lowercase):
        known |= set(code_points(NEWER_DECOMPOSITIONS))
    points = [c for c in range(0x110000) if is_tried(c)]
    random.seed(0)
    # Strings of random characters, marks and spaces try their interplay and order.
    plain = [c for c in points if c < 0x20000 and c not in known]
    marks = [*range(0x300, 0x370), *range(0x591, 0x5C8), 0x3A3, 0x130, 0x20, 0x2E]
    fuzz = [
        "".join(chr(random.choice(random.choice((plain, marks)))) for _ in range(8))
        for _ in range(20_000)
    ]
    different = set()
    for form in ("{}", "a{}b"):
        texts = [form.format(chr(c)) for c in points]
        for start in range(0, len(texts), 65536):
            batch = texts[start : start + 65536]
            ours = words_of(batch, lowercase=lowercase, strip_accents=strip_accents)
            different |= {
                points[start + i] for i, t in enumerate(batch) if ours[i] != theirs(t)
            }
    ours = words_of(fuzz, lowercase=lowercase, strip_accents=strip_accents)
    wrong = [
        text for text, words in zip(fuzz, ours, strict=True) if words != theirs(text)
    ]
    with capsys.disabled():
        print(
            f"\nlowercase={lowercase}, strip_accents={strip_accents}: "
            f"{len(different)} of {len(points)} code points, {len(wrong)} of "
            f"{len(fuzz)} random strings differ"
        )
    assert different == known
    assert wrong == []


@pytest.mark.slow
def test_a_turkish_locale_changes_nothing():
    script = (
        "import tensorflow as tf\n"
        "from keras_recbert.text.split_words import split_words\n"
        "assert tf.strings.lower('I', encoding='utf-8') != b'i', 'wrong locale'\n"
        "words = split_words(tf.constant(['ISTANBUL Iİ']))\n"
        "assert words.to_list() == [[b'istanbul', b'ii']], words\n"
    )
    environment = {**os.environ, "LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8"}
    run_python(script, environment=environment)


@pytest.mark.slow
def test_a_saved_model_gives_the_same_ids_without_this_package(real, tmp_path):
    tokenizer, _ = real
    texts = [text for text, _, _ in AWKWARD] + [raw for raw, _ in INVALID_UTF8]
    texts = [t.encode("utf-8") if isinstance(t, str) else t for t in texts]
    archive = keras.export.ExportArchive()
    archive.track(tokenizer)
    archive.add_endpoint(
        "serve", tokenizer, input_signature=[tf.TensorSpec([None], tf.string)]
    )
    archive.write_out(str(tmp_path / "saved"))
    np.save(tmp_path / "texts.npy", np.array(texts, dtype=object))
    script = (
        "import json, sys\n"
        "import numpy as np, tensorflow as tf, tensorflow_text\n"
        "texts = np.load('texts.npy', allow_pickle=True)\n"
        "serve = tf.saved_model.load('saved').serve\n"
        "ids = serve(tf.constant(texts)).to_list()\n"
        "assert 'keras_recbert' not in sys.modules\n"
        "json.dump(ids, open('ids.json', 'w'))\n"
    )
    run_python(script, folder=tmp_path, isolated=True)
    ids = json.loads((tmp_path / "ids.json").read_text())
    assert ids == tokenizer(texts).to_list()


@pytest.mark.slow
@pytest.mark.benchmark
def test_speed_beside_hugging_face(real, data_dir, capsys):
    tokenizer, path = real
    ids_of = reference(path, tokenizer.lowercase)
    texts = random.Random(0).sample(real_lines(data_dir), 20_000)
    batches = [texts[start : start + 256] for start in range(0, len(texts), 256)]
    tensors = [tf.constant(batch) for batch in batches]
    ours = tf.function(tokenizer, input_signature=[tf.TensorSpec([None], tf.string)])

    def seconds(function, items):
        times = []
        for _ in range(5):
            start = time.perf_counter()
            for item in items:
                function(item)
            times.append(time.perf_counter() - start)
        return statistics.median(times)

    ours(tensors[0])
    mine, theirs = seconds(ours, tensors), seconds(ids_of, batches)
    with capsys.disabled():
        print(
            f"\n{path.name}: 20,000 texts in {mine:.2f} s, Hugging Face "
            f"{theirs:.2f} s, ratio {theirs / mine:.2f}"
        )
    assert mine < 2 * theirs


def run_python(script, folder=None, environment=None, isolated=False):
    """Runs a script in a fresh interpreter; isolated ones cannot see this package."""
    root = pathlib.Path(__file__).parents[2]
    environment = {**(environment or os.environ), "CUDA_VISIBLE_DEVICES": "-1"}
    if isolated:
        environment.pop("PYTHONPATH", None)
    else:
        environment["PYTHONPATH"] = str(root)
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
