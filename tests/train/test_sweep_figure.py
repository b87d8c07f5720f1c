"""Scores against learning rates: lines, bands, and what is not whole."""

import numpy as np
import pytest

from keras_recbert.train.sweep_figure import save_sweep_figure, swept_option


def result(rate, seed, score, recipe="rte", model="bert_minilm", **more):
    return {
        "recipe": recipe,
        "task": more.pop("task", recipe),
        "model": model,
        "point": {"learning_rate": rate, **more.pop("point", {})},
        "learning_rate": rate,
        "main_score": "validation_accuracy",
        "scores": {"validation_loss": 9.0, "validation_accuracy": score},
        "config": {"seed": seed},
        **more,
    }


SWEEP = [
    result(1e-3, 0, 0.5),
    result(1e-4, 0, 0.6),
    result(1e-4, 1, 0.8),
    result(1e-3, 0, 0.7, model="swish_minilm"),
    result(1e-4, 1, 0.4, recipe="mrpc"),
    result(1e-4, 0, 0.5, recipe="mrpc", model="swish_minilm"),
    result(1e-2, 0, 0.99, stage="tuned"),
]


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


def lines_of(axis):
    return {
        line.get_label(): line.get_xydata().tolist()
        for line in axis.lines
        if line.get_linewidth() == 1.5 and not line.get_label().startswith("_")
    }


def test_a_line_is_the_mean_and_its_band_the_range(tmp_path, drawn):
    save_sweep_figure(tmp_path / "it.png", SWEEP)
    assert (tmp_path / "it.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert [path.name for path in tmp_path.iterdir()] == ["it.png"]
    rte, mrpc, mean = drawn[0].axes
    assert [axis.get_title() for axis in drawn[0].axes] == [
        "rte",
        "mrpc",
        "mean of all",
    ]
    lines = lines_of(rte)
    np.testing.assert_allclose(lines["bert_minilm"], [[1e-4, 70], [1e-3, 50]])
    np.testing.assert_allclose(lines["swish_minilm"], [[1e-3, 70]])
    edges = rte.collections[0].get_paths()[0].vertices
    assert {60.0, 80.0} <= set(edges[edges[:, 0] == 1e-4][:, 1].round(6))
    assert rte.get_ylabel() == "accuracy, % (validation)"
    assert [text.get_text() for text in rte.get_xticklabels()] == ["0.0001", "0.001"]
    assert rte.get_xscale() == "log"
    # Of what all panels have: seed 1 at 1e-4 of one encoder.
    np.testing.assert_allclose(lines_of(mean)["bert_minilm"], [[1e-4, 60]])
    assert lines_of(mean).keys() == {"bert_minilm"}


def test_a_point_that_lacks_seeds_is_hollow(tmp_path, drawn):
    save_sweep_figure(tmp_path / "it.png", SWEEP[:3])
    (axis,) = drawn[0].axes
    fills = {
        float(line.get_xdata()[0]): line.get_markerfacecolor()
        for line in axis.lines
        if line.get_marker() == "o"
    }
    assert fills[1e-3] == "white"
    assert fills[1e-4] != "white"


def test_what_else_varies_is_a_line_of_its_own(tmp_path, drawn):
    more = [
        result(rate, 0, 0.5, point={"epochs": epochs}, stage="tuning")
        for rate in (1e-3, 1e-4)
        for epochs in (3, 5)
    ]
    save_sweep_figure(tmp_path / "it.png", more)
    (axis,) = drawn[0].axes
    assert lines_of(axis).keys() == {"bert_minilm, epochs 3", "bert_minilm, epochs 5"}
    assert axis.get_ylabel() == "accuracy, % (held out of train)"


def test_one_learning_rate_needs_no_picture():
    assert swept_option(SWEEP) == "learning_rate"
    assert swept_option(SWEEP[1:3]) is None
    assert swept_option([SWEEP[0], SWEEP[-1]]) is None
    assert swept_option([{"run": "a-seed0", "learning_rate": 1.0}]) is None


def test_an_option_of_the_student_and_two_recipes_of_a_task(tmp_path, drawn):
    """Figure 3.3 of Liu 2020: scores against units, distilled and on labels."""
    units = "overrides.recurrent_dim"
    more = [
        result(1e-3, 0, score, recipe=recipe, task="sst2", point={units: size})
        for recipe, scores in (("labels", (0.5, 0.6)), ("logits", (0.7, 0.9)))
        for size, score in zip((2, 150), scores, strict=True)
    ]
    for one in more:
        del one["point"]["learning_rate"]
    assert swept_option(more) == units
    save_sweep_figure(tmp_path / "it.png", more)
    (axis,) = drawn[0].axes
    assert (axis.get_title(), axis.get_xlabel()) == ("sst2", "recurrent dim")
    lines = lines_of(axis)
    np.testing.assert_allclose(lines["bert_minilm, labels"], [[2, 50], [150, 60]])
    np.testing.assert_allclose(lines["bert_minilm, logits"], [[2, 70], [150, 90]])


def test_numbers_from_zero_have_a_linear_axis(tmp_path, drawn):
    more = [result(1e-3, 0, n / 9, point={"n_iter": n}) for n in (0, 2, 5)]
    assert swept_option(more) == "n_iter"
    save_sweep_figure(tmp_path / "it.png", more)
    (axis,) = drawn[0].axes
    assert axis.get_xscale() == "linear"
    assert [text.get_text() for text in axis.get_xticklabels()] == ["0", "2", "5"]
    assert lines_of(axis).keys() == {"bert_minilm"}  # one learning rate for all
    both = [
        result(1e-3, 0, n / 9, point={"n_iter": n, "pooling": pooling})
        for n, pooling in ((0, "mean"), (2, "mean"), (0, "first"), (2, "first"))
    ]
    save_sweep_figure(tmp_path / "it.png", both)
    names = {"bert_minilm, pooling mean", "bert_minilm, pooling first"}
    assert lines_of(drawn[1].axes[0]).keys() == names
    assert (
        swept_option([result(1e-3, 0, 0.5, point={"freeze": x}) for x in ("a", True)])
        is None
    )
