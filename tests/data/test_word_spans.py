"""Words of texts, and texts with other words in their place."""

import pytest

from keras_recbert.data.word_spans import find_words, replace_words, words_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a plain text", "a plain text"),
        ("I don't think it's bad.", "I do n't think it 's bad ."),
        ("CAN'T won’t we'LL", "CA N'T wo n’t we 'LL"),
        ("do n't -- it 's n't", "do n't -- it 's n't"),
        ("-lrb- so -RRB- -x-", "-lrb- so -RRB- - x -"),
        ("the U.S. and e.g. Mr. O'Brien", "the U.S. and e.g. Mr . O'Brien"),
        ("3,000.50 at 9:30, $5 5%", "3,000.50 at 9:30 , $ 5 5 %"),
        ("state-of-the-art well- known", "state-of-the-art well - known"),
        ('("end.", he said)...', '( " end . " , he said ) ...'),
        ("wait...what?!", "wait ... what ? !"),
        ("the [MASK] of [MASKS]", "the [MASK] of [ MASKS ]"),
        ("café naïve हिन्दी में", "café naïve हिन्दी में"),
        ("我爱films👍🏽 ok", "我 爱 films👍🏽 ok"),
        (" \t\n", ""),
        ("", ""),
    ],
)
def test_words_are_much_like_those_of_the_penn_treebank(text, words):
    assert words_of(text) == words.split()
    spans = find_words(text)
    assert [text[begin:end] for begin, end in spans] == words.split()
    assert "".join(words_of(text)) == "".join(text.split())
    assert replace_words(text, spans, {}) == text


@pytest.mark.parametrize(
    ("text", "replacements", "expected"),
    [
        ("a  b\tc ", {1: "x"}, "a  x\tc "),
        ("end.", {0: "[MASK]"}, "[MASK]."),
        ("(end)", {0: "[MASK]", 2: "]"}, "[MASK] end]"),
        ("don't", {1: "not"}, "do not"),
        ("don't", {0: "[MASK]"}, "[MASK] n't"),
        ("don't", {0: "x", 1: "[MASK]"}, "x [MASK]"),
        ("it's", {1: "is"}, "it is"),
        ("it's", {0: "he"}, "he's"),
        ("it's", {0: "he", 1: "is"}, "he is"),
        ("it's", {0: "[MASK]", 1: "[MASK]"}, "[MASK] [MASK]"),
        ("don't", {0: "do", 1: "n't"}, "don't"),
        ("$5", {0: "US"}, "US 5"),
        ("我爱你", {1: "[MASK]"}, "我 [MASK] 你"),
    ],
)
def test_a_replacement_joins_no_words(text, replacements, expected):
    assert replace_words(text, find_words(text), replacements) == expected


@pytest.mark.slow
def test_words_of_sst2_are_its_own(data_dir):
    path = data_dir / "glue/SST-2/train.tsv"
    lines = path.read_text("utf-8").splitlines()[1:]
    texts = [line.split("\t")[0] for line in lines]
    same = sum(words_of(text) == text.split() for text in texts)
    assert same > 0.98 * len(texts)
