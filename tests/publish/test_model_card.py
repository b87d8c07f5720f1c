"""Cards of records as runs write them; tests/publish/test_push.py has a whole run."""

import pytest
import yaml
from huggingface_hub import ModelCard

from keras_recbert.publish.model_card import model_card

CARD = {
    "name": "swish_tiny",
    "class": "TextModel",
    "sizes": {"num_layers": 2, "hidden_dim": 18, "pretrained_heads": None},
    "num_parameters": 12345,
    "metrics": {},
    "source": None,
    "license": None,
    "versions": {"keras_recbert": "0.1.0"},
    "date": "2026-01-02T03:04:05+00:00",
}
ENCODER = {"class": "RecBertEncoder", "arguments": {}}
SEVERAL = {
    "sst2": {"task": "classifier", "num_classes": 2},
    "stsb": {"task": "regressor"},
}
RESULTS = {
    "kind": "fine-tuning",
    "task": "sst2+stsb",
    "scores": {
        "validation_loss": 0.5,
        "validation_sst2_accuracy": 0.875,
        "validation_stsb_pearson": 0.25,
        "validation_mean": 0.5,
    },
    "validation_examples": {"sst2 validation": 40, "stsb validation": 1500},
    "notes": ["sst2: few examples."],
    "config": {
        "task": ["sst2", "stsb"],
        "seed": 3,
        "weights": "hf://jane/base@v1",
        "vocabulary": "/home/jane/vocab.txt",
        "data_dir": "/home/jane/glue",
        "overrides": {"paths": ["/home/jane/a|b", 1.5]},
        "freeze": None,
    },
    "device": "CPU, 2 cores, x86_64",
}


def config(head=None, **arguments):
    """`config.json` of a model with a head, or of an encoder."""
    if head is None:
        return {**ENCODER, "encoder": None, "preprocessor": {}}
    arguments = {"head": head, **arguments}
    described = {"class": "TextModel", "arguments": arguments, "encoder": ENCODER}
    return {**described, "preprocessor": {}}


def index(text):
    return {
        (one.dataset_type, one.metric_type): (one.metric_value, one.task_type)
        for one in ModelCard(text).data.eval_results
    }


def test_several_heads_have_their_own_scores():
    card = {**CARD, "source": "hf://jane/base@0123456"}  # what v1 was
    text = model_card(card, config(SEVERAL), RESULTS, "hf://jane/several")
    assert index(text) == {
        ("sst2", "accuracy"): (0.875, "text-classification"),
        ("stsb", "pearson"): (0.25, "regressor"),
    }
    assert ModelCard(text).data.base_model == "jane/base"
    assert "# several\n" in text
    assert "| head stsb | regressor |" in text
    assert "sst2 (GLUE (Wang et al. 2019), SST-2); stsb (GLUE" in text
    assert "examples: 40 of sst2 validation, 1,500 of stsb validation." in text
    assert "- sst2: few examples." in text
    assert "| started from | hf://jane/base@0123456 |" in text


@pytest.mark.parametrize(
    ("config_of_run", "licence"),
    [
        ({"task": ["sst2", "stsb"]}, "sst2: not stated; stsb: scores CC BY-SA 4.0, "),
        ({"task": "squad2"}, "CC BY-SA 4.0 |"),
        ({"task": "sst2"}, "not stated |"),
        ({"task": "squad2", "train": "mine.json"}, "not stated |"),  # the user's file
    ],
)
def test_the_licence_of_the_data_is_that_of_its_publisher(config_of_run, licence):
    tasks = config_of_run["task"]
    task = tasks if isinstance(tasks, str) else "+".join(tasks)
    results = {**RESULTS, "task": task, "config": config_of_run}
    text = model_card(CARD, config(SEVERAL), results, "hf://jane/several")
    assert f"| licence of the data | {licence}" in text
    text = model_card(CARD, config(SEVERAL), results, "hf://jane/several", "MIT")
    assert "| licence of the data | MIT |" in text


def test_options_are_a_recipe_without_folders():
    text = model_card(CARD, config(SEVERAL), RESULTS, "hf://jane/several")
    options = yaml.safe_load(text.partition("```yaml\n")[2].partition("```")[0])
    assert options == {
        "task": ["sst2", "stsb"],
        "seed": 3,
        "weights": "hf://jane/base@v1",
        "vocabulary": "vocab.txt",
        "overrides": {"paths": ["a|b", 1.5]},
    }
    assert "/home" not in text


def test_splits_whose_names_begin_alike_are_told_apart():
    results = {**RESULTS, "task": "mnli", "config": {"task": "mnli"}}
    results["validation_examples"] = {"validation": 1, "validation_matched": 2}
    results["scores"] = {
        "validation_matched_accuracy": 0.5,
        "validation_matched_teacher_accuracy": 0.9,  # of another model
    }
    text = model_card(CARD, config({"task": "classifier"}), results, "hf://jane/mnli")
    (score,) = ModelCard(text).data.eval_results
    assert score.dataset_split == "validation_matched"
    assert score.metric_type == "accuracy"
    assert "| validation_matched_teacher_accuracy | 0.9 |" in text


@pytest.mark.parametrize("metrics", [{}, {"scores": {"val_loss": 4.5}, "seed": 1}])
def test_an_encoder_says_what_is_known_and_what_is_not(metrics):
    card = {**CARD, "class": "RecBertEncoder", "metrics": metrics}
    text = model_card(card, config(), None, "hf://jane/encoder")
    assert ModelCard(text).data.eval_results is None
    assert "| started from | not stated |" in text
    assert "| licence of the weights | not stated |" in text
    assert 'print(model.encode(["a text"]))' in text
    assert "--model swish_tiny --weights hf://jane/encoder" in text
    if metrics:
        assert "Of one run, seed 1, on a device that is not stated." in text
        assert "| val_loss | 4.5 |" in text
        assert "| learned from | not stated |" in text
    else:
        assert "Not stated: no results of a run" in text
        assert "None are recorded." in text


def test_a_pre_training_names_its_corpus_and_no_folder():
    results = {
        "kind": "pre-training",
        "scores": {"val_books_masked_lm_accuracy": 0.25},
        "config": {"corpus": "/home/jane/books", "seed": 0, "weights": None},
        "tokens": 1024,
        "steps": 8,
    }
    text = model_card(CARD, config(), results, "hf://jane/encoder")
    assert "| learned from | books |" in text
    assert "| word pieces | 1,024 |" in text
    assert ModelCard(text).data.eval_results is None
