"""Table 7 of BERT as one command: fine-tuning, then readings of a frozen encoder."""

import json
import pathlib

import pytest
import yaml

from keras_recbert.cli import main
from keras_recbert.config.grid import FLAGS, check_grid, grid_points
from keras_recbert.train import table_runs

ROOT = pathlib.Path(__file__).parents[2]
SAMPLES = ROOT / "tests" / "data" / "samples"
SWEEP = ROOT / "configs" / "sweeps" / "feature_based.yaml"
TINY = {
    "model": "bert_tiny",
    "task": "wnut17",
    "epochs": 1,
    "vocabulary_size": 60,
    "max_sequence_length": 16,
    "overrides": {
        "num_layers": 2,
        "hidden_dim": 12,
        "num_heads": 2,
        "decoder_units": 3,
    },
}


class InThisProcess:
    """A run of a table without a process of its own, which takes seconds to begin."""

    def __init__(self, config, folder, jobs):
        recipe = folder.with_name(f"{folder.name}.yaml")
        recipe.write_text(yaml.safe_dump(vars(config)))
        self.status = main([config.command, "--recipe", str(recipe)])

    def has_ended(self):
        return True

    def problem(self):
        return f"ended with status {self.status}" if self.status else None


def test_the_sweep_has_the_rows_of_table_7():
    grid = yaml.safe_load(SWEEP.read_text())["grid"]
    fine_tuning, *features = grid_points(grid)
    assert fine_tuning == {"freeze": None}
    for point in features:
        assert (point["freeze"], point["overrides.decoder"]) == ("encoder", "blstm")
    last_four = [-4, -3, -2, -1]
    assert [(point["layer"], point.get("combine")) for point in features] == [
        (0, None),
        (-2, None),
        (-1, None),
        (last_four, "weighted_sum"),
        (last_four, "concatenate"),
        ("all", "weighted_sum"),
    ]


@pytest.mark.slow
def test_rows_of_the_sweep_run(tmp_path, monkeypatch, eager_steps, capsys):
    monkeypatch.setattr(table_runs, "_Process", InThisProcess)
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(TINY))
    sweep = yaml.safe_load(SWEEP.read_text())
    first, *_, last = sweep["grid"]
    sweep |= {
        "recipes": [str(tmp_path / "tiny.yaml")],
        "models": ["bert_tiny"],
        "grid": [first, last],
        "seeds": [0],
    }
    (tmp_path / "sweep.yaml").write_text(yaml.safe_dump(sweep, sort_keys=False))
    run = ["table", "--recipe", str(tmp_path / "sweep.yaml"), "--data-dir"]
    run += [str(SAMPLES / "wnut17"), "--output-dir", str(tmp_path / "out")]
    assert main(run) == 0, capsys.readouterr().err
    tuned, features = json.loads((tmp_path / "out" / "results.json").read_text())
    assert tuned["point"] == {"freeze": None}
    assert tuned["config"]["overrides"] == TINY["overrides"]
    assert features["config"]["overrides"] == {**TINY["overrides"], "decoder": "blstm"}
    config = features["config"]
    assert (config["freeze"], config["layer"]) == ("encoder", "all")
    assert config["combine"] == "weighted_sum"
    assert features["learning_rate"] == 3e-3
    table = (tmp_path / "out" / "table.md").read_text().splitlines()
    # Fine-tuning is the first row.
    assert table[2].startswith("| tiny-freeze=None | `bert_tiny` |")
    assert "-layer=all-combine=weighted_sum | `bert_tiny` |" in table[3]
    assert not (tmp_path / "out" / "sweep.png").exists()


def test_grids_as_flags():
    words = ["freeze=null", "or", "layer=0,[-2,-1],all", "overrides.decoder=blstm"]
    grid = FLAGS.instance_from_str(words)
    assert grid == [
        {"freeze": [None]},
        {"layer": [0, [-2, -1], "all"], "overrides.decoder": ["blstm"]},
    ]
    assert len(grid_points(grid)) == 4
    assert FLAGS.instance_from_str(FLAGS.str_from_instance(grid)) == grid
    one = FLAGS.instance_from_str(["epochs=1,2"])
    assert one == {"epochs": [1, 2]}
    assert FLAGS.str_from_instance(one) == ["epochs=1,2"]


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ([{"epochs": [1, 2]}, {"epochs": [2]}], "Received twice: epochs=2. Leave one"),
        ([{}, {}], "Received twice: no option"),
        ([{"layer": ["last"]}], "`layer` must be of type int | 'all'"),
        ([{"epochs": [1]}, {"epoch": [1]}], "unknown key 'epoch'. Did you mean"),
    ],
)
def test_wrong_grids_are_told(grid, message):
    with pytest.raises(ValueError) as error:
        check_grid(grid)
    assert message in str(error.value)
