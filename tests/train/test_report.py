import csv
import math
import struct
import subprocess
import sys
import warnings

import numpy as np
import pytest

from keras_recbert.data.examples import Examples
from keras_recbert.train import report_pictures
from keras_recbert.train.report import write_report
from keras_recbert.train.report_tables import escape, markdown_table, write_csv

NAMES = ("bad", "good | fine", "never seen")
TRAIN = Examples(
    {"text": ["dull film", "dull music", "dull story", "fine film", "fine music"]},
    {"label": np.array([0, 0, 0, 1, 1], "int32")},
)
ODD = 'a "fine" | film,\r\nwith <b>*stars*</b>\n' + "and more " * 40
VALIDATION = Examples(
    {"text": ["dull", ODD, "fine", "a dull one", "so fine"]},
    {"label": np.array([0, 0, 1, 1, 1], "int32")},
    ids=["r0", "r1", "r2", "r|3", "r4"],
)
# Predictions 0, 1, 1, 0, 1: the second and the fourth are wrong.
PROBABILITIES = np.array(
    [
        [0.70, 0.20, 0.10],
        [0.05, 0.90, 0.05],
        [0.10, 0.80, 0.10],
        [0.60, 0.30, 0.10],
        [0.02, 0.97, 0.01],
    ]
)
LOGITS = np.log(PROBABILITIES).astype("float32")
SCORES = Examples(
    {"text": ["one", "two two", "three"], "text_pair": ["a", "b", "c"]},
    {"label": np.array([1.0, 2.0, 4.0], "float32")},
)


def labelled(texts, labels):
    return Examples({"text": texts}, {"label": labels})


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def size_of(path):
    """Width and height of a PNG."""
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    return struct.unpack(">II", data[16:24])


def read_csv(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def test_scores_of_a_classifier_against_a_count_by_hand(tmp_path):
    scores = write_report(
        tmp_path / "new", "validation", TRAIN, VALIDATION, LOGITS, NAMES, seed=3
    )
    assert all(type(value) is float for value in scores.values())
    bad, good = 2 * 1 / (2 * 1 + 1 + 1), 2 * 2 / (2 * 2 + 1 + 1)
    majority = 2 * 2 / (2 * 2 + 3)  # F1 of "bad", always predicted; that of "good" is 0
    # One example a bin of 1/15, but 0.90 and 0.97 are in two, too: five bins.
    error = np.mean([0.30, 0.90, 0.20, 0.60, 0.03])
    assert scores == pytest.approx(
        {
            "validation_accuracy": 3 / 5,
            "validation_macro_f1": (bad + good) / 2,
            "validation_calibration_error": error,
            "validation_majority_accuracy": 2 / 5,
            "validation_majority_macro_f1": majority / 2,
            # "dull", "fine", "fine", "dull", "fine": as the model.
            "validation_tfidf_accuracy": 3 / 5,
            "validation_tfidf_macro_f1": (bad + good) / 2,
        },
        abs=1e-6,
    )
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == [
        "confusion_validation.png",
        "mistakes_validation.csv",
        "report_validation.md",
    ]


def test_the_markdown_of_a_classifier_holds_its_tables(tmp_path):
    write_report(tmp_path, "validation", TRAIN, VALIDATION, LOGITS, NAMES, seed=3)
    text = (tmp_path / "report_validation.md").read_text(encoding="utf-8")
    lines = text.splitlines()
    assert lines[0] == "# validation: 5 examples, seed 3"
    assert "| this model | 0.600 | 0.583 | 0.406 |" in lines
    assert "| majority: always bad | 0.400 | 0.286 | – |" in lines
    assert "| TF-IDF, logistic regression | 0.600 | 0.583 | – |" in lines
    assert "| 0 | bad | 0.500 | 0.500 | 0.500 | 2 |" in lines
    assert r"| 1 | good \| fine | 0.667 | 0.667 | 0.667 | 3 |" in lines
    assert "| 2 | never seen | – | – | – | 0 |" in lines
    assert "![Confusion matrix](confusion_validation.png)" in lines
    assert "[mistakes_validation.csv](mistakes_validation.csv)" in text
    # The surest comes first; a text is one cell in one line, and cut.
    first, second = (
        line for line in lines if "| 0.900 |" in line or r"0.600 | r\|3" in line
    )
    start = r"| bad | good \| fine | 0.900 | r1 | a "
    assert first.startswith(start + r'"fine" \| film, with \<b\>\*stars\*\</b\> and')
    assert first.endswith("… |") and len(first) < 260
    assert second == r"| good \| fine | bad | 0.600 | r\|3 | a dull one |"


def test_the_csv_holds_whole_texts_the_surest_first(tmp_path):
    write_report(tmp_path, "validation", TRAIN, VALIDATION, LOGITS, NAMES, seed=3)
    header, *rows = read_csv(tmp_path / "mistakes_validation.csv")
    assert header == ["id", "text", "label", "prediction", "probability"]
    assert [row[:4] for row in rows] == [
        ["r1", ODD, "bad", "good | fine"],
        ["r|3", "a dull one", "good | fine", "bad"],
    ]
    assert [float(row[4]) for row in rows] == pytest.approx([0.9, 0.6], abs=1e-6)


def test_without_mistakes_there_is_a_header(tmp_path):
    logits = np.eye(3, dtype="float32")[VALIDATION.targets["label"]]
    assert write_report(tmp_path, "validation", TRAIN, VALIDATION, logits, NAMES, 0)[
        "validation_accuracy"
    ]
    assert len(read_csv(tmp_path / "mistakes_validation.csv")) == 1
    assert "0 mistakes in 5 examples" in (tmp_path / "report_validation.md").read_text()


def test_pairs_are_two_columns_and_are_joined_for_tfidf(tmp_path):
    train = Examples(
        {"text": ["x", "x"] * 3, "text_pair": ["dull film", "fine film"] * 3},
        {"label": np.arange(6) % 2},
    )
    validation = Examples(
        {"text": ["left", "left"], "text_pair": ["fine", "dull"]},
        {"label": np.array([1, 1], "int32")},
    )
    logits = np.array([[2.0, 1.0], [1.0, 2.0]], "float32")
    scores = write_report(tmp_path, "test", train, validation, logits, ["no", "yes"], 0)
    assert scores["test_tfidf_accuracy"] == 0.5  # only the second texts tell
    assert scores["test_accuracy"] == 0.5
    header, row = read_csv(tmp_path / "mistakes_test.csv")
    assert header[:3] == ["id", "text", "text_pair"]
    assert row[:5] == ["1", "left", "fine", "yes", "no"]


def test_scores_of_a_regressor_against_a_count_by_hand(tmp_path):
    predictions = np.array([1.5, 2.0, 2.0], "float32")
    scores = write_report(
        tmp_path, "validation", SCORES, SCORES, predictions, None, seed=1
    )
    # Around their means 7/3 and 11/6, in sixths: labels -8 -2 10, predictions -2 1 1.
    pearson = (16 - 2 + 10) / math.sqrt((64 + 4 + 100) * (4 + 1 + 1))
    # Ranks 1 2 3 and 1 2.5 2.5.
    spearman = (1 + 0 + 0.5) / math.sqrt(2 * 1.5)
    mean = 7 / 3
    expected = {
        "validation_pearson": pearson,
        "validation_spearman": spearman,
        "validation_mean_absolute_error": (0.5 + 0 + 2) / 3,
        "validation_mean_squared_error": (0.25 + 4) / 3,
        "validation_constant_mean_absolute_error": (mean - 1 + mean - 2 + 4 - mean) / 3,
        "validation_constant_mean_squared_error": (64 + 4 + 100) / 36 / 3,
    }
    assert {name: scores[name] for name in expected} == pytest.approx(expected)
    tfidf = {name for name in scores if "_tfidf_" in name}
    assert tfidf == set(scores) - set(expected)
    assert scores["validation_tfidf_pearson"] > 0.9  # of words it has seen

    header, *rows = read_csv(tmp_path / "mistakes_validation.csv")
    assert header == ["id", "text", "text_pair", "label", "prediction", "error"]
    assert rows == [
        ["3", "three", "c", "4.0", "2.0", "-2.0"],
        ["1", "one", "a", "1.0", "1.5", "0.5"],
        ["2", "two two", "b", "2.0", "2.0", "0.0"],
    ]
    text = (tmp_path / "report_validation.md").read_text(encoding="utf-8")
    assert "| constant: always 2.333 | – | – | 1.111 | 1.556 |" in text
    assert "| 4.000 | 2.000 | -2.000 | 3 | three | c |" in text
    assert "![Predictions over labels](scatter_validation.png)" in text
    assert size_of(tmp_path / "scatter_validation.png") == (600, 600)


def test_equal_labels_leave_correlations_out_and_say_so(tmp_path):
    same = labelled(["one", "two"], np.array([3.0, 3.0], "float32"))
    scores = write_report(
        tmp_path, "validation", same, same, np.array([3.0, 5.0]), None, 0
    )
    assert scores == {
        "validation_mean_absolute_error": 1.0,
        "validation_mean_squared_error": 2.0,
        "validation_constant_mean_absolute_error": 0.0,
        "validation_constant_mean_squared_error": 0.0,
    }
    text = (tmp_path / "report_validation.md").read_text()
    assert "All labels are 3.000, so the correlations are undefined." in text
    assert "no TF-IDF baseline: all training examples have one label" in text


@pytest.mark.parametrize(
    ("train", "reason"),
    [
        (TRAIN.take([0, 1]), "all training examples have one label"),
        (labelled(["a", "?"], np.array([0, 1])), "hold no word of two letters"),
    ],
)
def test_what_tfidf_cannot_learn_is_said(tmp_path, train, reason):
    scores = write_report(tmp_path, "validation", train, VALIDATION, LOGITS, NAMES, 0)
    assert "validation_tfidf_accuracy" not in scores
    assert scores["validation_majority_accuracy"] == 0.4
    assert reason in (tmp_path / "report_validation.md").read_text()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"logits": LOGITS[:4]},
            r"`logits` of validation must have .* \(5, 3\).*\(4, 3\)",
        ),
        ({"logits": LOGITS[:, 0]}, r"must have the shape \(5, 3\).*3 `label_names`"),
        ({"label_names": None}, r"must have the shape \(5,\).*Received: \(5, 3\)"),
        ({"logits": LOGITS * [np.nan, 1, 1]}, "must be finite. Received nan for exam"),
        (
            {"examples": Examples(VALIDATION.fields)},
            "`examples` with 5 .*, targets=None",
        ),
        ({"examples": VALIDATION.take([])}, "`examples` with 0 examples"),
        (
            {"train_examples": labelled(["a", "b"], np.array([0, 3]))},
            "Labels of `train_examples` must be from 0 to 2.*ids from 0 to 3",
        ),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_written(
    tmp_path, changes, message
):
    arguments = {
        "train_examples": TRAIN,
        "examples": VALIDATION,
        "logits": LOGITS,
        "label_names": NAMES,
    }
    with pytest.raises(ValueError, match=message):
        write_report(tmp_path / "it", "validation", **{**arguments, **changes}, seed=0)
    assert list(tmp_path.iterdir()) == []


def test_without_scikit_learn_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(ImportError, match=r'scikit-learn: pip install -e ".\[train\]"'):
        write_report(tmp_path / "it", "validation", TRAIN, VALIDATION, LOGITS, NAMES, 0)
    assert list(tmp_path.iterdir()) == []


def test_no_tensorflow_is_needed():
    script = (
        "import sys, keras_recbert.train.report\n"
        "sys.exit(bool({'tensorflow', 'matplotlib', 'sklearn'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0


# Pictures ----------------------------------------------------------------------


@pytest.fixture
def drawn(monkeypatch):
    """The figures that are saved."""
    from matplotlib.figure import Figure

    figures, savefig = [], Figure.savefig

    def save(figure, *args, **kwargs):
        figures.append(figure)
        savefig(figure, *args, **kwargs)

    monkeypatch.setattr(Figure, "savefig", save)
    return figures


def cells(axis):
    return [text.get_text() for text in axis.texts]


def names_of(axis):
    return [label.get_text() for label in axis.get_yticklabels()]


def test_the_matrix_shows_counts_coloured_by_their_share(tmp_path, drawn):
    write_report(tmp_path, "validation", TRAIN, VALIDATION, LOGITS, NAMES, seed=3)
    axis = drawn[0].axes[0]
    assert cells(axis) == ["1", "1", "0", "1", "2", "0", "0", "0", "0"]
    shares = np.asarray(axis.images[0].get_array())
    np.testing.assert_allclose(shares, [[1 / 2, 1 / 2, 0], [1 / 3, 2 / 3, 0], [0] * 3])
    assert axis.images[0].get_clim() == (0, 1)
    assert names_of(axis) == list(NAMES)
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("prediction", "label")
    assert 300 < size_of(tmp_path / "confusion_validation.png")[0] < 800


def test_names_that_cannot_be_drawn_have_their_number(tmp_path, drawn):
    names = ["好的", "a $x$ name\nin two lines", "one that is much too long to draw"]
    matrix = np.array([[5, 1, 0], [1, 5, 0], [0, 0, 2]])
    report_pictures.save_confusion_matrix(tmp_path / "it.png", matrix, names, "$ t")
    assert names_of(drawn[0].axes[0]) == [
        "class 0",
        "a $x$ name in two lines",
        "2: one that is much too…",
    ]


def test_of_many_classes_it_shows_the_most_confused(tmp_path, drawn):
    matrix = np.diag(np.full(40, 7))
    matrix[35, 3] = 4  # the only mistakes; the others follow in their order
    names = [f"n{index}" for index in range(40)]
    report_pictures.save_confusion_matrix(tmp_path / "it.png", matrix, names, "title")
    axis = drawn[0].axes[0]
    assert names_of(axis) == [f"n{index}" for index in (*range(29), 35)]
    assert axis.get_title() == "title\nthe 30 of 40 classes with the most mistakes"
    # Shares are those of the whole row, and zeros of a large matrix are left out.
    assert axis.images[0].get_array()[29, 3] == pytest.approx(4 / 11)
    assert sorted(set(cells(axis))) == ["", "4", "7"]


def test_of_many_points_some_are_drawn_by_the_seed(tmp_path, drawn, monkeypatch):
    monkeypatch.setattr(report_pictures, "MAX_POINTS", 4)
    labels = np.arange(9.0)
    for seed in (1, 1, 2):
        report_pictures.save_scatter(
            tmp_path / "it.png", labels, labels + 1, "title", seed
        )
    first, again, other = (
        figure.axes[0].collections[0].get_offsets().tolist() for figure in drawn
    )
    assert len(first) == 4 and first == again != other
    assert all(y == x + 1 for x, y in first)
    assert drawn[0].axes[0].get_title().endswith("4 of 9 examples, drawn at random")


# Tables ------------------------------------------------------------------------


def test_escaped_texts_stay_in_their_cell():
    assert escape("a|b\r\n\tc") == r"a\|b c"
    assert escape("\u2028`x` \\| _y_ [z](u)") == r"\`x\` \\\| \_y\_ \[z\](u)"
    assert escape("word " * 50, length=11) == "word word…"


def test_a_lone_carriage_return_stays_in_its_field(tmp_path):
    write_csv(tmp_path / "it.csv", ("text", "score"), [("a\rb", 0.5), ("", 1)])
    rows = [["text", "score"], ["a\rb", "0.5"], ["", "1"]]
    assert read_csv(tmp_path / "it.csv") == rows


def test_numbers_stand_right_and_gaps_are_dashes():
    rows = [("a", 0.12345, None), ("b", 3, float("nan"))]
    assert markdown_table(("x", "y", "z"), rows).splitlines() == [
        "| x | y | z |",
        "| --- | ---: | ---: |",
        "| a | 0.123 | – |",
        "| b | 3 | – |",
    ]
