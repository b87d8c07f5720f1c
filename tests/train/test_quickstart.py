import json
import subprocess
import sys

import pytest

from keras_recbert.train.quickstart import DEFAULT_QUESTIONS, quickstart


def test_a_foreign_folder_is_refused_and_kept(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(
        FileExistsError, match="no quick start wrote: thesis.tex. .*--output-dir"
    ):
        quickstart("swish_tiny", [], str(tmp_path), seed=0)
    # The vocabulary alone does not make it ours.
    (tmp_path / "vocab.txt").write_text("[PAD]\n")
    with pytest.raises(FileExistsError, match="no quick start wrote"):
        quickstart("swish_tiny", [], str(tmp_path), seed=0)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_a_file_in_the_way_is_told(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("mine")
    with pytest.raises(FileExistsError, match="notes.txt .*--output-dir"):
        quickstart("swish_tiny", [], str(path), seed=0)
    assert path.read_text() == "mine"


def test_an_unknown_model_is_told_at_once(tmp_path):
    with pytest.raises(ValueError, match="'swish_tyny'. Did you mean 'swish_tiny'"):
        quickstart("swish_tyny", [], str(tmp_path / "new"), seed=0)
    assert not (tmp_path / "new").exists()


def test_default_questions_are_sentences():
    assert len(DEFAULT_QUESTIONS) >= 3
    assert all(question.endswith(".") for question in DEFAULT_QUESTIONS)


@pytest.mark.slow
def test_quick_start_as_a_user_types_it(tmp_path):
    folder = tmp_path / "quickstart"
    sentence = "Return the number of items in the queue."
    result = subprocess.run(
        [
            *(sys.executable, "-m", "keras_recbert.cli", "quickstart", sentence),
            *("--output-dir", str(folder)),
        ],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    print(result.stdout)
    results = json.loads((folder / "results.json").read_text())
    accuracy = results["scores"]["validation_accuracy"]
    lines = result.stdout.splitlines()
    shown = {
        line.split("%")[0].rsplit(maxsplit=1)[0].strip(): float(line.split()[-3])
        for line in lines
        if line.endswith("#") and "%" in line
    }
    assert set(shown) == {"majority", "bag of words", results["model"]}
    assert shown[results["model"]] == pytest.approx(100 * accuracy, abs=0.06)
    assert shown[results["model"]] > shown["majority"] + 5
    (answer,) = [line for line in lines if line.endswith(f"%  {sentence}")]
    labels = result.stdout.split("what does a sentence document: ")[1].split("?")[0]
    assert answer.split("  ")[0].strip() or answer.split()[0] in labels
    assert (folder / "savedmodel" / "saved_model.pb").is_file()
    assert (folder / "learning_curve.png").is_file()
    next_commands = [line for line in lines if line.startswith("  recbert ")]
    assert [line.split()[1] for line in next_commands] == [
        "predict",
        "play",
        "finetune",
        "list",
    ]
