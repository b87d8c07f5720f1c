"""The README's way from a corpus to a task: `recbert pretrain`, `recbert finetune`."""

import json

import pytest
from toy_texts import write_corpus, write_glue_task

from keras_recbert.cli import main


@pytest.mark.slow
def test_a_preset_of_short_rows_needs_no_other_option(tmp_path, capsys):
    corpus, run = write_corpus(tmp_path), tmp_path / "pretrained"
    pretrain = f"pretrain --model swish_tiny --corpus {corpus} --steps 2 --batch-size 4"
    pretrain += f" --sequence-length 24 --output-dir {run}"
    assert main(pretrain.split()) == 0
    write_glue_task(tmp_path / "glue", "sst2")
    finetune = f"finetune --model swish_tiny --weights {run}/preset --task sst2"
    finetune += f" --data-dir {tmp_path}/glue --output-dir {tmp_path}/tuned --no-export"
    assert main([*finetune.split(), "--epochs", "1"]) == 0
    printed = capsys.readouterr().out
    assert "Rows have 24 word pieces" in printed
    rule = "from a preset of keras_recbert: learning rate 0.0003"
    assert printed.count(rule) == 1
    results = json.loads((tmp_path / "tuned" / "results.json").read_text())
    assert (results["learning_rate"], results["pooling"]) == (3e-4, "mean")
