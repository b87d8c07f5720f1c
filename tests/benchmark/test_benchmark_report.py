import csv
import itertools
import re

import numpy as np
import pytest
from matplotlib.image import imread

from keras_recbert.benchmark.arithmetic import (
    sizes_of_candidate,
    step_flops,
    stored_bytes,
)
from keras_recbert.benchmark.comparisons import (
    Candidate,
    Comparison,
    Goal,
    Shape,
    comparisons,
)
from keras_recbert.benchmark.growth import growth_table, lines
from keras_recbert.benchmark.measuring import Measurement, Trial
from keras_recbert.benchmark.picture import save_pictures
from keras_recbert.benchmark.report import (
    COLUMNS,
    describe_device,
    describe_trial,
    rows,
    save_csv,
    save_text,
)

MB = 10**6


def measurement(label, seconds, ratios=(), rise=50 * MB, **more):
    return Measurement(
        label,
        seconds=seconds,
        iterations=2,
        items=1000,
        parameters=4_000_000,
        peak_bytes=400 * MB + rise,
        rss_bytes=400 * MB,
        versions={"python": "3.11", "torch": "2.13"},
        ratios=list(ratios),
        **more,
    )


@pytest.fixture
def results():
    shape = Shape(8, 125)
    subject, *references = (Candidate(name, "torch", {}) for name in "abc")
    goals = (Goal("b", 0.5), Goal("c", 0.5))
    comparison = Comparison("x", "x", subject, tuple(references), goals, (shape,))
    measured = [
        measurement("a", [0.5, 0.25, 1.0], others=[0.0, 0.05, 0.3]),
        measurement("b", [1.0, 1.0, 1.0], [0.5, 0.25, 1.0], rise=100 * MB),
        Measurement("c", error="The worker of c broke.\nTraceback"),
    ]
    return [(Trial(comparison, shape, "float32", "train"), measured)]


# The table ---------------------------------------------------------------------


def test_table_shows_times_ratios_memory_and_goals(results):
    head, a, b, c, trace, others, ratio = describe_trial(*results[0]).splitlines()
    assert head == "x 8x125 float32 train"
    assert " ".join(a.split()) == (
        "a 500.0 ms 2,000 tokens/s 450 MB (+50) 4.0 M parameters"
    )
    assert c.split(None, 1) == ["c", "The worker of c broke."]
    assert trace.strip() == "Traceback"
    assert "12 % of the processors, 30 % in the worst turn" in others
    assert ratio.strip() == (
        "a : b = 0.50 (0.38-0.75), 2.00 times its tokens/s, goal at most 0.50: met; "
        "memory 0.50"
    )


def test_table_says_by_how_much_a_goal_is_missed(results):
    results[0][1][1].ratios = [0.61, 0.6, 0.9]
    assert "goal at most 0.50: missed by 0.11" in describe_trial(*results[0])


def test_goal_holds_only_where_it_was_set(results):
    ((trial, measured),) = results
    elsewhere = Trial(trial.comparison, Shape(1, 5), "float32", "train")
    assert "goal" not in describe_trial(elsewhere, measured)


def test_table_shows_how_far_logits_are_apart(results):
    ((trial, (a, b, _)),) = results
    a.logits, b.logits = np.array([[0.5, -1.0]]), np.array([[0.5, -1.25]])
    text = describe_trial(trial, [a, b])
    assert text.endswith("; logits differ by 0.25 at most")
    assert [row["largest_difference_of_logits"] for row in rows([(trial, [a, b])])] == [
        "",
        "0.25",
    ]


# The files -----------------------------------------------------------------------


def read_csv(path):
    text = path.read_text().splitlines()
    header = [line for line in text if line.startswith("# ")]
    return header, list(csv.DictReader(text[len(header) :]))


def test_csv_has_a_header_and_a_row_for_each_candidate(tmp_path, results):
    path = tmp_path / "some.csv"
    path.write_text("of an earlier run")
    save_csv(path, ["processor: fast", "torch 2"], results)
    header, (a, b, c) = read_csv(path)
    assert header == ["# processor: fast", "# torch 2"]
    assert tuple(a) == COLUMNS
    assert (a["is_subject"], b["is_subject"]) == ("True", "False")
    assert float(a["median_seconds"]) == 0.5
    assert float(a["fastest_round_seconds"]) == 0.25
    assert float(a["units_per_second"]) == 2000
    assert float(a["others_processor_share"]) == pytest.approx(0.117)
    assert a["ratio"] == a["goal"] == ""
    assert [float(b[k]) for k in ("ratio", "goal", "memory_rise_ratio")] == [0.5] * 3
    assert b["goal_met"] == "True"
    assert b["versions"] == "python=3.11 torch=2.13"
    assert int(b["memory_rise_bytes"]) == 100 * MB
    assert c["error"] == "The worker of c broke."
    assert c["median_seconds"] == ""
    assert [path.name for path in tmp_path.iterdir()] == ["some.csv"]


def test_failed_write_keeps_what_was_there(tmp_path, results, monkeypatch):
    path = tmp_path / "some.txt"
    path.write_text("of an earlier run")
    (tmp_path / ".some.txt").mkdir()  # nothing can be written under that name
    with pytest.raises(OSError):
        save_text(path, [], results)
    assert path.read_text() == "of an earlier run"


def test_header_names_the_machine_and_no_date():
    text = "\n".join(describe_device())
    assert "processor: " in text and " cores" in text and "GiB" in text
    assert not re.search(r"\d{4}-\d\d|20[2-9]\d", text)


def test_picture_has_a_bar_for_each_ratio(tmp_path, results):
    assert save_pictures(tmp_path, ["processor: fast"], results) == ["benchmark.png"]
    assert [path.name for path in tmp_path.iterdir()] == ["benchmark.png"]
    one = imread(tmp_path / "benchmark.png")
    assert one.std() > 0.05  # something is on it
    save_pictures(tmp_path, ["processor: fast"], 4 * results)
    assert imread(tmp_path / "benchmark.png").shape[0] > one.shape[0]


# Growth ------------------------------------------------------------------------------


@pytest.fixture
def grown():
    """Results that take twice the operations' time at the longest rows."""
    scaling = comparisons(quick=True)["scaling"]
    sizes = sizes_of_candidate(scaling.subject)
    found = []
    for shape in scaling.shapes:
        seconds = 1e-12 * step_flops(sizes, shape, "train")
        if shape.sequence_length == 256:
            seconds *= 2
        trial = Trial(scaling, shape, "float32", "train")
        rise = stored_bytes(sizes, shape, "train") + 30 * MB
        found.append((trial, [measurement("bert_base", [seconds], rise=rise)]))
    return found


def test_growth_is_divided_by_that_of_the_arithmetic(grown):
    by_length, by_rows = lines(grown)
    assert (by_length.axis, by_length.fixed) == ("tokens a row", "2 rows")
    assert by_length.positions == [64, 128, 256]
    assert (by_rows.axis, by_rows.positions) == ("rows", [1, 2, 4])
    head, first, second = growth_table(grown).splitlines()
    assert head == "growth"
    assert "bert_base, float32 train, 2 rows, 64 to 256 tokens a row" in first
    assert first.count("quotient 2.00") == 2
    assert "time x 4.0, operations x 4.0, quotient 1.00" in second


def test_memory_of_the_arithmetic_is_subtracted_alike(grown):
    first = growth_table(grown).splitlines()[1]
    gained, arithmetic = (part.split(" MB")[0] for part in first.split(" + ")[1:])
    assert gained == arithmetic


def test_nothing_is_said_of_growth_without_a_comparison_for_it(results):
    assert growth_table(results) == ""


def test_growth_is_drawn(tmp_path, grown):
    names = save_pictures(tmp_path, ["processor: fast"], grown)
    assert names == ["benchmark.png", "scaling.png"]
    assert imread(tmp_path / "scaling.png").std() > 0.05


@pytest.mark.parametrize(
    "name",
    [
        "bert_base",
        "swish_base",
        "trans_blstm_base",
        "trans_blstm_half_base",
        "trans_blstm_1_base",
        "blstm_base",
    ],
)
def test_operations_are_two_for_each_weight_of_a_product(name):
    """Beside attention's products of activations: 4 x length x width a token."""
    import keras

    import keras_recbert

    sizes = {"num_layers": 1, "hidden_dim": 24, "vocabulary_size": 9}
    own = {"intermediate_dim": 40, "recurrent_dim": 32, "num_heads": 2}
    valid = keras_recbert.get_card(name).sizes
    own = {key: size for key, size in own.items() if key in valid}
    if name == "blstm_base":  # whose card has heads that it does not use
        del own["num_heads"]
    encoder = keras_recbert.build(name, **sizes, **own)
    (block,) = encoder.blocks
    products = [v for v in block.weights if "kernel" in v.path and "bias" not in v.path]
    weights = sum(keras.ops.size(v) for v in products)
    candidate = Candidate(name, "recbert", {"name": name, "overrides": encoder.config})
    shape = Shape(3, 10)
    flops = step_flops(sizes_of_candidate(candidate), shape, "forward")
    scores = 0 if name == "blstm_base" else 4 * 10 * 24
    assert flops == 30 * (2 * int(weights) + scores)
    assert step_flops(encoder.config, shape, "train") == 3 * flops


def test_memory_of_training_grows_with_layers_and_that_of_a_pass_does_not():
    sizes = sizes_of_candidate(comparisons()["scaling"].subject)
    deep = {**sizes, "num_layers": 6}
    shape = Shape(2, 64)
    assert stored_bytes(deep, shape, "train") == 3 * stored_bytes(sizes, shape, "train")
    assert stored_bytes(deep, shape, "forward") == stored_bytes(sizes, shape, "forward")
    doubled = [stored_bytes(sizes, Shape(2, n), "train") for n in (64, 128, 256)]
    assert all(2 < b / a < 4 for a, b in itertools.pairwise(doubled))
