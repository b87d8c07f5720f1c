"""Splits of a task from a folder: found, named otherwise, missing, held out."""

import pytest

from keras_recbert.data.task_files import (
    MissingSplitError,
    available_splits,
    hold_out_of_train,
    load_splits,
    read_split,
)


def rte_rows(*rows):
    lines = ["index\tsentence1\tsentence2\tlabel"]
    lines += [f"{i}\t" + "\t".join(row) for i, row in enumerate(rows)]
    return "\n".join(lines) + "\n"


def test_available_splits_in_root_and_in_task_folder(write, tmp_path):
    write("MNLI/test_matched.tsv", "x")
    write("MNLI/train.tsv", "x")
    write("MNLI/dev_matched.other.tsv", "x")
    assert available_splits("mnli", tmp_path) == ["train", "test_matched"]
    assert available_splits("mnli", tmp_path / "MNLI") == ["train", "test_matched"]
    assert available_splits("rte", tmp_path) == []


def test_missing_split_says_what_is_there(write, tmp_path):
    write("RTE/dev_2.tsv", "x")
    with pytest.raises(MissingSplitError) as error:
        read_split("rte", tmp_path, "validation")
    message = str(error.value)
    assert f"RTE: dev.tsv not found in {tmp_path / 'RTE'}" in message
    assert "Files there: dev_2.tsv." in message
    assert "(or the one above RTE/): data_dir (--data-dir DIR)." in message
    assert isinstance(error.value, FileNotFoundError)
    with pytest.raises(MissingSplitError, match="Files there: none"):
        load_splits("qnli", tmp_path)
    with pytest.raises(MissingSplitError, match="does not exist or is not a folder"):
        load_splits("qnli", tmp_path / "nowhere")


def test_unknown_split(tmp_path):
    with pytest.raises(
        ValueError, match=r"split of MNLI: 'validation'. Valid: .*validation_matched"
    ):
        read_split("mnli", tmp_path, "validation")


def test_folder_of_another_task_is_refused(write, tmp_path):
    # RTE and WNLI share their column names, so this would be read quietly.
    write("RTE/train.tsv", rte_rows(("a", "b", "entailment")))
    with pytest.raises(ValueError, match="is the folder of RTE, not of WNLI"):
        read_split("wnli", tmp_path / "RTE", "train")


def test_load_splits_with_official_files_has_no_notes(write, tmp_path):
    write("RTE/train.tsv", rte_rows(("a", "b", "entailment")))
    write("RTE/dev.tsv", rte_rows(("c", "d", "not_entailment")))
    train, validation, notes = load_splits("rte", tmp_path)
    assert train.fields == {"text": ["a"], "text_pair": ["b"]}
    assert list(validation) == ["validation"]
    assert validation["validation"].targets["label"].tolist() == [1]
    assert notes == []


def test_load_splits_mnli_with_one_validation_file(write, tmp_path):
    rows = "index\tsentence1\tsentence2\tgold_label\n0\ta\tb\tneutral\n"
    write("MNLI/train.tsv", rows)
    write("MNLI/dev_mismatched.tsv", rows)
    _, validation, notes = load_splits("mnli", tmp_path)
    assert list(validation) == ["validation_mismatched"]
    assert len(notes) == 1
    assert "no dev_matched.tsv" in notes[0]
    assert "scored on validation_mismatched alone" in notes[0]


def test_load_splits_holds_out_of_a_lone_validation_file(write, tmp_path):
    rows = "".join(f"{i}\tWho {i // 2} ?\tS {i}\tentailment\n" for i in range(40))
    write("QNLI/dev.tsv", "index\tquestion\tsentence\tlabel\n" + rows)
    train, validation, notes = load_splits("qnli", tmp_path, seed=1)
    assert (len(train), len(validation["validation"])) == (36, 4)
    assert not set(train.fields["text"]) & set(validation["validation"].fields["text"])
    assert len(notes) == 1
    assert "QNLI: no train.tsv; dev.tsv was split by " in notes[0]
    assert "question, 36 rows to train and 4 for validation (seed 1)" in notes[0]
    assert "scores are not comparable with published ones" in notes[0]
    # In halves; and what is not the fraction of anything is refused.
    train, validation, _ = load_splits("qnli", tmp_path, 1, validation_fraction=0.5)
    assert (len(train), len(validation["validation"])) == (20, 20)
    assert not set(train.fields["text"]) & set(validation["validation"].fields["text"])
    with pytest.raises(ValueError, match="must lie between 0 and 1.*fraction=0"):
        load_splits("qnli", tmp_path, validation_fraction=0.0)


def test_load_splits_takes_a_similar_name_but_says_so(write, tmp_path):
    rows = "".join(f"t{i}\t{i % 2}\n" for i in range(20))
    write("SST-2/train_part.tsv", "sentence\tlabel\n" + rows)
    write("SST-2/training.tsv", "not to be read")
    train, validation, notes = load_splits("sst2", tmp_path)
    assert (len(train), len(validation["validation"])) == (18, 2)
    assert "no train.tsv" in notes[0]
    assert "train_part.tsv was read for it" in notes[0]
    assert "no dev.tsv" in notes[1]
    write("SST-2/train.other.tsv", "sentence\tlabel\n" + rows)
    with pytest.raises(ValueError, match="train.other.tsv, train_part.tsv. Rename"):
        load_splits("sst2", tmp_path)


def test_load_splits_passes_on_the_readers_notes(write, tmp_path):
    rows = "index\tsentence1\tsentence2\tgold_label\n0\ta\tb\tneutral\n1\tc\td\t-\n"
    for name in ("train", "dev_matched", "dev_mismatched"):
        write(f"MNLI/{name}.tsv", rows)
    _, validation, notes = load_splits("mnli", tmp_path)
    assert list(validation) == ["validation_matched", "validation_mismatched"]
    assert len(notes) == 3
    assert all("label '-'" in note for note in notes)


def test_a_part_of_train_is_held_out_by_groups(write, tmp_path):
    rows = [(f"premise {i}", f"claim {i // 3}", "entailment") for i in range(30)]
    write("RTE/train.tsv", rte_rows(*rows))
    write("RTE/dev.tsv", rte_rows(("p", "h", "entailment")))
    train, _, _ = load_splits("rte", tmp_path)
    rest, held_out, note = hold_out_of_train("rte", train, 0.2, seed=5)
    assert (len(rest), len(held_out)) == (24, 6)
    second = train.fields.keys() - {"text"}
    (field,) = second
    assert not set(rest.fields[field]) & set(held_out.fields[field])
    again = hold_out_of_train("rte", train, 0.2, seed=5)[1]
    other = hold_out_of_train("rte", train, 0.2, seed=6)[1]
    assert again.fields == held_out.fields != other.fields
    by_fraction = load_splits("rte", tmp_path, 5, validation_fraction=0.2)
    assert by_fraction[0].fields == rest.fields and by_fraction[2] == [note]
    assert by_fraction[1]["validation"].fields == held_out.fields
    assert note == (
        "RTE: scored on 20% of train, held out by groups of rows that share a text: 24 "
        "rows to train and 6 to score (seed 5). The validation set was not scored."
    )
    with pytest.raises(ValueError, match="one side would be empty"):
        hold_out_of_train("rte", train, 0.01, seed=5)
