"""Parts of speech: NLTK's tagger, any other one, several processes."""

import sys

import pytest

from keras_recbert.data import Augmentation, augment
from keras_recbert.data.augmentation import TextAugmenter
from keras_recbert.data.pos_tagging import MODEL, NltkTagger, TaggedTexts
from keras_recbert.data.word_spans import words_of


def by_first_letter(words):
    return [word[0] for word in words]


@pytest.fixture
def sst2(data_dir, monkeypatch):
    """200 real lines; NLTK finds its model."""
    monkeypatch.setenv("NLTK_DATA", str(data_dir / "nltk_data"))
    lines = (data_dir / "glue/SST-2/train.tsv").read_text("utf-8").splitlines()
    return [line.split("\t")[0] for line in lines[1:201]]


def test_replacements_of_real_texts_have_the_part_of_speech(sst2):
    tagger = NltkTagger()
    tags = [tagger(words_of(text)) for text in sst2]
    known = {
        (tag, word)
        for text, found in zip(sst2, tags, strict=True)
        for tag, word in zip(found, words_of(text), strict=True)
    }
    options = Augmentation(n_iter=2, mask_probability=0, pos_probability=0.5)
    num_new = 0
    for example in TextAugmenter(sst2, options):
        (text,) = example.texts
        if words_of(sst2[example.row]) != sst2[example.row].split():
            continue  # such as of "mr."; in the others white space parts all words
        assert known >= set(zip(tags[example.row], text.split(), strict=True))
        num_new += example.iteration > 0
    assert num_new > 200


def test_nltk_reads_quotes_and_brackets_as_the_treebank_has_them(sst2):
    text = 'He don\'t "like" [it] -lrb- “so” -rrb- : the U.S. film !'
    tags = dict(zip(words_of(text), NltkTagger()(words_of(text)), strict=True))
    assert tags["n't"] == "RB" and tags["film"] == "NN" and tags["U.S."] == "NNP"
    assert (tags["["], tags["]"]) == (tags["-lrb-"], tags["-rrb-"]) == ("(", ")")
    assert (tags["“"], tags["”"], tags['"']) == ("``", "''", "''")


def test_several_processes_tag_the_same(sst2):
    one, two = (TaggedTexts(sst2, by_first_letter, number) for number in (1, 2))
    draws = [0.0, 0.4, 0.999]
    for text in sst2[:20]:
        for place in range(len(words_of(text))):
            found = [one.replacement(text, place, draw) for draw in draws]
            assert found == [two.replacement(text, place, draw) for draw in draws]
            assert {word[0] for word in found} == {words_of(text)[place][0]}


def test_a_text_is_tagged_once_and_counts_each_time():
    calls = []

    def tagger(words):
        calls.append(words)
        return ["N"] * len(words)

    tagged = TaggedTexts(["a"] * 9 + ["b"], tagger)
    assert calls == [["a"], ["b"]]
    draws = [place / 10 for place in range(10)]
    assert [tagged.replacement("b", 0, draw) for draw in draws] == ["a"] * 9 + ["b"]


@pytest.mark.parametrize("tags", [["N"], ["N"] * 3, "NN", None])
def test_a_tag_for_each_word(tags):
    with pytest.raises(ValueError, match="a list of 2 tags.*'two words'.*Received: "):
        augment(["two words"], tagger=lambda words: tags)
    with pytest.raises(ValueError, match="function of a list.*Received: tagger='nltk'"):
        augment(["two words"], tagger="nltk")


def test_a_tagger_that_other_processes_cannot_have():
    with pytest.raises(
        ValueError, match="`tagger` must be one that can be sent.*num_wo"
    ):
        augment(["a"], tagger=lambda words: words, num_workers=2)


def test_an_error_of_a_tagger_is_its_own():
    with pytest.raises(ZeroDivisionError):
        augment(["a"], tagger=lambda words: 1 / 0)


def test_without_nltk(monkeypatch):
    monkeypatch.setitem(sys.modules, "nltk", None)
    with pytest.raises(
        ImportError, match=r'needs nltk: pip install -e "\.\[distill\]"'
    ):
        augment(["a"])


def test_a_model_that_is_nowhere_is_downloaded_or_told(tmp_path, monkeypatch, capsys):
    nltk = pytest.importorskip("nltk")
    asked = []

    def offline(name, **options):
        asked.append((name, options["download_dir"]))
        return False

    monkeypatch.setenv("NLTK_DATA", str(tmp_path))
    monkeypatch.setattr(nltk.data, "path", [])
    monkeypatch.setattr(nltk, "download", offline)
    command = f"python -m nltk.downloader -d FOLDER {MODEL}; then set NLTK_DATA"
    with pytest.raises(FileNotFoundError, match=command):
        augment(["a"])
    assert asked == [(MODEL, str(tmp_path))]
    assert "Downloading" in capsys.readouterr().err
