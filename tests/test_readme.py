"""README and docs tell the truth: their code runs, their commands are real."""

import functools
import re
import shlex

import pytest
import tyro
from docs_pages import PAGES, README, ROOT, blocks, shell_commands
from registries import registries_kept
from toy_texts import tiny_model

import keras_recbert
from keras_recbert.cli import COMMANDS, CONFIGS, with_config
from keras_recbert.cli.extensions import import_extensions
from keras_recbert.data import list_tasks
from keras_recbert.data.task_table import make_task_table
from keras_recbert.models.zoo_table import make_zoo_table


@pytest.mark.slow
def test_python_blocks_run_one_after_the_other(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    namespace = {}
    for index, block in enumerate(blocks("python")):
        exec(compile(block, "README.md", "exec"), namespace)
        if index == 0:
            logits = namespace["model"].predict(namespace["texts"], verbose=0)
            assert logits.argmax(1).tolist() == namespace["labels"]
    assert "label_names" in namespace["answer"]
    assert (tmp_path / "film_model" / "saved_model.pb").is_file()
    assert capsys.readouterr().out


# The others': tests above, tests/test_extending.py, tests/train/test_open_search.py.
WITH_PYTHON = [
    name
    for name, text in PAGES.items()
    if blocks("python", text) and name not in ("README.md", "extending.md", "sweeps.md")
]


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_PYTHON)
def test_python_blocks_of_the_docs_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if name in ("play.md", "serving.md"):  # the reader's, of the README
        tiny_model(label_names=["bad", "good"]).export_savedmodel("film_model")
    namespace = {}
    with registries_kept():
        for block in blocks("python", PAGES[name]):
            exec(compile(block, name, "exec"), namespace)
    assert namespace.keys() > {"__builtins__"}  # there was something to run


COMMAND_LINES = [
    pytest.param(line.removeprefix("recbert "), id=f"{name}: {line[:60]}")
    for name, text in PAGES.items()
    for line in dict.fromkeys(shell_commands(text))
    if line.startswith("recbert ")
]


@pytest.mark.parametrize("line", COMMAND_LINES)
def test_commands_are_as_the_command_line_takes_them(line, monkeypatch):
    """Parsed, with the recipe that is named; tests/test_docs_commands.py runs them."""
    monkeypatch.chdir(ROOT)
    line = re.sub(r"--import my_\w+\.py ", "", line)
    argv = import_extensions(shlex.split(line))
    if argv[0] in CONFIGS:
        with_config(argv)
        return
    called = []

    def spy(command):
        @functools.wraps(command)
        def run(*args, **kwargs):
            called.append(command)

        return run

    tyro.extras.subcommand_cli_from_dict(
        {name: spy(command) for name, command in COMMANDS.items()}, args=argv
    )
    assert called == [COMMANDS[argv[0]]]


def test_there_are_commands():
    assert len(COMMAND_LINES) > 20


def test_commands_of_the_table_are_all_commands():
    rows = re.findall(r"^\| `recbert ([-\w]+)", PAGES["commands.md"], re.MULTILINE)
    assert set(rows) == set(COMMANDS)


def test_links_lead_somewhere():
    for name, text in PAGES.items():
        folder = ROOT if (ROOT / name).is_file() else ROOT / "docs"
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
            assert (folder / target).exists(), f"{name} links to {target}"


def test_the_readme_is_short():
    assert len(README.splitlines()) < 170


def test_ten_lines_are_ten_lines():
    code = [line for line in blocks("python")[0].splitlines() if line.strip()]
    assert len(code) <= 11  # one call stands on two lines


def test_ci_runs_the_test_line():
    (line,) = [b.strip() for b in blocks("bash") if " && pytest " in b]
    assert line in (ROOT / ".ci" / "run").read_text().splitlines()


def test_the_zoo_is_that_of_the_cards():
    assert PAGES["zoo.md"].endswith(make_zoo_table(keras_recbert.list_models()))


def test_the_data_sets_are_the_registered_ones():
    assert PAGES["tasks.md"].endswith("\n\n" + make_task_table(list_tasks()))
