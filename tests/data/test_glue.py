"""The nine GLUE tasks: official layouts, TensorFlow Datasets, the real files."""

import gzip
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from keras_recbert.data import task_files
from keras_recbert.data.task_files import (
    available_splits,
    load_splits,
    load_tfds,
    read_file,
    read_split,
)
from keras_recbert.data.task_spec import get_task, list_tasks

GLUE = ["cola", "sst2", "mrpc", "qqp", "stsb", "mnli", "qnli", "rte", "wnli"]


@pytest.fixture(scope="module")
def real_glue():
    data_dir = os.environ.get("RECBERT_DATA_DIR")
    if not data_dir or not (Path(data_dir) / "glue").is_dir():
        pytest.skip("RECBERT_DATA_DIR names no folder with GLUE's files in glue/")
    return Path(data_dir) / "glue"


# --- the table of tasks ------------------------------------------------------


def test_task_table_is_consistent():
    assert set(GLUE) <= set(list_tasks())
    for name in GLUE:
        task = get_task(name)
        assert task.name == name
        assert task.main_metric in task.metrics
        assert task.fields == tuple(task.tfds.features) == tuple(task.read.fields)
        assert (task.label_names is None) == (task.head == "regressor")
        assert task.read.label_names == task.label_names
        assert task.read.score_range == task.score_range
    assert len(get_task("mnli").label_names) == 3
    assert get_task("stsb").score_range == (0, 5)


def test_task_names_are_forgiving_but_not_guessed():
    assert get_task("SST-2") is get_task("sst_2") is get_task("sst2")
    assert get_task(get_task("rte")) is get_task("rte")
    with pytest.raises(ValueError, match=r"No task is called 'qnil'. Did you mean 'qn"):
        get_task("qnil")


def test_reading_does_not_import_tensorflow():
    code = (
        "import sys, keras_recbert.data, keras_recbert.metrics.glue\n"
        "heavy = {'tensorflow', 'keras', 'sklearn', 'scipy', 'tensorflow_datasets'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    root = Path(task_files.__file__).parents[2]
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root)


# --- the official layouts ----------------------------------------------------


def test_cola_has_no_header_except_in_test(write, tmp_path):
    write("CoLA/train.tsv", 'gj04\t1\t\tShe said "no.\nbc01\t0\t*\tHim saw she .\n')
    write("CoLA/test.tsv", "index\tsentence\n0\tBill whistled.\n")
    train = read_split("cola", tmp_path, "train")
    assert train.fields == {"text": ['She said "no.', "Him saw she ."]}
    assert train.targets["label"].tolist() == [1, 0]
    assert train.targets["label"].dtype == np.int32
    assert get_task("cola").label_names == ("unacceptable", "acceptable")
    test = read_split("cola", tmp_path / "CoLA", "test")
    assert test.fields == {"text": ["Bill whistled."]}
    assert test.targets is None


def test_mrpc_with_byte_order_mark_quotes_crlf_and_spaces(write, tmp_path):
    write(
        "MRPC/dev.tsv",
        "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n"
        '1\t7\t8\t"He said so.\tHe said: "so" . \r\n'
        "0\t9\t10\tA \u2028 B\x85\tC\r\n\r\n",
    )
    validation = read_split("mrpc", tmp_path, "validation")
    assert tuple(validation.fields.values()) == (
        ['"He said so.', "A \u2028 B\x85"],
        ['He said: "so" . ', "C"],
    )
    assert validation.targets["label"].tolist() == [1, 0]


def test_stsb_scores_are_floats(write, tmp_path):
    header = "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2"
    header += "\tsentence1\tsentence2\tscore\n"
    write("STS-B/train.tsv", header + "0\ta\tb\tc\td\te\tf\tX\tY\t3.800\n")
    train = read_split("stsb", tmp_path, "train")
    assert train.fields == {"text": ["X"], "text_pair": ["Y"]}
    assert train.targets["label"].dtype == np.float32
    assert train.targets["label"][0] == np.float32(3.8)


@pytest.mark.parametrize("score", ["5.01", "-0.1", "nan", "inf", "high", ""])
def test_stsb_bad_score(write, score):
    path = write("s.tsv", f"sentence1\tsentence2\tscore\na\tb\t1\na\tb\t{score}\n")
    with pytest.raises(ValueError) as error:
        read_file("stsb", path)
    assert f"{path}:3: {score!r} is not a valid score" in str(error.value)
    assert "a number from 0 to 5" in str(error.value)


def test_mnli_rows_without_consensus_are_left_out_and_counted(write, tmp_path):
    write(
        "MNLI/dev_matched.tsv",
        "index\tsentence1\tsentence2\tgold_label\n"
        "0\ta\tb\tneutral\n1\tc\td\t-\n2\te\tf\tcontradiction\n",
    )
    validation = read_split("mnli", tmp_path, "validation_matched")
    assert validation.fields == {"text": ["a", "e"], "text_pair": ["b", "f"]}
    assert validation.targets["label"].tolist() == [1, 2]
    assert len(validation.notes) == 1
    assert "left out 1 rows with label '-'" in validation.notes[0]


def test_qqp_rows_torn_by_a_newline_are_left_out_and_counted(write, tmp_path):
    header = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
    write(
        "QQP/train.tsv",
        header + "1\t2\t3\tWhy?\tHow?\t0\n4\t5\t6\tWho\n\tWhat?\t1\n7\t8\t9\tA\tB\t1\n",
    )
    train = read_split("qqp", tmp_path, "train")
    assert train.fields == {"text": ["Why?", "A"], "text_pair": ["How?", "B"]}
    assert train.targets["label"].tolist() == [0, 1]
    assert "left out 2 rows" in train.notes[0]
    assert "first at line 3" in train.notes[0]
    path = write("torn.tsv", header + "4\t5\t6\tWho\n")
    with pytest.raises(ValueError, match="no usable row.* 1 for their number"):
        read_file("qqp", path)


def test_label_ids_only_where_the_official_file_has_them(write):
    rows = "index\tsentence1\tsentence2\tlabel\n0\ta\tb\t0\n"
    path = write("x.tsv", rows)
    assert read_file("wnli", path).targets["label"].tolist() == [0]
    # In RTE 0 might mean either class; nobody may guess.
    with pytest.raises(ValueError, match=r"x.tsv:2: '0' is not a valid label"):
        read_file("rte", path)


def test_gzip_and_damaged_gzip(write):
    packed = gzip.compress(b"index\tquestion\tsentence\n0\tWho?\tHe.\n")
    test = read_file("qnli", write("t.tsv.gz", packed), split="test")
    assert test.fields == {"text": ["Who?"], "text_pair": ["He."]}
    for damaged in (packed[:-9], b"no gzip"):
        path = write("d.tsv.gz", damaged)
        with pytest.raises(ValueError, match="d.tsv.gz: damaged gzip file"):
            read_file("qnli", path, split="test")


# --- TensorFlow Datasets -----------------------------------------------------


def official_file(task, split):
    """A header and three rows of a split, in the official layout."""
    labelled = split not in task.test_splits
    columns = tuple(task.read.fields.values())
    if task.name == "cola":
        columns = ("sentence",)
    rows = [[*columns, task.read.label] if labelled else ["index", *columns]]
    for row in range(3):
        texts = [f"{split} {column} {row} \u00e9" for column in columns]
        if task.head == "regressor":
            label = str(row * 1.25)
        else:
            label = (
                str(row % 2) if task.read.integer_labels else task.label_names[row % 2]
            )
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

    task = get_task(name)
    for split, file in task.files.items():
        write(f"{task.folder}/{file}", official_file(task, split))
    monkeypatch.setattr(
        tfds.download.DownloadManager,
        "download_and_extract",
        lambda self, url: os.fspath(tmp_path),
    )
    Glue(config=name, data_dir=os.fspath(tmp_path / "tfds")).download_and_prepare(
        download_config=tfds.download.DownloadConfig(try_download_gcs=False)
    )
    train, validation, notes = load_tfds(name, tmp_path / "tfds")
    our_train, our_validation, _ = load_splits(name, tmp_path)
    assert notes == []
    assert list(validation) == list(our_validation) == list(task.validation_splits)
    for theirs, ours in zip(
        (train, *validation.values()),
        (our_train, *our_validation.values()),
        strict=True,
    ):
        # TFDS shuffles when it prepares.
        assert sorted(_rows(theirs)) == sorted(_rows(ours))
        assert theirs.fields.keys() == ours.fields.keys()
        assert theirs.targets["label"].dtype == ours.targets["label"].dtype


def _rows(examples):
    columns = [*examples.fields.values(), examples.targets["label"]]
    return list(zip(*columns, strict=True))


def test_our_names_are_those_of_tfds():
    pytest.importorskip("tensorflow_datasets")
    from tensorflow_datasets.text.glue import Glue

    configs = {config.name: config for config in Glue.BUILDER_CONFIGS}
    for task in map(get_task, GLUE):
        name = task.name
        names = configs[name].label_classes
        assert (tuple(names) if names else None) == task.label_names
        assert tuple(configs[name].text_features) == tuple(task.tfds.features.values())


def test_tfds_with_other_labels_is_refused(monkeypatch):
    tfds = pytest.importorskip("tensorflow_datasets")
    names = SimpleNamespace(names=["yes", "no"])
    info = SimpleNamespace(features={"label": names}, version="9.9")
    data = {split: [] for split in ("train", "validation")}
    monkeypatch.setattr(tfds, "load", lambda *args, **kwargs: (data, info))
    with pytest.raises(ValueError, match=r"glue/rte 9.9 .* labels \('yes', 'no'\)"):
        load_tfds("rte")
    names.names = ["entailment", "not_entailment"]
    rows = [{"sentence1": b"a", "sentence2": b"b", "label": -1}]
    data["train"] = data["validation"] = rows
    monkeypatch.setattr(tfds, "as_numpy", lambda rows: rows)
    with pytest.raises(
        ValueError, match="'1': -1 is not a label .*'rte'. Valid: 0 to 1"
    ):
        load_tfds("rte")


def test_without_tfds_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", None)
    with pytest.raises(ImportError, match=r'pip install -e "\.\[data\]"'):
        load_tfds("sst2")


# --- the real files ----------------------------------------------------------


# Rows, and rows of class 0, 1, ... as counted when the files were collected.
OFFICIAL = [
    ("sst2", "train", [29_780, 37_569]),
    ("sst2", "validation", [428, 444]),
    ("cola", "train", [2_528, 6_023]),
    ("cola", "validation", [322, 721]),
    ("rte", "train", [1_249, 1_241]),
    ("rte", "validation", [146, 131]),
    ("wnli", "train", [323, 312]),
    ("wnli", "validation", [40, 31]),
    ("mrpc", "train", [1_194, 2_474]),
    ("mrpc", "validation", [129, 279]),
    ("qnli", "validation", [2_702, 2_761]),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "split", "counts"), OFFICIAL)
def test_real_classes(real_glue, name, split, counts):
    examples = read_split(name, real_glue, split)
    assert np.bincount(examples.targets["label"]).tolist() == counts
    assert len(examples) == sum(counts)
    assert examples.notes == ()
    assert all(text.strip() for column in examples.fields.values() for text in column)


@pytest.mark.slow
def test_real_stsb(real_glue):
    train, validation, notes = load_splits("stsb", real_glue)
    assert (len(train), len(validation["validation"]), notes) == (5_749, 1_500, [])
    assert (train.targets["label"].min(), train.targets["label"].max()) == (0, 5)


@pytest.mark.slow
def test_real_files_of_other_names(real_glue):
    qqp = read_file("qqp", real_glue / "QQP/train_subset.tsv")
    assert np.bincount(qqp.targets["label"]).tolist() == [14_749, 8_747]
    derived = real_glue / "MNLI/dev_matched.derived_layout.tsv"
    mnli = read_file("mnli", derived, split="validation_matched")
    assert len(mnli) == 9_815
    assert np.bincount(mnli.targets["label"]).sum() == 9_815
    test = real_glue / "QNLI/test.unlabelled.tsv.gz"
    assert len(read_file("qnli", test, split="test")) == 5_463


@pytest.mark.slow
def test_real_official_mnli_layout(real_glue):
    sample = real_glue / "MNLI/official_layout_sample"
    splits = [split for split in get_task("mnli").files if split != "test_diagnostic"]
    assert available_splits("mnli", sample) == splits
    read = {split: read_split("mnli", sample, split) for split in splits}
    assert [len(read[split]) for split in splits] == [6, 5, 5, 5, 5]
    assert read["test_matched"].targets is None
    derived = real_glue / "MNLI/dev_matched.derived_layout.tsv"
    first = read_file("mnli", derived).take(range(5))
    assert (
        first.targets["label"].tolist()
        == read["validation_matched"].targets["label"].tolist()
    )
    for field, column in read["validation_matched"].fields.items():
        assert [t.strip() for t in first.fields[field]] == [t.strip() for t in column]
    assert first.ids == read["validation_matched"].ids


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "validation_name", "rows", "source"),
    [
        ("qnli", "validation", (4_917, 546), "dev.tsv was split by question"),
        ("qqp", "validation", (21_146, 2_350), "train_subset.tsv was split by groups"),
        ("mnli", "validation_matched", (8_833, 982), "was split by premise"),
    ],
)
def test_real_hold_out_parts_no_group(real_glue, name, validation_name, rows, source):
    train, validation, notes = load_splits(name, real_glue, seed=0)
    assert (len(train), len(validation[validation_name])) == rows
    assert source in notes[-1]
    columns = ("text", "text_pair") if name == "qqp" else ("text",)
    sides = [
        {" ".join(text.split()).lower() for at in columns for text in side.fields[at]}
        for side in (train, validation[validation_name])
    ]
    assert not sides[0] & sides[1]
    # The held-out classes are spread as the others are.
    shares = [
        np.bincount(s.targets["label"]) / len(s)
        for s in (train, validation[validation_name])
    ]
    assert np.abs(shares[0] - shares[1]).max() < 0.06
    again, _, _ = load_splits(name, real_glue, seed=0)
    assert again.fields == train.fields
