"""The README tells the truth: its code runs, its test line is CI's, its table fits."""

import pathlib
import re

import keras_recbert

ROOT = pathlib.Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


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


def test_ten_lines_are_ten_lines():
    code = [line for line in blocks("python")[0].splitlines() if line.strip()]
    assert len(code) <= 11  # one call stands on two lines


def test_ci_runs_the_test_line():
    (line,) = [b.strip() for b in blocks("bash") if " && pytest " in b]
    assert line in (ROOT / ".ci" / "run").read_text().splitlines()


def test_table_lists_every_model_with_its_count():
    section = README.partition("## The zoo")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| ([\d,]+) \|", section, re.MULTILINE))
    assert rows == {
        name: f"{keras_recbert.get_card(name).num_parameters:,}"
        for name in keras_recbert.list_models()
    }


def test_table_shows_what_the_cards_say_was_measured():
    section = README.partition("## The zoo")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` .*\| ([^|]+) \|$", section, re.MULTILINE)
    shown = {name: re.findall(r"[-\w]+ [\d.]+", last) for name, last in rows}
    for name in keras_recbert.list_models():
        measured = keras_recbert.get_card(name).measured
        short = [
            f"{task.partition(' ')[0]} {score}" for task, score in measured.items()
        ]
        assert shown[name] == short
    assert shown["bert_minilm"]
