"""Scores against learning rates: lines, bands, and what is not whole."""

import numpy as np
import pytest

from keras_recbert.train.sweep_figure import has_learning_rates, save_sweep_figure


def result(rate, seed, score, recipe="rte", model="bert_minilm", **more):
    return {
        "recipe": recipe,
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
    assert has_learning_rates(SWEEP)
    assert not has_learning_rates(SWEEP[1:3])
    assert not has_learning_rates([SWEEP[0], SWEEP[-1]])
    assert not has_learning_rates([{"run": "a-seed0", "learning_rate": 1.0}])
