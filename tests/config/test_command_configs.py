"""Options of commands from a recipe, from flags, and from both."""

import dataclasses
import re

import pytest

from keras_recbert.cli import COMMANDS, CONFIGS
from keras_recbert.cli.arguments import config_from
from keras_recbert.cli.command_line import SUBCOMMANDS
from keras_recbert.config import (
    BenchmarkConfig,
    PredictConfig,
    PrepareConfig,
    TableConfig,
)

SUBCOMMAND_CONFIGS = [config for _, config in SUBCOMMANDS.values()]


def parsed(command, *argv):
    return config_from([*map(str, argv)], COMMANDS[command], CONFIGS[command])


@pytest.mark.parametrize("cls", [*CONFIGS.values(), *SUBCOMMAND_CONFIGS])
def test_each_option_has_a_line_in_the_docs(cls):
    # A config that is another one with more options documents these alone.
    docs = [
        one.__doc__ for one in reversed(cls.__mro__) if dataclasses.is_dataclass(one)
    ]
    pattern = re.compile(r"^        (\w+): ", re.MULTILINE)
    documented = [name for doc in docs for name in pattern.findall(doc)]
    assert documented == [field.name for field in dataclasses.fields(cls)]


def test_flags_alone():
    config = parsed("prepare", "a.txt", "b.txt", "--output-dir", "out")
    assert config == PrepareConfig(["a.txt", "b.txt"], "out")
    config = parsed("predict", "saved", "a text", "", "--pairs")
    assert config == PredictConfig("saved", ["a text", ""], pairs=True)
    assert parsed("benchmark") == BenchmarkConfig()
    config = parsed("table", "a.yaml", "--seeds", "3", "4", "--test", "books", "DIR")
    assert config == TableConfig(["a.yaml"], test={"books": "DIR"}, seeds=[3, 4])


def test_flags_replace_what_a_recipe_says(tmp_path):
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("output_dir: out\nvocabulary_size: 9\ndocuments: files\n")
    config = parsed("prepare", "a.txt", "--recipe", recipe, "--vocabulary-size", 7)
    expected = PrepareConfig(["a.txt"], "out", vocabulary_size=7, documents="files")
    assert config == expected
    recipe.write_text("inputs: [a.txt]\noutput_dir: out\n")
    assert parsed("prepare", "--recipe", recipe) == PrepareConfig(["a.txt"], "out")


def test_what_is_missing_is_told(capsys):
    with pytest.raises(SystemExit):
        parsed("prepare", "a.txt")
    assert "output-dir" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "inputs: [a.txt]\noutput: b\n",
            "unknown key 'output'. Did you mean 'output_d",
        ),
        ("format: pdf\n", "`format` must be of type .*text.*jsonl.*Received: 'pdf'"),
        ("num_shards: many\n", "`num_shards` must be of type int. Received: 'many'"),
        ("lowercase: 1\n", "`lowercase` must be of type bool. Received: 1"),
        ("inputs: [1]\n", "`inputs` must be of type list.str.. Received: .1."),
        ("inputs: a.txt\n", "`inputs` must be of type list.* Received: 'a.txt'"),
    ],
)
def test_a_recipe_that_does_not_fit(tmp_path, text, message):
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(text)
    with pytest.raises(ValueError, match=f"recipe.yaml: {message}"):
        parsed("prepare", "--recipe", recipe)


@pytest.mark.parametrize(
    ("command", "argv", "name"),
    [
        ("prepare", ("", "--output-dir", "out"), "inputs"),
        ("prepare", ("a.txt", "--output-dir", ""), "output_dir"),
        ("predict", ("", "a text"), "model"),
        ("table", ("a.yaml", "--test", "books", ""), "test"),
        ("benchmark", ("--torch-python", ""), "torch_python"),
    ],
)
def test_empty_paths_are_refused(command, argv, name):
    with pytest.raises(ValueError, match=f"`{name}` is empty. Expected a path"):
        parsed(command, *argv)
