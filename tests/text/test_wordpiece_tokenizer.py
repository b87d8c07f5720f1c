"""WordPiece ids: by definition, on awkward text, and against Hugging Face.

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

from keras_recbert.text.split_words import split_words
from keras_recbert.text.wordpiece_tokenizer import WordPieceTokenizer

LINE = (
    "[PAD] [UNK] [CLS] [SEP] [MASK] the wind ##mill ##s turn ##ed . , ! ? ' "
    "[ ] sep e ete strasse σ ##σ ας 你 好 ~ i ##i é É"
)
PIECES = LINE.split()

NEWER_LETTERS_WITH_CASE = (
    "1C89 2C2F A7C0 A7CB-A7CC A7CE A7D0 A7D2 A7D4 A7D6 A7D8 A7DA A7DC 10570-1057A "
    "1057C-1058A 1058C-10592 10594-10595 10D50-10D65 16EA0-16EB8"
)
NEWER_DECOMPOSITIONS = (
    "105C9 105E4 11383 11385 1138E 11391 113C5 113C7-113C8 11938 16121-16128 "
    "16D68-16D6A"
)

# Awkward text, and the words of its uncased and its cased form.
AWKWARD = [
    ("", [], []),
    (" \t\r\n\u00a0\u2003\u3000\u2028\u2029", [], []),
    ("\0\x0b\x0c\x85\u200b\ufeff\ufffd", [], []),
    ("a\0b\x1fc\u00add", ["abcd"], ["abcd"]),
    ("a\u2028b\u00a0c\td", ["a", "b", "c", "d"], ["a", "b", "c", "d"]),
    ("It's $5.", ["it", "'", "s", "$", "5", "."], ["It", "'", "s", "$", "5", "."]),
    ("ÉTÉ e\u0301te\u0301", ["ete", "ete"], ["ÉTÉ", "e\u0301te\u0301"]),
    # One character at a time: no final sigma, and a dotted I loses its dot as a mark.
    ("ΟΔΟΣ Σ İI", ["οδοσ", "σ", "ii"], ["ΟΔΟΣ", "Σ", "İI"]),
    ("Straße ﬁn Ⅳ", ["straße", "ﬁn", "ⅳ"], ["Straße", "ﬁn", "Ⅳ"]),
    # Compatibility forms stay: full-width tilde, non-breaking hyphen, ligatures.
    ("a～b Ａ", ["a～b", "ａ"], ["a～b", "Ａ"]),
    ("a\u2011b", ["a", "\u2011", "b"], ["a", "\u2011", "b"]),
    ("你好 世", ["你", "好", "世"], ["你", "好", "世"]),
    ("ab你c", ["ab", "你", "c"], ["ab", "你", "c"]),
    ("\uf900", ["\u8c48"], ["\uf900"]),
    ("한국", ["\u1112\u1161\u11ab\u1100\u116e\u11a8"], ["한국"]),
    ("שָׁלוֹם، مَرحبا", ["שלום", "،", "مرحبا"], ["שָׁלוֹם", "،", "مَرحبا"]),
    ("🙂👩‍👩‍👧é", ["🙂👩👩👧e"], ["🙂👩👩👧é"]),
    ("🇫🇷 ❤️", ["🇫🇷", "❤"], ["🇫🇷", "❤️"]),
    ("[SEP] <s>", ["[", "sep", "]", "<", "s", ">"], ["[", "SEP", "]", "<", "s", ">"]),
    # Punctuation of Unicode 9 and later is not punctuation for BERT's tokenizers.
    ("a\u2e43b", ["a\u2e43b"], ["a\u2e43b"]),
]

INVALID_UTF8 = [
    (b"caf\xc3 au\xff\xfelait", ["caf", "aulait"]),
    (b"\xed\xa0\x80ab\xc3", ["ab"]),
    (b"\x80\xc0\xaf\xf4\x90\x80\x80", []),
    (b"a\xf0\x9f\x98 b", ["a", "b"]),
]


@pytest.fixture(scope="module")
def tokenizer():
    return WordPieceTokenizer(PIECES)


@pytest.fixture(scope="module", params=["uncased", "cased"])
def real(request, data_dir):
    """Our tokenizer and the path of its vocabulary, for both published ones."""
    path = data_dir / "vocab" / f"bert-base-{request.param}-vocab.txt"
    return WordPieceTokenizer(path, lowercase=request.param == "uncased"), path


def words_of(texts, **kwargs):
    rows = split_words(tf.constant(texts), **kwargs).to_list()
    return [[word.decode("utf-8") for word in row] for row in rows]


def pieces_of(tokenizer, text):
    return [tokenizer.id_to_token(index) for index in tokenizer([text])[0].numpy()]


def code_points(ranges):
    for ends in ranges.split():
        first, _, last = ends.partition("-")
        yield from range(int(first, 16), int(last or first, 16) + 1)


def test_the_longest_piece_is_taken_first(tokenizer):
    assert pieces_of(tokenizer, "The windmills turned.") == (
        ["the", "wind", "##mill", "##s", "turn", "##ed", "."]
    )


def test_a_word_with_an_unknown_part_is_unknown_as_a_whole(tokenizer):
    assert pieces_of(tokenizer, "windx wind") == ["[UNK]", "wind"]


def test_special_tokens_in_a_text_are_plain_words(tokenizer):
    assert pieces_of(tokenizer, "[SEP]") == ["[", "sep", "]"]


@pytest.mark.parametrize(("text", "uncased", "cased"), AWKWARD)
def test_words_follow_the_definition(text, uncased, cased):
    assert words_of([text]) == [uncased]
    assert words_of([text], lowercase=False) == [cased]


def test_case_and_accents_can_be_set_apart():
    text = "ÉTÉ"
    assert words_of([text], lowercase=True, strip_accents=False) == [["été"]]
    assert words_of([text], lowercase=False, strip_accents=True) == [["ETE"]]


@pytest.mark.parametrize(("text", "expected"), INVALID_UTF8)
def test_invalid_utf8_is_dropped(text, expected):
    for lowercase in (True, False):
        assert words_of([text], lowercase=lowercase) == [expected]
    decoded = text.decode("utf-8", "replace")
    assert words_of([decoded]) == [expected]


def test_half_a_surrogate_pair_is_dropped(tokenizer):
    assert tokenizer(["the\ud83d wind"]).to_list() == [[5, 6]]


def test_a_word_of_100_characters_is_the_longest():
    # Characters, not bytes: 100 of these take 200 bytes.
    tokenizer = WordPieceTokenizer([*PIECES, "ß", "##ß"])
    long_enough, too_long = tokenizer(["ß" * 100, "ß" * 101]).to_list()
    assert long_enough == [tokenizer.token_to_id("ß")] + 99 * [
        tokenizer.token_to_id("##ß")
    ]
    assert too_long == [tokenizer.unk_id]
    # Counted after normalisation, as everywhere.
    assert len(tokenizer(["ß\u0301" * 100])[0]) == 100


@pytest.mark.parametrize(
    ("text", "expected_length"),
    [
        ("x" * 1_000_000, 1),
        ("é" * 500_000, 1),
        ("the wind! " * 100_000, 300_000),
        ("你" * 333_333, 333_333),
        ("\u0301" * 500_000, 0),
        ("." * 1_000_000, 1_000_000),
    ],
    ids=["word", "accents", "text", "ideographs", "marks", "punctuation"],
)
def test_a_megabyte_takes_seconds(tokenizer, text, expected_length):
    start = time.perf_counter()
    ids = tokenizer([text])
    seconds = time.perf_counter() - start
    assert ids.row_lengths().numpy().tolist() == [expected_length]
    assert seconds < 10  # 0.02 to 0.5 s on a quiet machine


@pytest.mark.parametrize(
    "texts",
    [
        ["the wind", "", "turned!"],
        [b"the wind", "", np.str_("turned!")],
        np.array(["the wind", "", "turned!"]),
        np.array(["the wind", b"", "turned!"], dtype=object),
        tf.constant(["the wind", "", "turned!"]),
        [tf.constant("the wind"), tf.constant(""), tf.constant("turned!")],
    ],
    ids=["list", "mixed", "array", "objects", "tensor", "tensors"],
)
def test_any_batch_of_strings_is_taken(tokenizer, texts):
    ids = tokenizer(texts)
    assert isinstance(ids, tf.RaggedTensor)
    assert ids.dtype == tf.int32 and ids.shape.as_list() == [3, None]
    assert ids.to_list() == [[5, 6], [], [9, 10, 13]]


@pytest.mark.parametrize("text", ["the wind", b"the wind", tf.constant("the wind")])
def test_one_string_is_a_batch_of_one(tokenizer, text):
    assert tokenizer(text).to_list() == [[5, 6]]


def test_no_texts_give_no_rows(tokenizer):
    assert tokenizer([]).shape.as_list() == [0, None]


@pytest.mark.parametrize(
    ("texts", "error", "message"),
    [
        (["a", None], TypeError, "None of type NoneType at index 1"),
        (["a", "b", float("nan")], TypeError, "nan of type float at index 2"),
        (np.array([1.5]), TypeError, "type float64 at index 0"),
        ([("a", "b")], TypeError, "tuple at index 0.*tuple of two batches"),
        (tf.constant([1]), TypeError, "tensor of dtype int32"),
        (3, TypeError, "3 of type int"),
        ({"a": 1}, TypeError, "of type dict"),
        (np.array([["a"]]), ValueError, r"one axis.*shape \(1, 1\)"),
        (tf.constant([["a"]]), ValueError, r"one axis.*shape \(1, 1\)"),
        (tf.ragged.constant([["a"]]), ValueError, "one axis"),
    ],
)
def test_what_is_no_batch_of_strings_is_an_error(tokenizer, texts, error, message):
    with pytest.raises(error, match=message):
        tokenizer(texts)


def test_ids_and_tokens_map_to_each_other(tokenizer):
    special = (tokenizer.pad_id, tokenizer.unk_id, tokenizer.cls_id, tokenizer.sep_id)
    assert special == (0, 1, 2, 3) and tokenizer.mask_id == 4
    assert tokenizer.vocabulary_size == len(PIECES)
    for index, piece in enumerate(PIECES):
        assert tokenizer.token_to_id(piece) == index
        assert tokenizer.id_to_token(index) == piece
    assert WordPieceTokenizer(PIECES[:4]).mask_id is None
    with pytest.raises(KeyError, match="'zebra' is not in the vocabulary of 32"):
        tokenizer.token_to_id("zebra")
    with pytest.raises(IndexError, match="from 0 to 31. Received: -1"):
        tokenizer.id_to_token(-1)


def test_detokenize_joins_pieces(tokenizer):
    ids = tokenizer(["The windmills turned.", ""])
    assert tokenizer.detokenize(ids).numpy().tolist() == [
        b"the windmills turned .",
        b"",
    ]
    dense = tf.constant([[2, 5, 3, 0]])
    assert tokenizer.detokenize(dense).numpy().tolist() == [b"[CLS] the [SEP] [PAD]"]
    assert tokenizer.detokenize([[5, 6], [9]]).numpy().tolist() == [
        b"the wind",
        b"turn",
    ]


@pytest.mark.parametrize("bad", [-1, len(PIECES), 2**30])
def test_detokenize_refuses_ids_outside_the_vocabulary(tokenizer, bad):
    # Unchecked, TF Text's operation crashes the process.
    for function in (tokenizer.detokenize, tf.function(tokenizer.detokenize)):
        with pytest.raises(tf.errors.InvalidArgumentError, match="from 0 to 31"):
            function(tf.constant([[5, bad]]))


@pytest.mark.parametrize(
    ("vocabulary", "error", "message"),
    [
        ([], ValueError, "`vocabulary` is empty"),
        (["[PAD]", "[UNK]", "[CLS]"], ValueError, r"`vocabulary` lacks \[SEP\]"),
        ([*PIECES, "wind"], ValueError, "index 32: 'wind' is there already"),
        ([*PIECES, 7], TypeError, "index 32: word pieces must be str.*7 of type int"),
        ([*PIECES, "\ud800"], ValueError, "index 32: .* at most 256 bytes of UTF-8"),
        ("/no/such/vocab.txt", FileNotFoundError, "No vocabulary file at /no/such"),
    ],
)
def test_unusable_vocabularies_are_errors(vocabulary, error, message):
    with pytest.raises(error, match=message):
        WordPieceTokenizer(vocabulary)


def test_the_same_ids_come_out_of_tf_data(tokenizer):
    texts = [text for text, _, _ in AWKWARD]
    dataset = tf.data.Dataset.from_tensor_slices(texts).batch(7).map(tokenizer)
    rows = [row for batch in dataset for row in batch.to_list()]
    assert rows == tokenizer(texts).to_list()


def test_a_keras_file_needs_no_vocabulary_file(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(PIECES) + "\n", encoding="utf-8")
    tokenizer = WordPieceTokenizer(path, lowercase=False, strip_accents=True)
    texts = keras.Input((), dtype="string")
    keras.Model(texts, tokenizer(texts)).save(tmp_path / "model.keras")
    path.unlink()
    again = keras.saving.load_model(tmp_path / "model.keras").layers[1]
    assert again.get_config() == tokenizer.get_config()
    text = "ÉTÉ the wind"
    assert pieces_of(again, text) == pieces_of(tokenizer, text)


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
def test_ids_of_every_real_line_equal_hugging_face(real, data_dir, capsys):
    tokenizer, path = real
    texts = real_lines(data_dir)
    different = mismatches(tokenizer, reference(path, tokenizer.lowercase), texts)
    other_scripts = sum(any(ord(c) > 0x24F and c.isalpha() for c in t) for t in texts)
    with capsys.disabled():
        print(
            f"\n{path.name}: {len(texts)} distinct texts, {other_scripts} with letters "
            f"beyond Latin, {sum(map(len, texts)) / 1e6:.1f} M characters, "
            f"{len(different)} mismatches"
        )
    assert len(texts) > 50_000 and other_scripts > 500
    assert different == []


@pytest.mark.slow
def test_ids_of_every_assigned_character_equal_hugging_face(real, capsys):
    tokenizer, path = real
    ids_of = reference(path, tokenizer.lowercase)
    unassigned = ("Cn", "Cs")
    characters = [chr(c) for c in range(0x110000)]
    characters = [c for c in characters if unicodedata.category(c) not in unassigned]
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
def test_words_of_every_code_point_equal_hugging_face(lowercase, strip_accents, capsys):
    """Stricter than ids: words that both sides map to `[UNK]` are compared too."""
    theirs = reference_words(lowercase, strip_accents)
    known = set(code_points(NEWER_LETTERS_WITH_CASE)) if lowercase else set()
    if strip_accents or (strip_accents is None and lowercase):
        known |= set(code_points(NEWER_DECOMPOSITIONS))
    points = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
    random.seed(0)
    # Strings of random characters, marks and spaces try their interplay and order.
    plain = [c for c in points if c < 0x20000 and c not in known]
    marks = [*range(0x300, 0x370), *range(0x591, 0x5C8), 0x3A3, 0x130, 0x20, 0x2E]
    fuzz = [
        "".join(chr(random.choice(random.choice((plain, marks)))) for _ in range(8))
        for _ in range(100_000)
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
