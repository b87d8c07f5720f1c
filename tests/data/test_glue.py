import gzip
import math
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from keras_recbert.data import glue
from keras_recbert.data.glue import (
    GLUE_TASKS,
    Examples,
    MissingSplitError,
    available_splits,
    get_task,
    group_examples,
    load_glue_tfds,
    load_splits,
    read_glue,
    read_glue_file,
    split_examples,
)
from keras_recbert.data.tsv import read_tsv


@pytest.fixture
def write(tmp_path):
    """Writes a file below `tmp_path` and returns its path."""

    def write(name, content):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = content.encode("utf-8") if isinstance(content, str) else content
        path.write_bytes(data)
        return path

    return write


@pytest.fixture(scope="module")
def real_glue():
    data_dir = os.environ.get("RECBERT_DATA_DIR")
    if not data_dir or not (Path(data_dir) / "glue").is_dir():
        pytest.skip("RECBERT_DATA_DIR names no folder with GLUE's files in glue/")
    return Path(data_dir) / "glue"


def rte_rows(*rows):
    lines = ["index\tsentence1\tsentence2\tlabel"]
    lines += [f"{i}\t" + "\t".join(row) for i, row in enumerate(rows)]
    return "\n".join(lines) + "\n"


# --- the table of tasks ------------------------------------------------------


def test_task_table_is_consistent():
    assert " ".join(GLUE_TASKS) == "cola sst2 mrpc qqp stsb mnli qnli rte wnli"
    for name, task in GLUE_TASKS.items():
        assert task.name == name
        assert task.main_metric in task.metrics
        assert len(task.text_columns) == len(task.tfds_features)
        assert (task.label_names is None) == task.is_regression
    assert GLUE_TASKS["mnli"].num_classes == 3
    assert GLUE_TASKS["stsb"].num_classes == 1


def test_task_names_are_forgiving_but_not_guessed():
    assert get_task("SST-2") is get_task("sst_2") is GLUE_TASKS["sst2"]
    assert get_task(GLUE_TASKS["rte"]) is GLUE_TASKS["rte"]
    with pytest.raises(ValueError, match=r"Unknown GLUE task: 'qnil'.*'qnli'\?"):
        get_task("qnil")


def test_reading_does_not_import_tensorflow():
    code = (
        "import sys, keras_recbert.data.glue, keras_recbert.metrics.glue\n"
        "heavy = {'tensorflow', 'keras', 'sklearn', 'scipy', 'tensorflow_datasets'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    root = Path(glue.__file__).parents[2]
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root)


# --- the official layouts ----------------------------------------------------


def test_cola_has_no_header_except_in_test(write, tmp_path):
    write("CoLA/train.tsv", 'gj04\t1\t\tShe said "no.\nbc01\t0\t*\tHim saw she .\n')
    write("CoLA/test.tsv", "index\tsentence\n0\tBill whistled.\n")
    train = read_glue("cola", tmp_path, "train")
    assert train.texts == (['She said "no.', "Him saw she ."],)
    assert train.labels.tolist() == [1, 0]
    assert train.labels.dtype == np.int32
    assert train.label_names == ("unacceptable", "acceptable")
    test = read_glue("cola", tmp_path / "CoLA", "test")
    assert test.texts == (["Bill whistled."],)
    assert test.labels is None


def test_mrpc_with_byte_order_mark_quotes_crlf_and_spaces(write, tmp_path):
    write(
        "MRPC/dev.tsv",
        "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n"
        '1\t7\t8\t"He said so.\tHe said: "so" . \r\n'
        "0\t9\t10\tA \u2028 B\x85\tC\r\n\r\n",
    )
    dev = read_glue("mrpc", tmp_path, "dev")
    assert dev.texts == (
        ['"He said so.', "A \u2028 B\x85"],
        ['He said: "so" . ', "C"],
    )
    assert dev.labels.tolist() == [1, 0]


def test_stsb_scores_are_floats(write, tmp_path):
    header = "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2"
    header += "\tsentence1\tsentence2\tscore\n"
    write("STS-B/train.tsv", header + "0\ta\tb\tc\td\te\tf\tX\tY\t3.800\n")
    train = read_glue("stsb", tmp_path, "train")
    assert train.texts == (["X"], ["Y"])
    assert train.labels.dtype == np.float32
    assert train.labels[0] == np.float32(3.8)
    assert train.label_names is None


@pytest.mark.parametrize("score", ["5.01", "-0.1", "nan", "inf", "high", ""])
def test_stsb_bad_score(write, score):
    path = write("s.tsv", f"sentence1\tsentence2\tscore\na\tb\t1\na\tb\t{score}\n")
    with pytest.raises(ValueError) as error:
        read_glue_file("stsb", path)
    assert f"{path}:3: {score!r} is not a valid score" in str(error.value)
    assert "a number from 0 to 5" in str(error.value)


def test_mnli_rows_without_consensus_are_left_out_and_counted(write, tmp_path):
    write(
        "MNLI/dev_matched.tsv",
        "index\tsentence1\tsentence2\tgold_label\n"
        "0\ta\tb\tneutral\n1\tc\td\t-\n2\te\tf\tcontradiction\n",
    )
    dev = read_glue("mnli", tmp_path, "dev_matched")
    assert dev.texts == (["a", "e"], ["b", "f"])
    assert dev.labels.tolist() == [1, 2]
    assert len(dev.notes) == 1
    assert "left out 1 rows with label '-'" in dev.notes[0]


def test_qqp_rows_torn_by_a_newline_are_left_out_and_counted(write, tmp_path):
    header = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
    write(
        "QQP/train.tsv",
        header + "1\t2\t3\tWhy?\tHow?\t0\n4\t5\t6\tWho\n\tWhat?\t1\n7\t8\t9\tA\tB\t1\n",
    )
    train = read_glue("qqp", tmp_path, "train")
    assert train.texts == (["Why?", "A"], ["How?", "B"])
    assert train.labels.tolist() == [0, 1]
    assert "left out 2 rows" in train.notes[0]
    assert "first at line 3" in train.notes[0]
    path = write("torn.tsv", header + "4\t5\t6\tWho\n")
    with pytest.raises(ValueError, match="no usable row.* 1 for their number"):
        read_glue_file("qqp", path)


def test_label_ids_only_where_the_official_file_has_them(write):
    rows = "index\tsentence1\tsentence2\tlabel\n0\ta\tb\t0\n"
    path = write("x.tsv", rows)
    assert read_glue_file("wnli", path).labels.tolist() == [0]
    # In RTE 0 might mean either class; nobody may guess.
    with pytest.raises(ValueError, match=r"x.tsv:2: '0' is not a valid label"):
        read_glue_file("rte", path)


def test_gzip_and_damaged_gzip(write):
    packed = gzip.compress(b"index\tquestion\tsentence\n0\tWho?\tHe.\n")
    test = read_glue_file("qnli", write("t.tsv.gz", packed), split="test")
    assert test.texts == (["Who?"], ["He."])
    for damaged in (packed[:-9], b"no gzip"):
        path = write("d.tsv.gz", damaged)
        with pytest.raises(ValueError, match="d.tsv.gz: damaged gzip file"):
            read_glue_file("qnli", path, split="test")


# --- wrong files -------------------------------------------------------------


def test_missing_column_names_it_and_what_was_found(write):
    path = write("x.tsv", "sentence,label\nfine,1\n")
    with pytest.raises(ValueError) as error:
        read_glue_file("sst2", path)
    assert str(error.value) == (
        f"{path}:1: column 'sentence' is not in the header. "
        "Found 1 columns ('sentence,label'), separated by tabs."
    )
    path = write("y.tsv", "label\tsentence\tlabel\n1\ta\t0\n")
    with pytest.raises(ValueError, match="column 'label' is twice in the header"):
        read_glue_file("sst2", path)
    path = write("z.tsv", "1\tfine\n")
    with pytest.raises(ValueError, match="z.tsv:1: there is no column at position 3"):
        read_glue_file("cola", path)


@pytest.mark.parametrize(("row", "found"), [("a", 1), ("a\tb\t1", 3)])
def test_wrong_number_of_fields(write, row, found):
    path = write("x.tsv", f"sentence\tlabel\nfine\t1\n{row}\n")
    with pytest.raises(ValueError) as error:
        read_glue_file("sst2", path)
    assert f"{path}:3: expected 2 tab-separated fields" in str(error.value)
    assert f"found {found}" in str(error.value)


def test_blank_line_between_rows_is_an_error(write):
    path = write("x.tsv", "sentence\tlabel\n\nfine\t1\n")
    with pytest.raises(ValueError, match="x.tsv:2: expected 2 .* found 1"):
        read_glue_file("sst2", path)


@pytest.mark.parametrize("label", ["2", "-1", "1.0", "positiv", ""])
def test_bad_class(write, label):
    path = write("x.tsv", f"sentence\tlabel\nfine\t1\nbad\t{label}\n")
    with pytest.raises(ValueError) as error:
        read_glue_file("sst2", path)
    assert str(error.value) == (
        f"{path}:3: {label!r} is not a valid label. "
        "Valid: 'negative', 'positive', or 0 to 1."
    )


@pytest.mark.parametrize("content", ["", "\n\r\n", "\ufeff"])
def test_empty_file(write, content):
    path = write("x.tsv", content)
    with pytest.raises(ValueError, match="x.tsv is empty"):
        read_glue_file("sst2", path)


def test_header_only(write):
    path = write("x.tsv", "sentence\tlabel\n")
    with pytest.raises(ValueError, match="no usable row: 0 rows below its header"):
        read_glue_file("sst2", path)


def test_invalid_utf8_names_the_line(write):
    path = write("x.tsv", b"\xef\xbb\xbfsentence\tlabel\nfine\t1\ncaf\xe9\t1\n")
    with pytest.raises(ValueError, match=r"x.tsv:3: not valid UTF-8 \(byte 0xe9"):
        read_glue_file("sst2", path)


# --- folders and splits ------------------------------------------------------


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
        read_glue("rte", tmp_path, "dev")
    message = str(error.value)
    assert f"RTE: dev.tsv not found in {tmp_path / 'RTE'}" in message
    assert "TSV files there: dev_2.tsv." in message
    assert "`read_glue_file`" in message
    assert isinstance(error.value, FileNotFoundError)
    with pytest.raises(MissingSplitError, match="TSV files there: none"):
        load_splits("qnli", tmp_path)
    with pytest.raises(MissingSplitError, match="does not exist or is not a folder"):
        load_splits("qnli", tmp_path / "nowhere")


def test_unknown_split(tmp_path):
    with pytest.raises(ValueError, match=r"split of MNLI: 'dev'. Valid: .*dev_matched"):
        read_glue("mnli", tmp_path, "dev")


def test_folder_of_another_task_is_refused(write, tmp_path):
    # RTE and WNLI share their column names, so this would be read quietly.
    write("RTE/train.tsv", rte_rows(("a", "b", "entailment")))
    with pytest.raises(ValueError, match="is the folder of RTE, not of WNLI"):
        read_glue("wnli", tmp_path / "RTE", "train")


def test_load_splits_with_official_files_has_no_notes(write, tmp_path):
    write("RTE/train.tsv", rte_rows(("a", "b", "entailment")))
    write("RTE/dev.tsv", rte_rows(("c", "d", "not_entailment")))
    train, dev, notes = load_splits("rte", tmp_path)
    assert train.texts == (["a"], ["b"])
    assert list(dev) == ["dev"]
    assert dev["dev"].labels.tolist() == [1]
    assert notes == []


def test_load_splits_mnli_with_one_dev_file(write, tmp_path):
    rows = "index\tsentence1\tsentence2\tgold_label\n0\ta\tb\tneutral\n"
    write("MNLI/train.tsv", rows)
    write("MNLI/dev_mismatched.tsv", rows)
    _, dev, notes = load_splits("mnli", tmp_path)
    assert list(dev) == ["dev_mismatched"]
    assert len(notes) == 1
    assert "no dev_matched.tsv" in notes[0]
    assert "scored on dev_mismatched alone" in notes[0]


def test_load_splits_holds_out_of_a_lone_dev_file(write, tmp_path):
    rows = "".join(f"{i}\tWho {i // 2} ?\tS {i}\tentailment\n" for i in range(40))
    write("QNLI/dev.tsv", "index\tquestion\tsentence\tlabel\n" + rows)
    train, dev, notes = load_splits("qnli", tmp_path, seed=1)
    assert (len(train), len(dev["dev"])) == (36, 4)
    assert not set(train.texts[0]) & set(dev["dev"].texts[0])
    assert len(notes) == 1
    assert (
        f"QNLI: no train.tsv in {tmp_path / 'QNLI'}; dev.tsv was split by " in notes[0]
    )
    assert "question, 36 rows to train and 4 for dev (seed 1)" in notes[0]
    assert "scores are not comparable with published ones" in notes[0]


def test_load_splits_takes_a_similar_name_but_says_so(write, tmp_path):
    rows = "".join(f"t{i}\t{i % 2}\n" for i in range(20))
    write("SST-2/train_part.tsv", "sentence\tlabel\n" + rows)
    write("SST-2/training.tsv", "not to be read")
    train, dev, notes = load_splits("sst2", tmp_path)
    assert (len(train), len(dev["dev"])) == (18, 2)
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
    _, dev, notes = load_splits("mnli", tmp_path)
    assert list(dev) == ["dev_matched", "dev_mismatched"]
    assert len(notes) == 3
    assert all("label '-'" in note for note in notes)


# --- holding out -------------------------------------------------------------


def numbered(count):
    return Examples(([f"t{i}" for i in range(count)],), np.arange(count, dtype="int32"))


def test_split_examples_is_deterministic_and_complete():
    rest, held = split_examples(numbered(50), 0.2, seed=3)
    again, _ = split_examples(numbered(50), 0.2, seed=3)
    other, _ = split_examples(numbered(50), 0.2, seed=4)
    assert (len(rest), len(held)) == (40, 10)
    assert sorted([*rest.labels, *held.labels]) == list(range(50))
    assert rest.labels.tolist() == sorted(rest.labels)
    assert rest.texts[0] == [f"t{i}" for i in rest.labels]
    assert again.labels.tolist() == rest.labels.tolist()
    assert other.labels.tolist() != rest.labels.tolist()


def test_split_examples_keeps_groups_together():
    groups = [i // 7 for i in range(50)] + [99] * 30
    for seed in range(20):
        rest, held = split_examples(numbered(80), 0.2, seed, groups)
        sides = [{groups[row] for row in side.labels} for side in (rest, held)]
        assert not sides[0] & sides[1]
        assert 9 < len(held) <= 16
        assert 99 in sides[0]


def test_split_examples_bad_arguments():
    with pytest.raises(ValueError, match="between 0 and 1. Received: fraction=1"):
        split_examples(numbered(4), 1, 0)
    with pytest.raises(ValueError, match="one value a row. Received: 3 values for 4"):
        split_examples(numbered(4), 0.5, 0, [1, 2, 3])
    with pytest.raises(ValueError, match="Cannot hold 2 of 4 rows out .* there are 1:"):
        split_examples(numbered(4), 0.5, 0, [1, 1, 1, 1])
    with pytest.raises(
        ValueError, match="Cannot hold 2 of 2 rows out .* side would be"
    ):
        split_examples(numbered(2), 0.9, 0)


def test_groups_by_first_text_or_by_any_shared_text():
    pairs = Examples((["a", "B ", "c", "d", "e"], ["b", "c", "x", "y", "d"]))
    # a-b, b-c, c-x hang together through row 1; d-y and e-d do through "d".
    a, b, c, d, e = group_examples("qqp", pairs)
    assert a == b == c != d == e
    assert len(set(group_examples("qnli", pairs))) == 5
    same = Examples((["Who  is he?", "who is he? "], ["x", "y"]))
    assert len(set(group_examples("qnli", same))) == 1


def test_examples_refuses_uneven_columns():
    with pytest.raises(ValueError, match=r"equally long. Received lengths: \[2, 1\]"):
        Examples((["a", "b"],), np.zeros(1, "int32"))
    with pytest.raises(ValueError, match="one or two lists"):
        Examples(())


# --- a user's own file -------------------------------------------------------


def test_read_tsv_infers_label_names(write):
    path = write("own.tsv", "text\ttopic\na\tsport\nb\tart\nc\tsport \n")
    own = read_tsv(path, "text", "topic")
    assert own.label_names == ("art", "sport")
    assert own.labels.tolist() == [1, 0, 1]
    path = write("numbers.tsv", "x\t10\ny\t2\n")
    assert read_tsv(path, 0, 1, header=False).label_names == ("2", "10")


def test_read_tsv_with_given_names_and_pairs(write):
    path = write("own.tsv", "l\ta\tb\nno\tx\ty\n")
    own = read_tsv(path, ("b", "a"), "l", ("yes", "no"))
    assert own.texts == (["y"], ["x"])
    assert own.labels.tolist() == [1]
    assert read_tsv(path, 1).labels is None
    with pytest.raises(
        ValueError, match=r"own.tsv:2: 'no' is not .* Valid: 'a', 'b'\."
    ):
        read_tsv(path, "a", "l", ("a", "b"))


def test_read_tsv_scores_without_bounds(write):
    path = write("own.tsv", "t\ts\na\t-12.5\nb\t1e3\n")
    own = read_tsv(path, "t", "s", score_range=(-math.inf, math.inf))
    assert own.labels.tolist() == [-12.5, 1000.0]


def test_read_tsv_bad_arguments(write):
    path = write("own.tsv", "a\tb\nx\tyes\ny\tyes\n")
    with pytest.raises(ValueError, match="every row has the label 'yes'"):
        read_tsv(path, "a", "b")
    with pytest.raises(ValueError, match="one or two columns. Received: .*'a', 'b'"):
        read_tsv(path, ("a", "b", "a"))
    with pytest.raises(ValueError, match="not both"):
        read_tsv(path, "a", "b", ("no", "yes"), score_range=(0, 1))
    with pytest.raises(ValueError, match="must not repeat a name"):
        read_tsv(path, "a", "b", ("yes", "yes"))
    with pytest.raises(ValueError, match="columns go by position"):
        read_tsv(path, "a", header=False)
    with pytest.raises(FileNotFoundError, match="nowhere.tsv"):
        read_tsv("nowhere.tsv", "a")


# --- TensorFlow Datasets -----------------------------------------------------


def official_file(task, split):
    """A header and three rows of a split, in the official layout."""
    labelled = split not in task.test_splits
    columns = ("sentence",) if task.name == "cola" else task.text_columns
    rows = [[*columns, task.label_column] if labelled else ["index", *columns]]
    for row in range(3):
        texts = [f"{split} {column} {row} \u00e9" for column in columns]
        if task.is_regression:
            label = str(row * 1.25)
        else:
            label = str(row % 2) if task.integer_labels else task.label_names[row % 2]
        if not labelled:
            rows.append([str(row), *texts])
        elif task.name == "cola":
            rows.append(["gj04", label, "", *texts])
        else:
            rows.append([*texts, label])
    start = 1 if labelled and task.name == "cola" else 0
    return "".join("\t".join(row) + "\n" for row in rows[start:])


@pytest.mark.parametrize("name", ["cola", "qqp", "stsb", "mnli", "wnli"])
def test_tfds_reads_what_we_read(name, write, tmp_path, monkeypatch):
    """TFDS's own GLUE builder prepares the very files that our reader reads."""
    tfds = pytest.importorskip("tensorflow_datasets")
    from tensorflow_datasets.text.glue import Glue

    task = GLUE_TASKS[name]
    for split in task.splits:
        write(f"{task.folder}/{split}.tsv", official_file(task, split))
    monkeypatch.setattr(
        tfds.download.DownloadManager,
        "download_and_extract",
        lambda self, url: os.fspath(tmp_path),
    )
    Glue(config=name, data_dir=os.fspath(tmp_path / "tfds")).download_and_prepare(
        download_config=tfds.download.DownloadConfig(try_download_gcs=False)
    )
    train, dev, notes = load_glue_tfds(name, tmp_path / "tfds")
    our_train, our_dev, _ = load_splits(name, tmp_path)
    assert notes == []
    assert list(dev) == list(our_dev) == list(task.dev_splits)
    for theirs, ours in zip(
        (train, *dev.values()), (our_train, *our_dev.values()), strict=True
    ):
        # TFDS shuffles when it prepares.
        assert sorted(zip(*theirs.texts, theirs.labels, strict=True)) == sorted(
            zip(*ours.texts, ours.labels, strict=True)
        )
        assert theirs.labels.dtype == ours.labels.dtype
        assert theirs.label_names == ours.label_names


def test_our_names_are_those_of_tfds():
    pytest.importorskip("tensorflow_datasets")
    from tensorflow_datasets.text.glue import Glue

    configs = {config.name: config for config in Glue.BUILDER_CONFIGS}
    for name, task in GLUE_TASKS.items():
        names = configs[name].label_classes
        assert (tuple(names) if names else None) == task.label_names
        assert tuple(configs[name].text_features) == task.tfds_features


def test_tfds_with_other_labels_is_refused(monkeypatch):
    tfds = pytest.importorskip("tensorflow_datasets")
    names = SimpleNamespace(names=["yes", "no"])
    info = SimpleNamespace(features={"label": names}, version="9.9")
    data = {split: [] for split in ("train", "validation")}
    monkeypatch.setattr(tfds, "load", lambda *args, **kwargs: (data, info))
    with pytest.raises(ValueError, match=r"glue/rte 9.9 .* labels \('yes', 'no'\)"):
        load_glue_tfds("rte")
    names.names = ["entailment", "not_entailment"]
    rows = [{"sentence1": b"a", "sentence2": b"b", "label": -1}]
    data["train"] = data["validation"] = rows
    monkeypatch.setattr(tfds, "as_numpy", lambda rows: rows)
    with pytest.raises(
        ValueError, match="train: labels from -1 to -1; expected 0 to 1"
    ):
        load_glue_tfds("rte")


def test_without_tfds_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", None)
    with pytest.raises(ImportError, match=r'pip install -e "\.\[data\]"'):
        load_glue_tfds("sst2")


# --- the real files ----------------------------------------------------------


# Rows, and rows of class 0, 1, ... as counted when the files were collected.
OFFICIAL = [
    ("sst2", "train", [29_780, 37_569]),
    ("sst2", "dev", [428, 444]),
    ("cola", "train", [2_528, 6_023]),
    ("cola", "dev", [322, 721]),
    ("rte", "train", [1_249, 1_241]),
    ("rte", "dev", [146, 131]),
    ("wnli", "train", [323, 312]),
    ("wnli", "dev", [40, 31]),
    ("mrpc", "train", [1_194, 2_474]),
    ("mrpc", "dev", [129, 279]),
    ("qnli", "dev", [2_702, 2_761]),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "split", "counts"), OFFICIAL)
def test_real_classes(real_glue, name, split, counts):
    examples = read_glue(name, real_glue, split)
    assert np.bincount(examples.labels).tolist() == counts
    assert len(examples) == sum(counts)
    assert examples.notes == ()
    assert all(text.strip() for column in examples.texts for text in column)


@pytest.mark.slow
def test_real_stsb(real_glue):
    train, dev, notes = load_splits("stsb", real_glue)
    assert (len(train), len(dev["dev"]), notes) == (5_749, 1_500, [])
    assert (train.labels.min(), train.labels.max()) == (0, 5)


@pytest.mark.slow
def test_real_files_of_other_names(real_glue):
    qqp = read_glue_file("qqp", real_glue / "QQP/train_subset.tsv")
    assert np.bincount(qqp.labels).tolist() == [14_749, 8_747]
    derived = real_glue / "MNLI/dev_matched.derived_layout.tsv"
    mnli = read_glue_file("mnli", derived, split="dev_matched")
    assert len(mnli) == 9_815
    assert np.bincount(mnli.labels).sum() == 9_815
    test = real_glue / "QNLI/test.unlabelled.tsv.gz"
    assert len(read_glue_file("qnli", test, split="test")) == 5_463


@pytest.mark.slow
def test_real_official_mnli_layout(real_glue):
    sample = real_glue / "MNLI/official_layout_sample"
    splits = GLUE_TASKS["mnli"].splits
    assert available_splits("mnli", sample) == list(splits)
    read = {split: read_glue("mnli", sample, split) for split in splits}
    assert [len(read[split]) for split in splits] == [6, 5, 5, 5, 5]
    assert read["test_matched"].labels is None
    derived = real_glue / "MNLI/dev_matched.derived_layout.tsv"
    first = read_glue_file("mnli", derived).take(range(5))
    assert first.labels.tolist() == read["dev_matched"].labels.tolist()
    for ours, theirs in zip(first.texts, read["dev_matched"].texts, strict=True):
        assert [t.strip() for t in ours] == [t.strip() for t in theirs]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "dev_name", "rows", "source"),
    [
        ("qnli", "dev", (4_917, 546), "dev.tsv was split by question"),
        ("qqp", "dev", (21_146, 2_350), "train_subset.tsv was split by groups"),
        ("mnli", "dev_matched", (8_833, 982), "was split by premise"),
    ],
)
def test_real_hold_out_parts_no_group(real_glue, name, dev_name, rows, source):
    train, dev, notes = load_splits(name, real_glue, seed=0)
    assert (len(train), len(dev[dev_name])) == rows
    assert source in notes[-1]
    columns = (0, 1) if name == "qqp" else (0,)
    sides = [
        {" ".join(text.split()).lower() for at in columns for text in side.texts[at]}
        for side in (train, dev[dev_name])
    ]
    assert not sides[0] & sides[1]
    # The held-out classes are spread as the others are.
    shares = [np.bincount(s.labels) / len(s) for s in (train, dev[dev_name])]
    assert np.abs(shares[0] - shares[1]).max() < 0.06
    again, _, _ = load_splits(name, real_glue, seed=0)
    assert again.texts == train.texts
