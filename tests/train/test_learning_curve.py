import struct
import sys

import pytest

from keras_recbert.train.learning_curve import save_learning_curve

LOSS = {"step": 40, "steps": [10, 20, 30, 40], "losses": [1, 0.8, 0.5, 0.4]}
HISTORY = {
    "loss": [0.9, 0.45],
    "accuracy": [0.5, 0.8],
    "validation_loss": [0.8, 0.6],
    "validation_accuracy": [0.6, 0.7],
}


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


def test_the_picture_shows_losses_and_scores_over_steps(tmp_path, drawn):
    save_learning_curve(
        tmp_path / "it.png", LOSS, HISTORY, "validation_accuracy", "a title"
    )
    data = (tmp_path / "it.png").read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert min(struct.unpack(">II", data[16:24])) > 300  # width and height
    assert [path.name for path in tmp_path.iterdir()] == ["it.png"]

    losses, scores = drawn[0].axes
    lines = {line.get_label(): line.get_xydata().tolist() for line in losses.lines}
    assert lines == {
        "training": [[10, 1], [20, 0.8], [30, 0.5], [40, 0.4]],
        "validation": [[20, 0.8], [40, 0.6]],
    }
    (line,) = scores.lines
    assert line.get_label() == "validation accuracy"
    assert line.get_xydata().tolist() == [[20, 60], [40, 70]]
    assert drawn[0].get_suptitle() == "a title"


def test_two_validation_splits_are_four_lines(tmp_path, drawn):
    history = {"loss": [1.0]}
    for split in ("validation_matched", "validation_mismatched"):
        history |= {f"{split}_loss": [0.5], f"{split}_accuracy": [0.5]}
    save_learning_curve(
        tmp_path / "it.png", LOSS, history, "validation_matched_accuracy", "title"
    )
    losses, scores = drawn[0].axes
    assert [line.get_label() for line in losses.lines[1:]] == [
        "validation_matched",
        "validation_mismatched",
    ]
    assert [line.get_linewidth() for line in scores.lines] == [2.5, 1]


def test_without_matplotlib_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'matplotlib: pip install -e "\.\[train\]"'):
        save_learning_curve(
            tmp_path / "it.png", LOSS, HISTORY, "validation_accuracy", ""
        )
