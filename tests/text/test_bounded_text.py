"""What one hostile text can cost, and that ordinary text gets the ids it had."""

import random
import time
import unicodedata

import pytest
import tensorflow as tf
import tensorflow_text as tf_text

from keras_recbert.core import unicode_classes
from keras_recbert.core.unicode_classes import code_points, regex_class
from keras_recbert.text.bounded_text import MAX_MARKS, bound_marks, keep_words
from keras_recbert.text.split_words import split_words
from keras_recbert.text.text_preprocessor import MAX_WORDS, TextPreprocessor
from keras_recbert.text.wordpiece_tokenizer import WordPieceTokenizer

PIECES = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "the",
    "wind",
    "##mill",
    "##s",
    ".",
    "a",
    "e",
    "##a",
    "##e",
    "你",
]
# Marks of several classes; nonspacing and others; and some that are more than one.
NONSPACING = "\u0300\u0301\u0315\u0316\u0334\u0345\u0344\u0f73\u05b0"
OTHER = "\u302e\u302f\u1715\u1b44\u0898\u1abf\U00010f46\U0001d165"
STARTERS = "aé\u1e69\u0e34\u034f\ufe0f\u200b 한\U0001d15e.你\u0390İ"
UNITS = {
    "one word": "a",
    "long words": "a" * 102 + " ",
    "words at the limit": "a" * 100 + ".",
    "short words": "a ",
    "spaces": " ",
    "line feeds": "\n",
    "one word a line feed": "a" + "\n" * 30,
    "control characters": "\0",
    "control between": "a\u200b",
    "joiners": "\u200d",
    "tags": "\U000e0041",
    "punctuation": ".",
    "ideographs": "你",
    "emoji": "\U0001f468\u200d\U0001f469",
    "one mark": "\u0315",
    "marks of two classes": "\u0300\u0316",
    "a mark of two": "\u0344",
    "marks that decompose": "\u0f73",
    "letters and marks": "e\u0301",
    "composed letters": "é",
    "three for one": "\u0390",
    "selectors": "a\ufe0f",
    "other marks": "\u302e\u0898\u1715",
    "notes": "\U0001d164",
    "syllables": "한",
    "letters of syllables": "\u1112\u1161\u11ab",
    "ligature of 18": "\ufdfa",
    "lower case of two": "İ",
    "sigma": "Σ",
    "not UTF-8": b"\xff",
    "cut UTF-8": b"\xe4\xbd",
}


def repeated(unit, size):
    unit = unit if isinstance(unit, bytes) else unit.encode()
    return (unit * (size // len(unit) + 1))[:size]


def hostile_texts(size):
    """Texts of `size` bytes by what is in them."""
    draw = random.Random(0)
    texts = {name: repeated(unit, size) for name, unit in UNITS.items()}
    for name, low, high in (
        ("sorted late", "\u0315", "\u0300"),
        ("other marks, sorted late", "\u302e", "\u1715"),
    ):
        half = size // 2
        texts[name] = b"a" + repeated(low, half) + repeated(high, half - 1)
    marks = draw.choices(NONSPACING + OTHER, k=size // 2)
    texts["marks at random"] = "".join(["a", *marks]).encode()[:size]
    return texts


def longest_run(text):
    """The most combining marks in a row of a text, decomposed."""
    longest = run = 0
    for character in unicodedata.normalize("NFD", text):
        run = run + 1 if unicodedata.combining(character) else 0
        longest = max(longest, run)
    return longest


def normalized(texts):
    """Decomposed and without nonspacing marks."""
    table = regex_class(unicode_classes.NONSPACING_MARK)
    return tf.strings.regex_replace(
        tf_text.normalize_utf8(tf.constant(texts), "NFD"), f"[{table}]", ""
    )


def test_what_is_normalised_has_no_long_run_of_marks(monkeypatch):
    seen, normalize_utf8 = [], tf_text.normalize_utf8

    def normalize(texts, form):
        seen.extend(text.decode() for text in texts.numpy())
        return normalize_utf8(texts, form)

    texts = hostile_texts(3000)
    assert longest_run(texts["sorted late"].decode("utf-8", "ignore")) > 1000
    monkeypatch.setattr(tf_text, "normalize_utf8", normalize)
    split_words(list(texts.values()))
    assert len(seen) == len(texts)
    # A composed letter may bring two marks of its own before a run.
    assert max(map(longest_run, seen)) <= MAX_MARKS + 2


def test_marks_are_bounded_without_another_result():
    draw = random.Random(1)
    texts = []
    for _ in range(3000):
        marks = NONSPACING * 2 + OTHER + draw.choice(("", STARTERS))
        texts.append("".join(draw.choices(marks, k=draw.randrange(1, MAX_MARKS))))
    bounded = bound_marks(tf.constant(texts)).numpy()
    assert sum(a.decode() != b for a, b in zip(bounded, texts, strict=True)) > 1000
    found, expected = normalized(bounded).numpy(), normalized(texts).numpy()
    assert len(set(expected)) > 1000
    assert found.tolist() == expected.tolist()
    # Only the order within longer runs of other marks is another.
    run = "a" + "\u302e\u1715" * MAX_MARKS
    (found,) = normalized(bound_marks(tf.constant([run]))).numpy()
    (expected,) = normalized([run]).numpy()
    assert found != expected and sorted(found.decode()) == sorted(expected.decode())


@pytest.mark.slow
def test_every_mark_that_is_reordered_is_in_a_table():
    texts = [chr(code) for code in range(1, 0x110000) if not 0xD800 <= code < 0xE000]

    def decomposed(texts):
        return tf_text.normalize_utf8(tf.constant(texts), "NFD").numpy().tolist()

    before = decomposed(["a\u0345" + text for text in texts])
    after = decomposed(["a" + text + "\u0334" for text in texts])
    alone = decomposed(texts)
    reordered = {
        ord(text)
        for text, single, first, last in zip(texts, alone, before, after, strict=True)
        # Where a starter comes first, the mark before it stays.
        if first != "a\u0345".encode() + single
        or (last != b"a" + single + "\u0334".encode() and len(single.decode()) == 1)
    }
    tables = ("REORDERED_NONSPACING_MARK", "OTHER_REORDERED_MARK")
    listed = [
        {
            code
            for first, last in code_points(getattr(unicode_classes, name))
            for code in range(first, last + 1)
        }
        for name in tables
    ]
    assert not listed[0] & listed[1]
    assert reordered <= listed[0] | listed[1]


@pytest.mark.parametrize("max_words", [1, 7, 40])
def test_texts_are_cut_after_a_word(max_words):
    draw = random.Random(max_words)
    kinds = ["a", "wind", " ", "\n ", "\u3000", ".", "!?", "你", "é", "x" * 150, "☃"]
    texts = ["".join(draw.choices(kinds, k=draw.randrange(200))) for _ in range(100)]
    whole = split_words(texts).to_list()
    cut = keep_words(tf.constant(texts), max_words)
    found = split_words(cut).to_list()
    assert max(map(len, whole)) > max_words
    for text, shortened, row, expected in zip(
        texts, cut.numpy(), found, whole, strict=True
    ):
        if len(text.encode()) <= max_words:
            assert shortened.decode() == text
        assert row == expected[:max_words]


def test_no_more_words_than_could_be_packed_are_split(monkeypatch):
    seen, regex_split = [], tf_text.regex_split

    def split(texts, *patterns):
        words = regex_split(texts, *patterns)
        seen.extend(words.row_lengths().numpy().tolist())
        return words

    preprocessor = TextPreprocessor(WordPieceTokenizer(PIECES))
    texts = hostile_texts(3 * MAX_WORDS)
    monkeypatch.setattr(tf_text, "regex_split", split)
    tf.config.run_functions_eagerly(True)  # so that `split` sees numbers
    try:
        columns = preprocessor.columns(list(texts.values()))
        ids = preprocessor.pack(*columns)["token_ids"].numpy()
    finally:
        tf.config.run_functions_eagerly(False)
    assert max(seen[: len(texts)]) == MAX_WORDS
    # What is packed is the beginning of what there is.
    plain = WordPieceTokenizer(PIECES)(list(texts.values())).to_list()
    for row, expected in zip(ids, plain, strict=True):
        assert [*row[row != 0]][1:-1] == expected[:510]


def test_a_limit_above_the_bound_is_kept():
    texts = ["a " * (MAX_WORDS + 10)]
    tokenizer = WordPieceTokenizer(PIECES)
    limit = MAX_WORDS + 5
    preprocessor = TextPreprocessor(tokenizer, max_sequence_length=limit)
    assert preprocessor(texts)["token_ids"].shape == (1, limit)


@pytest.mark.slow
@pytest.mark.benchmark
def test_time_grows_with_the_size_of_a_text(capsys):
    """Ten times the bytes: ten times the time, where it was up to a hundred."""
    preprocessor = TextPreprocessor(WordPieceTokenizer(PIECES))
    pack = tf.function(preprocessor, input_signature=[tf.TensorSpec([None], tf.string)])
    pack(tf.constant(["a"]))

    def seconds(text):
        times = []
        for _ in range(3):
            start = time.process_time()  # what others do on this machine is not counted
            pack(tf.constant([text]))
            times.append(time.process_time() - start)
        return min(times)

    size = 5_000_000
    small = {name: seconds(text) for name, text in hostile_texts(size // 10).items()}
    large = {name: seconds(text) for name, text in hostile_texts(size).items()}
    slowest = max(large, key=large.get)
    with capsys.disabled():
        print(f"\n5 MB: at most {large[slowest]:.2f} s of CPU time ({slowest})")
    for name, took in large.items():
        assert took < 25 * small[name] + 0.1, name
    assert large[slowest] < 2
