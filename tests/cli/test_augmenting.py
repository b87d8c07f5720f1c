"""`recbert augment`: a table in, a table with synthetic examples out."""

import csv
import json

import pytest

from keras_recbert.data import Augmentation, augment
from keras_recbert.data.augmented_file import augment_file
from keras_recbert.data.tables import read_table

ROWS = [
    ("a gripping film, and short", "5"),
    ('he said "no"\rtwice', "1"),
    ("Don't\nmiss it\t!", "5"),
    ("", "1"),
]
MASKS = ("--pos-probability", "0")


@pytest.fixture
def reviews(tmp_path):
    path = tmp_path / "reviews.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([("review", "stars"), *ROWS])
    return path


def test_a_table_is_augmented_without_options(recbert, tmp_path, data_dir, monkeypatch):
    monkeypatch.setenv("NLTK_DATA", str(data_dir / "nltk_data"))
    lines = (data_dir / "glue/SST-2/train.tsv").read_text("utf-8").splitlines()[:101]
    (tmp_path / "train.tsv").write_text("\n".join(lines) + "\n", "utf-8")
    output = tmp_path / "augmented.jsonl"
    status, out, err = recbert(
        "augment", str(tmp_path / "train.tsv"), "--output", str(output)
    )
    assert status == 0, err
    assert "texts are in 'sentence', a text by its name" in err
    rows = [json.loads(line) for line in output.read_text("utf-8").splitlines()]
    texts = [line.split("\t")[0] for line in lines[1:]]
    assert [(row["text"],) for row in rows] == list(augment(texts))
    assert {tuple(row) for row in rows} == {("text", "source", "augmented")}
    assert [row["source"] for row in rows[:100]] == list(range(1, 101))
    assert [row["augmented"] for row in rows] == [False] * 100 + [True] * (
        len(rows) - 100
    )
    assert f"100 originals, {len(rows) - 100:,} synthetic examples" in out
    assert "examples/s" in out


@pytest.mark.parametrize("ending", ["jsonl", "csv", "tsv"])
def test_every_format_holds_the_same_texts(recbert, reviews, tmp_path, ending):
    output = tmp_path / f"out.{ending}"
    argv = ("augment", str(reviews), "--output", str(output), *MASKS, "--n-iter", "5")
    status, _, err = recbert(*argv, "--seed", "3", "--mask-probability", "0.3")
    assert status == 0, err
    options = Augmentation(5, 0.3, 0, seed=3)
    expected = [text for (text,) in augment([text for text, _ in ROWS], options)]
    table = read_table(output)
    assert table.columns == ["text", "source", "augmented"]
    assert table.values("text") == expected
    assert table.values("augmented")[:5] == ["false"] * 4 + ["true"]
    assert set(table.values("source")) == {"1", "2", "3", "4"}


def test_pairs_from_a_recipe(recbert, tmp_path):
    pairs = [{"premise": f"it is {n}", "hypothesis": f"is it {n}?"} for n in range(6)]
    table = tmp_path / "pairs.jsonl"
    table.write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(f"input: {table}\nn_iter: 3\npos_probability: 0\n")
    output = tmp_path / "out.jsonl"
    argv = ("augment", "--recipe", str(recipe), "--output", str(output))
    status, _, err = recbert(*argv)
    assert status == 0, err
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    assert list(rows[0]) == ["text", "text_pair", "source", "augmented"]
    fields = {name: [pair[name] for pair in pairs] for name in pairs[0]}
    options = Augmentation(n_iter=3, pos_probability=0)
    found = [(row["text"], row["text_pair"]) for row in rows]
    assert found == list(augment(fields, options))


def test_python_and_a_tagger_of_ones_own(reviews, tmp_path):
    output = tmp_path / "out.csv"
    options = Augmentation(n_iter=3, mask_probability=0, pos_probability=0.9)
    written = augment_file(reviews, output, options, tagger=lambda words: words)
    # Each word is its own part of speech, so nothing new comes out.
    assert (written.num_originals, written.num_augmented) == (4, 0)
    assert written.seconds > written.tagging_seconds > 0


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("@/no.csv", "--output", "@/out.csv"), "There is no file @/no.csv"),
        (("@/reviews.csv", "--output", "@/out.txt"), "@/out.txt: augmented texts are"),
        (("@/reviews.csv", "--output", "@/reviews.csv"), "reviews.csv is the input"),
        (("@/reviews.csv", "--output", "@/no/out.csv"), "there is no folder @/no"),
        (("@/reviews.csv", "--output", ""), "`output` is empty"),
        (("@/reviews.csv", "--output", "@/there.csv"), "exists already.* --overwrite"),
        (("@/bad.csv", "--output", "@/out.csv"), "bad.csv:3: expected 2 fields"),
        (
            ("@/reviews.csv", "--output", "@/out.csv", "--text-column", "text"),
            "has no column 'text'. Its columns: 'review', 'stars'",
        ),
        (
            ("@/reviews.csv", "--output", "@/out.csv", "--mask-probability", "2"),
            "`mask_probability` must be a number from 0 to 1. Received",
        ),
    ],
)
def test_what_is_refused_leaves_nothing(recbert, reviews, argv, message):
    folder = reviews.parent
    (folder / "there.csv").write_text("kept")
    (folder / "bad.csv").write_text("text,label\na,1\nb\n")
    before = sorted(folder.iterdir())
    argv = [word.replace("@", str(folder)) for word in argv]
    status, out, err = recbert("augment", *argv, *MASKS)
    assert (status, out) == (2, "")
    message = message.replace("@", str(folder))
    first, *rest = message.split(".* ")
    assert all(part in err for part in (first, *rest)), err
    assert sorted(folder.iterdir()) == before
    assert (folder / "there.csv").read_text() == "kept"


def test_an_output_appears_whole_or_not_at_all(recbert, reviews, monkeypatch):
    def broken(self, iteration, row):
        raise MemoryError

    output = reviews.with_name("out.jsonl")
    output.write_text("before")
    monkeypatch.setattr(
        "keras_recbert.data.augmentation.TextAugmenter.candidate", broken
    )
    argv = ("augment", str(reviews), "--output", str(output), *MASKS, "--overwrite")
    status, _, err = recbert(*argv)
    assert status == 2 and "not enough memory" in err
    assert output.read_text() == "before"
    assert {path.name for path in reviews.parent.iterdir()} == {
        "reviews.csv",
        "out.jsonl",
    }
    monkeypatch.undo()
    assert recbert(*argv)[0] == 0
    assert json.loads(output.read_text("utf-8").splitlines()[0])["source"] == 1
