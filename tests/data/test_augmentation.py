"""Synthetic examples: those of the thesis, their rates, their order, their errors."""

import collections
import subprocess
import sys

import numpy as np
import pytest
from reference.augmentation import augment_all, augment_once, unigrams

from keras_recbert.data import Augmentation, Examples, augment
from keras_recbert.data import augmentation as module
from keras_recbert.data.augmentation import TextAugmenter

WORDS = ["a", "b", "c", "d", "e", "f", "g", "h"]
RATES = {"mask_probability": 0.2, "pos_probability": 0.3}
FALSE_ALARM = 4  # standard deviations


def tag_of(word):
    return "vowel" if word in "ae" else "consonant" if word in "bcdf" else word


def tagger(words):
    return [tag_of(word) for word in words]


def texts(number, seed=0, longest=9):
    """Texts of 0 to 8 words; rare and frequent ones, some twice."""
    draws = np.random.default_rng(seed)
    chances = np.arange(1, 9) / 36
    return [
        " ".join(draws.choice(WORDS, size=length, p=chances))
        for length in draws.integers(longest, size=number)
    ]


def within(count, total, rate):
    sigma = np.sqrt(total * rate * (1 - rate))
    return abs(count - total * rate) < FALSE_ALARM * sigma


# The three things that somebody types first ------------------------------------------


def test_texts_alone_are_enough(data_dir, monkeypatch):
    monkeypatch.setenv("NLTK_DATA", str(data_dir / "nltk_data"))
    films = ["a gripping film", "dull and too long", "a small marvel"]
    examples = list(augment(films))
    assert examples[:3] == [(film,) for film in films]
    assert len(examples) > 10
    assert any("[MASK]" in text for (text,) in examples)
    known = {*" ".join(films).split(), "[MASK]"}
    assert all(set(text.split()) <= known for (text,) in examples)


def test_a_notebook_shows_examples_of_a_list(data_dir, monkeypatch):
    shells = pytest.importorskip("IPython.core.interactiveshell")
    monkeypatch.setenv("NLTK_DATA", str(data_dir / "nltk_data"))
    shell = shells.InteractiveShell()
    shell.run_cell("from keras_recbert.data import augment").raise_error()
    shown = shell.run_cell("list(augment(['a gripping film', 'dull']))")
    shown.raise_error()
    assert shown.result == list(augment(["a gripping film", "dull"]))


def test_lists_tuples_and_fields_are_the_same_pairs():
    first, second = texts(5, 1), texts(5, 2)
    options = Augmentation(n_iter=3, pos_probability=0)
    as_tuple = list(augment((first, second), options))
    fields = Examples({"question": first, "context": second}).fields
    assert list(augment(fields, options)) == as_tuple
    assert as_tuple[:5] == list(zip(first, second, strict=True))


def test_neither_tensorflow_nor_nltk_is_imported_for_masks():
    code = (
        "import sys\n"
        "from keras_recbert.data import Augmentation, augment\n"
        "print(len(list(augment(['a b c'] * 2, Augmentation(pos_probability=0)))))\n"
        "assert not {'tensorflow', 'keras', 'nltk'} & sys.modules.keys()\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert int(ended.stdout) > 2


# What the thesis says ----------------------------------------------------------------


@pytest.mark.parametrize("ngram_probability", [0.0, 0.4])
@pytest.mark.parametrize("num_fields", [1, 2])
def test_the_examples_are_those_of_the_loop(num_fields, ngram_probability):
    columns = [texts(40, seed) for seed in range(num_fields)]
    options = Augmentation(
        n_iter=7, seed=3, ngram_probability=ngram_probability, **RATES
    )
    expected = augment_all(columns, options, tag_of)
    assert len(expected) > 150
    originals = list(zip(*columns, strict=True))
    fields = {f"field {number}": column for number, column in enumerate(columns)}
    found = list(augment(fields, options, tagger))
    assert found == expected
    assert found[:40] == originals
    assert len(set(found[40:])) == len(found[40:])
    assert not set(found[40:]) & set(originals)


def test_words_are_masked_or_replaced_at_their_rates():
    columns = [["b c d f " * 6 + "g"] * 400]
    examples = TextAugmenter(columns[0], Augmentation(**RATES), tagger)
    counts = collections.Counter()
    for row in range(400):
        before, after = columns[0][row].split(), examples.candidate(1, row)[0].split()
        assert len(after) == len(before)
        for old, new in zip(before, after, strict=True):
            is_same_tag = tag_of(old) == tag_of(new)
            assert new == "[MASK]" or is_same_tag
            counts["mask" if new == "[MASK]" else "kept" if old == new else "new"] += 1
    total = counts.total()
    assert total == 400 * 25
    assert within(counts["mask"], total, 0.2)
    # Of 24 of 25 words a quarter of the draws, of "g" all of them, give the same word.
    assert within(counts["new"], total, 0.3 * 24 / 25 * 3 / 4)
    all_of_it = {"mask_probability": 0.4, "pos_probability": 0.6}
    examples = TextAugmenter(columns[0], Augmentation(**all_of_it), tagger)
    masks = sum(examples.candidate(1, row)[0].count("[MASK]") for row in range(400))
    assert within(masks, total, 0.4)


def test_replacements_follow_the_unigrams_of_their_tag():
    first, second = texts(300, 5), texts(300, 6)
    options = Augmentation(mask_probability=0, pos_probability=1, n_iter=3)
    examples = TextAugmenter((first, second), options, tagger)
    drawn = collections.defaultdict(collections.Counter)
    for row in range(300):
        for old, new in zip(
            " ".join(examples.original(row)).split(),
            " ".join(examples.candidate(3, row)).split(),
            strict=True,
        ):
            drawn[tag_of(old)][new] += 1
    for tag, words in unigrams([*first, *second], tag_of).items():
        assert set(drawn[tag]) == set(words)
        total = drawn[tag].total()
        for word in set(words):
            rate = words.count(word) / len(words)
            assert within(drawn[tag][word], total, rate) or rate == 1


def test_an_ngram_has_one_to_five_words_at_equal_rates():
    options = Augmentation(mask_probability=0, pos_probability=0, ngram_probability=0.5)
    words = [f"w{place}" for place in range(9)]
    examples = TextAugmenter([" ".join(words)] * 3000, options)
    found = [examples.candidate(1, row)[0].split() for row in range(3000)]
    lengths = collections.Counter(map(len, found))
    assert set(lengths) == {1, 2, 3, 4, 5, 9}
    assert within(lengths[9], 3000, 0.5)
    assert all(within(lengths[n], 3000, 0.1) for n in range(1, 6))
    for ngram in found:
        start = words.index(ngram[0])
        assert ngram == words[start : start + len(ngram)]
    single = collections.Counter(ngram[0] for ngram in found if len(ngram) == 1)
    assert all(within(single[word], lengths[1], 1 / 9) for word in words)


def test_pairs_change_the_first_the_second_and_both_in_turn():
    first, second = ["a b c d"] * 50, ["e f g h"] * 50
    options = Augmentation(mask_probability=0.5, pos_probability=0)
    examples = TextAugmenter((first, second), options)
    for iteration in range(1, 8):
        pairs = [examples.candidate(iteration, row) for row in range(50)]
        changed = [
            {pair[side] != texts[row] for row, pair in enumerate(pairs)}
            for side, texts in enumerate((first, second))
        ]
        expected = [{False}, {False}]
        for side in ((0,), (1,), (0, 1))[(iteration - 1) % 3]:
            expected[side] = {False, True}
        assert changed == expected


# Words, spaces and duplicates --------------------------------------------------------


def test_what_is_not_drawn_stays_byte_for_byte():
    text = "  Don't (ever) say \"it's  over\", he said:\t3.5% of U.S. films...  "
    options = Augmentation(mask_probability=0.03, pos_probability=0)
    examples = TextAugmenter([text], options)
    found = [examples.candidate(1 + n, 0)[0] for n in range(200)]
    assert text in found
    once = {one for one in found if one.count("[MASK]") == 1}
    assert text.replace("over", "[MASK]") in once
    assert text.replace("Don't", "Do [MASK]") in once
    for one in once:
        before, after = one.split("[MASK]")
        assert text.startswith(before.rstrip(" ")) and text.endswith(after.lstrip(" "))


def test_no_text_becomes_empty():
    odd = ["", "   ", "!", "word", "[MASK]"]
    options = Augmentation(
        n_iter=20, mask_probability=0.9, pos_probability=0.1, ngram_probability=1
    )
    found = [text for (text,) in augment(odd, options, tagger=list)]
    assert found[:5] == odd
    assert all(text.strip() for text in found[5:])


def test_duplicates_are_dropped_by_checksums_sorted_or_not(monkeypatch):
    options = Augmentation(n_iter=9, **RATES)
    many = texts(60, 8, longest=4)
    expected = list(augment(many, options, tagger))
    assert len(expected) < 300 < 60 * 10
    monkeypatch.setattr(module, "_RECENT", 16)
    assert list(augment(many, options, tagger)) == expected


def test_all_originals_stay_and_say_their_row():
    examples = list(TextAugmenter(["a b"] * 3, Augmentation(n_iter=2), tagger))
    places = [(one.iteration, one.row) for one in examples]
    assert places[:3] == [(0, 0), (0, 1), (0, 2)]
    assert places == sorted(places)
    assert len(places) > 3
    assert list(augment(["a b"] * 3, Augmentation(n_iter=0))) == [("a b",)] * 3


# Order of the work -------------------------------------------------------------------


def test_a_candidate_depends_on_its_place_and_texts_alone():
    pair = texts(30, 1), texts(30, 2)
    options = Augmentation(seed=11, ngram_probability=0.2, **RATES)
    examples = TextAugmenter(pair, options, tagger)
    places = [(k, row) for k in range(1, 5) for row in range(30)]
    forwards = {place: examples.candidate(*place) for place in places}
    again = TextAugmenter(pair, options, tagger)
    assert {p: again.candidate(*p) for p in reversed(places)} == forwards
    words = unigrams([*pair[0], *pair[1]], tag_of)
    for (k, row), found in forwards.items():
        given = examples.original(row)
        assert found == augment_once(list(given), options, k, row, words, tag_of)
    other = TextAugmenter(pair, Augmentation(seed=12, **RATES), tagger)
    assert sum(other.candidate(*p) != forwards[p] for p in places) > 60


# What is refused ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_iter": -1}, "`n_iter` must be a whole number of at least 0. Received: n_"),
        ({"n_iter": 2.0}, "`n_iter` must be a whole number"),
        ({"seed": -1}, "`seed` must be a whole number from 0 to 4294967295. Received"),
        (
            {"mask_probability": 1.1},
            "`mask_probability` must be a number from 0 to 1. R",
        ),
        ({"pos_probability": "0.1"}, "Received: pos_probability='0.1'"),
        ({"ngram_probability": True}, "Received: ngram_probability=True"),
        ({"mask_probability": float("nan")}, "Received: mask_probability=nan"),
        ({"mask_probability": 0.7, "pos_probability": 0.4}, "add up to 1 at most. Rec"),
        ({"mask_probability": 0, "pos_probability": 0}, "Nothing would be changed. R"),
    ],
)
def test_options_out_of_range(options, message):
    with pytest.raises(ValueError, match=message):
        Augmentation(**options)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ("a text", "`fields` must be a list of texts. Received: str, 'a text'"),
        (iter(["a"]), "`fields` must be a list of texts. Received: list_iterator"),
        ([], "at least one example, and as many .* Received: fields 0"),
        ((["a"], ["b", "c"]), r"Received: fields\[0\] 1, fields\[1\] 2"),
        ((["a"], ["b"], ["c"]), "must have one text, or two. Received: 3 columns"),
        ({}, "must have one text, or two. Received: 0 columns"),
        (
            {"words": [["a", "b"]]},
            r"`fields\['words'\]\[0\]` must be a text. Received: l",
        ),
        (["a", None], r"`fields\[1\]` must be a text. Received: NoneType"),
        ([("a", "b")], "Pairs are a tuple of two lists"),
    ],
)
def test_fields_that_are_no_texts(fields, message):
    with pytest.raises(ValueError, match=message):
        augment(fields, tagger=tagger)


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ((0, 0), "`iteration` must be a whole number of at least 1. Received: iterat"),
        ((-1, 0), "Received: iteration=-1"),
        ((1.5, 0), "Received: iteration=1.5"),
        ((1, 2), "`row` must be a whole number from 0 to 1. Received: row=2"),
        ((1, -1), "Received: row=-1"),
    ],
)
def test_places_of_no_candidate(place, message):
    examples = TextAugmenter(["a", "b"], tagger=tagger)
    with pytest.raises(ValueError, match=message):
        examples.candidate(*place)
    with pytest.raises(ValueError, match="`n_iter` must be .* at least 1"):
        TextAugmenter(["a", "b"], Augmentation(n_iter=0)).candidate(1, 0)


def test_other_arguments():
    with pytest.raises(
        ValueError, match="must be an Augmentation.* Received: augmentat"
    ):
        augment(["a"], {"n_iter": 3})
    with pytest.raises(ValueError, match="`num_workers` must be a whole number"):
        augment(["a"], num_workers=0)
