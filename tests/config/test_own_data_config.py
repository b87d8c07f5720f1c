"""Options of a table of one's own: what goes together, and what does not."""

import pytest

from keras_recbert.cli.arguments import config_from
from keras_recbert.cli.training import finetune
from keras_recbert.config import FineTuningConfig


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"train": "a.csv", "data_dir": "d"}, "both train='a.csv' and data_dir='d'"),
        ({"train": "a.csv", "tfds": True}, "both train='a.csv' and tfds=True"),
        (
            {"train": "a.csv", "task": "sst2"},
            "must be classifier, multilabel_classifier or regressor; of a file in col",
        ),
        ({"text_column": "a"}, "`text_column` needs a table of your own.*--train FILE"),
        ({"label_column": "a", "data_dir": "d"}, "`label_column` needs a table"),
        ({"validation": "a.csv"}, "`validation` needs a table"),
        ({"test": "a.csv"}, "`test` needs a table"),
        ({"encoding": "utf-8"}, "`encoding` needs a table"),
        ({"validation_fraction": 0.0}, "must be above 0 and below 1"),
        ({"tuning_fraction": 1.0}, "`tuning_fraction` must be above 0 and below 1"),
        (
            {"train": "a.csv", "tuning_fraction": 0.2},
            "of a data set. Received: tuning_fraction=0.2, train='a.csv'",
        ),
        ({"task": "classifier"}, "`task` needs a table"),
        (
            {"train": "a.csv", "validation": "b.csv", "validation_fraction": 0.2},
            "both validation='b.csv' and validation_fraction=0.2",
        ),
        ({"train": "a", "validation_fraction": 1.0}, "must be above 0 and below 1"),
        ({"train": "a", "text_column": ["a", "b", "c"]}, "one column, or two of pairs"),
        ({"train": "a", "text_column": []}, "one column, or two of pairs"),
        ({"train": "a", "text_column": "x", "label_column": "x"}, "is one thing"),
        ({"train": "a", "encoding": "utf-9"}, "`encoding` must be one that Python"),
        ({"train": "a", "encoding": "base64"}, "`encoding` must be one that Python"),
        ({"train": ""}, "`train` is an empty path"),
        ({"class_weights": "even"}, "`class_weights` must be balanced"),
        ({"early_stopping": 0}, "`early_stopping` must be at least 1"),
        ({"keep_epoch": "first"}, "`keep_epoch` must be best or last"),
        (
            {"keep_epoch": "last", "early_stopping": 2},
            "keep_epoch='last' leaves no choice. Received: early_stopping=2",
        ),
        ({"split_seed": -1}, "`split_seed` must be from 0"),
        (
            {"train": "a", "task": "regressor", "class_weights": "balanced"},
            "`class_weights` are for a classifier",
        ),
    ],
)
def test_options_that_do_not_go_together_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        FineTuningConfig(**options)


def test_a_task_that_is_not_named_is_that_of_the_data():
    assert FineTuningConfig().resolved().task == "sst2"
    assert FineTuningConfig(train="a.csv").resolved().task is None
    folder = FineTuningConfig(train="data/my.reviews.csv", seed=2).run_dir()
    assert folder == "runs/my-swish_small-seed2"
    # A run that was stopped before tables could be read names its task.
    stopped = {"task": "sst2", "data_dir": "d"}
    assert FineTuningConfig(data_dir="d").changes(stopped) == ""
    changes = FineTuningConfig(data_dir="d", task="rte").changes(stopped)
    assert changes == "task='sst2' (now 'rte')"


@pytest.mark.parametrize(
    ("words", "expected"), [(["review"], "review"), (["a", "b c"], ["a", "b c"])]
)
def test_the_command_takes_one_text_column_or_two(words, expected):
    argv = ["--text-column", *words, "--train", "a.csv", "--early-stopping", "2"]
    config = config_from(argv, finetune, FineTuningConfig)
    assert config.text_column == expected
    assert (config.train, config.early_stopping) == ("a.csv", 2)


def test_a_recipe_and_a_table_go_together(tmp_path):
    recipe = tmp_path / "mine.yaml"
    recipe.write_text("epochs: 7\ntext_column: [a, b]\ntrain: other.csv\n")
    argv = ["--recipe", str(recipe), "--train", "a.csv"]
    config = config_from(argv, finetune, FineTuningConfig)
    assert (config.epochs, config.text_column) == (7, ["a", "b"])
    assert (config.train, config.task) == ("a.csv", None)
