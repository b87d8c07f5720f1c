"""The sweeps in configs/sweeps: read, planned, and opening with their command."""

import pathlib
import shlex

import pytest

from keras_recbert.cli import COMMANDS, CONFIGS
from keras_recbert.cli.arguments import config_from
from keras_recbert.config.grid import grid_points
from keras_recbert.train.fine_tuning_table import plan_fine_tuning_table

ROOT = pathlib.Path(__file__).parents[2]
SWEEPS = sorted((ROOT / "configs" / "sweeps").glob("*.yaml"))


def test_there_are_sweeps():
    assert {path.stem for path in SWEEPS} >= {
        "feature_based",
        "minilm_tuned",
        "stability",
    }


@pytest.mark.parametrize("path", SWEEPS, ids=lambda path: path.stem)
def test_sweeps_open_with_the_command_that_runs_them(path, monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    words = shlex.split(path.read_text().splitlines()[0][2:])
    relative = str(path.relative_to(ROOT))
    assert words[:4] == ["recbert", "table", "--recipe", relative]
    config = config_from(words[2:], COMMANDS["table"], CONFIGS["table"])
    rows = plan_fine_tuning_table(
        config.recipes,
        config.seeds,
        tmp_path / "out",
        models=config.models,
        grid=config.grid,
        tuning_fraction=config.tuning_fraction,
        data_dir=config.data_dir,
        teacher=config.teacher,
    )
    num_points = len(grid_points(config.grid))
    assert num_points > 1
    num_models = len(config.models or ["that of the recipe"])
    assert len(rows) == len(config.recipes) * num_models * num_points
