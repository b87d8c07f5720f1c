"""The sweeps in configs/sweeps: read, planned, and opening with their command."""

import pathlib
import shlex

import pytest
import yaml
from toy_texts import tiny_model

from keras_recbert.cli import COMMANDS, CONFIGS
from keras_recbert.cli.arguments import config_from
from keras_recbert.config.grid import grid_points
from keras_recbert.data.task_spec import get_task
from keras_recbert.train.fine_tuning_table import plan_fine_tuning_table

ROOT = pathlib.Path(__file__).parents[2]
SWEEPS = sorted((ROOT / "configs" / "sweeps").glob("*.yaml"))


def test_there_are_sweeps():
    assert {path.stem for path in SWEEPS} >= {
        "feature_based",
        "minilm_tuned",
        "stability",
    }


def write_names(folder, recipes):
    """Writes empty files of the names that the tasks of recipes have; the folder."""
    for recipe in recipes:
        task = get_task(yaml.safe_load(pathlib.Path(recipe).read_text("utf-8"))["task"])
        path = folder / task.folder / task.files["train"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return str(folder)


@pytest.mark.parametrize("path", SWEEPS, ids=lambda path: path.stem)
def test_sweeps_open_with_the_command_that_runs_them(path, monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    words = shlex.split(path.read_text().splitlines()[0][2:])
    relative = str(path.relative_to(ROOT))
    assert words[:4] == ["recbert", "table", "--recipe", relative]
    config = config_from(words[2:], COMMANDS["table"], CONFIGS["table"])
    if config.teacher is not None:
        tiny_model().save_preset(tmp_path / config.teacher)
        config.teacher = str(tmp_path / config.teacher)
    rows = plan_fine_tuning_table(
        config.recipes,
        config.seeds,
        tmp_path / "out",
        models=config.models,
        grid=config.grid,
        tuning_fraction=config.tuning_fraction,
        data_dir=write_names(tmp_path / config.data_dir, config.recipes),
        teacher=config.teacher,
    )
    num_points = len(grid_points(config.grid))
    assert num_points > 1
    num_models = len(config.models or ["that of the recipe"])
    assert len(rows) == len(config.recipes) * num_models * num_points
