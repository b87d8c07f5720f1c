"""CoNLL columns and CoNLL-U, as they should be and as they should not."""

import gzip

import numpy as np
import pytest

from keras_recbert.data.conll import read_conll, read_conllu, write_conll
from keras_recbert.data.task_files import load_splits, read_split

TAGS = ("O", "B-per", "I-per")
COLUMNS = "-DOCSTART- -X- O\n\nAda NNP B-per\nwrote VBD O\n \n\nZoë NNP B-per\r\n"
ROW = "{}\tform\tlemma\tNOUN\tNN\t_\t0\troot\t_\t_\n"


def write(path, text):
    path.write_bytes(text.encode("utf-8") if isinstance(text, str) else text)
    return path


def test_columns_compressed_or_not(tmp_path):
    plain = write(tmp_path / "a.conll", COLUMNS)
    packed = write(tmp_path / "a.conll.gz", gzip.compress(plain.read_bytes()))
    for path in (plain, packed):
        examples = read_conll(path, "train", TAGS)
        assert examples.fields == {"words": [["Ada", "wrote"], ["Zoë"]]}
        assert examples.targets == {"tags": [["B-per", "O"], ["B-per"]]}
        assert examples.ids == ["1", "2"]
    examples = read_conll(plain, "train", tag_column=1)
    assert examples.targets == {"tags": [["NNP", "VBD"], ["NNP"]]}


def test_a_tab_separates_columns_with_spaces(tmp_path):
    path = write(tmp_path / "a.conll", "New York\tO\n\xa0\tO\n\t\n1\tO")
    examples = read_conll(path, "validation", TAGS)
    assert examples.fields["words"] == [["New York", "\xa0"], ["1"]]


def test_a_test_split_may_have_words_alone(tmp_path):
    path = write(tmp_path / "a.conll", "Ada\nwrote\n\nit\n")
    examples = read_conll(path, "test", TAGS)
    assert examples.fields["words"] == [["Ada", "wrote"], ["it"]]
    assert examples.targets is None
    with pytest.raises(ValueError, match=r"a.conll:1: expected 2 columns or more"):
        read_conll(path, "train", TAGS)


BROKEN = {
    "another tag": (
        "a O\n\nb B-org\n",
        r":3: 'B-org' is not a valid tag. Did you mean",
    ),
    "a column missing": ("a NN O\nb O\n", r":2: expected 3 columns, as on line 1"),
    "no word": ("a\tO\n\tO\n", r":2: expected a word. Received: ''"),
    "Latin-1": ("a O\né O\n".encode("latin-1"), r":2: not valid UTF-8 \(byte 0xe9"),
    "empty": ("", r"has no sentences"),
    "blank": ("\n \n-DOCSTART- O\n\n", r"has no sentences"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_columns_that_are_not_as_they_should_be(name, tmp_path):
    text, message = BROKEN[name]
    with pytest.raises(ValueError, match=f"broken.conll.*{message}"):
        read_conll(write(tmp_path / "broken.conll", text), "train", TAGS)


@pytest.mark.parametrize(
    ("tag", "message"),
    [
        ("per", "Did you mean 'I-per' or 'B-per'"),
        ("X-per", "Did you mean 'I-per' or 'B-per'"),
        ("?", ""),
        ("L-per", "L- is of BILOU: rename L- to E-, U- to S-."),
        ("U-per", "U- is of BILOU: rename L- to E-, U- to S-."),
        ("M-per", "M- is of BMES: rename M- to I-."),
    ],
)
def test_a_tag_in_no_scheme_of_entities(tag, message, tmp_path):
    text = COLUMNS.replace("B-per\r", f"{tag}\r") + "Lee NNP I-per\n"
    path = write(tmp_path / "a.conll", text)
    with pytest.raises(ValueError, match=r"a.conll:7: expected .*O, .*BIO.*BIOES") as e:
        read_conll(path, "train")
    assert f"Received: {tag!r}. {message}".rstrip() in str(e.value)
    assert len(read_conll(path, "train", tag_column=1)) == 2
    assert len(read_conll(path, "train", (*TAGS, tag))) == 2


def test_a_gzip_file_that_was_cut(tmp_path):
    cut = gzip.compress(COLUMNS.encode())[:-9]
    with pytest.raises(ValueError, match="a.conll.gz is no whole gzip file"):
        read_conll(write(tmp_path / "a.conll.gz", cut), "train", TAGS)


BROKEN_CONLLU = {
    "columns": ("# text = a\n1 a _ NOUN\n", r":2: expected 10 columns.*Received: 1"),
    "id": (ROW.format("x1"), r":1: expected an id such as 1, 1-2 or 1.1.*'x1'"),
    "tag": (
        ROW.format("1-2") + ROW.format("1").replace("NOUN", "_"),
        r":2: '_' is not a valid tag",
    ),
    "words": ("# text = a\n\n" + ROW.format("1-2"), r"has no sentences"),
}


@pytest.mark.parametrize("name", BROKEN_CONLLU)
def test_conllu_that_is_not_as_it_should_be(name, tmp_path):
    text, message = BROKEN_CONLLU[name]
    with pytest.raises(ValueError, match=f"broken.conllu.*{message}"):
        read_conllu(write(tmp_path / "broken.conllu", text), "validation", ("NOUN",))


def test_another_column_of_conllu(tmp_path):
    path = write(tmp_path / "a.conllu", ROW.format("1"))
    assert read_conllu(path, "validation", tag_column=4).targets == {"tags": [["NN"]]}


def test_what_was_predicted_is_written_as_columns(tmp_path):
    examples = read_conll(write(tmp_path / "a.conll", COLUMNS), "validation", TAGS)
    tags = np.array([[b"B-per", b"I-per", b""], [b"O", b"", b""]], object)
    write_conll(tmp_path, examples, {"tags": tags})
    text = (tmp_path / "predictions.conll").read_text(encoding="utf-8")
    assert text == "Ada B-per B-per\nwrote O I-per\n\nZoë B-per O\n\n"
    again = read_conll(tmp_path / "predictions.conll", "validation", TAGS)
    assert again.targets["tags"] == [["B-per", "I-per"], ["O"]]


@pytest.mark.slow
def test_real_data(data_dir):
    """Numbers that the publishers of WNUT-2017 and of English EWT state."""
    found = {split: read_split("wnut17", data_dir / "ner", split) for split in SIZES}
    for split, (num_sentences, num_words) in SIZES.items():
        words = found[split].fields["words"]
        assert (len(words), sum(map(len, words))) == (num_sentences, num_words)
    train, validation, notes = load_splits("ud_ewt_pos", data_dir)
    assert any("en_ewt-ud-train.conllu.gz was read for it" in note for note in notes)
    assert len(train) == 12_544 and len(validation["validation"]) == 2_001
    assert sum(map(len, validation["validation"].fields["words"])) == 25_147


SIZES = {
    "train": (3_394, 62_730),
    "validation": (1_009, 15_733),
    "test": (1_287, 23_394),
}
