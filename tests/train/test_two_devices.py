"""Commands on two devices equal those on one: all that a run writes, to 1e-5.

Dropout is 0: each device draws masks of its own. One run of each command is killed on
two devices and started again.
"""

import itertools
import json
import pathlib
import re
import shutil
import time

import numpy as np
import pytest
import yaml
from own_tables import write_rows
from processes import fork
from toy_questions import write_quiz
from toy_texts import reviews, write_arc, write_corpus, write_glue_task
from two_devices_script import run_recipes

import keras_recbert

pytestmark = pytest.mark.slow

SAMPLES = pathlib.Path(__file__).parents[1] / "data" / "samples"
TIMED = ("seconds", "tokens_per_second", "seconds_per_step")

PRETRAINING = {
    "model": "bert_tiny",
    "steps": 8,
    "checkpoint_every": 4,
    "batch_size": 8,
    "sequence_length": 16,
    "learning_rate": 3e-3,
    "clipnorm": 0.3,  # below most norms, so that clipping acts
    "weight_decay": 0.1,
    "dropout": 0.0,
    "validation_examples": 11,  # of which the devices share 10
    "overrides": {"num_layers": 2, "hidden_dim": 16, "num_heads": 2},
}
ONE_BLOCK = {"num_layers": 1, "hidden_dim": 16, "num_heads": 2}
# All pairs of accumulation, average, gradient checkpointing, precision and freezing.
# Beside them each objective, at the last block and below, and each that reads another;
# all optimizers; recurrent blocks; long examples.
PRETRAINED = {
    "plain": {
        "objectives": {"masked_lm": None, "next_sentence": None},
        "optimizer": "adadelta",
        "learning_rate": 1.0,
        "long_sequence_length": 32,
        "long_fraction": 0.5,
        "long_batch_size": 4,
        "overrides": ONE_BLOCK,
    },
    "causal": {
        "objectives": {"causal_lm": None},
        "accumulation_steps": 2,
        "ema_momentum": 0.9,
        "gradient_checkpointing": True,
        "precision": "bfloat16",
        "overrides": {**ONE_BLOCK, "causal": True},
    },
    "frozen": {
        "objectives": {
            "masked_lm": {"concatenate": "cls"},
            "next_sentence": {"layer": 1, "freeze_at_step": 3},
            "bigram_shift": {"loss_weight": 0.5},
        },
        "ema_momentum": 0.9,
        "precision": "bfloat16",
    },
    "causal_frozen": {
        "objectives": {
            "causal_lm": None,
            "next_sentence": {"layer": 1, "freeze_at_step": 3},
        },
        "accumulation_steps": 2,
        "gradient_checkpointing": True,
        "amsgrad": True,
        "checkpoint_every": 2,
        "overrides": {**PRETRAINING["overrides"], "causal": True},
    },
    "patient": {
        "model": "swish_tiny",
        "objectives": {
            "masked_lm": {"concatenate": "next_sentence"},
            "next_sentence": {"layer": 1, "freeze_patience": 1},
        },
        "checkpoint_every": 2,
        "ema_momentum": 0.9,
        "gradient_checkpointing": True,
    },
    "patient_parts": {
        "model": "trans_blstm_tiny",
        "objectives": {
            "masked_lm": {"layer": 1, "unit": "whole_word"},
            "next_sentence": {"layer": 1, "freeze_patience": 1},
            "bigram_shift": None,
        },
        "checkpoint_every": 2,
        "accumulation_steps": 2,
        "precision": "bfloat16",
        "overrides": {**PRETRAINING["overrides"], "implementation": "loop"},
    },
}

FINE_TUNING = {
    "model": "bert_tiny",
    "task": "sst2",
    "vocabulary_size": 90,
    "epochs": 2,
    "batch_size": 7,  # and fewer where the texts of a length run out, down to 1
    "learning_rate": 5e-3,
    "weight_decay": 0.1,
    "dropout": 0.0,
    "max_sequence_length": 32,
    "export": False,
    "overrides": ONE_BLOCK,
}
# Two, three and no classes, pairs, all blocks and poolings, and the ways to train part
# of an encoder, or its parts at rates of their own.
FINE_TUNED = {
    "plain": {"export": True, "checkpoint_every": 2},
    # Of a table of a user: scores far from 0. Gradients are clipped here.
    "layers": {
        "model": "swish_tiny",
        "train": "numbers.csv",
        "freeze": 1,
        "layerwise_decay": 0.8,
        "gradient_checkpointing": True,
        "overrides": PRETRAINING["overrides"],
    },
    "adapters": {
        "model": "trans_blstm_tiny",
        "task": "rte",
        "lora_rank": 2,
        "pooling": "first",
    },
    "bfloat16": {
        "task": "mnli",
        "freeze": "embeddings",
        "layerwise_decay": 0.9,
        "gradient_checkpointing": True,
        "precision": "bfloat16",
    },
    # Another: classes that are not balanced.
    "weighted": {
        "train": "words.csv",
        "class_weights": "balanced",
        "early_stopping": 1,
        "epochs": 3,
    },
    # Several rows an example.
    "windows": {
        "task": "squad1",
        "max_sequence_length": 16,
        "overrides": {**FINE_TUNING["overrides"], "stride": 4, "decoder": "blstm"},
    },
    "words": {"task": "wnut17", "max_sequence_length": 12},
    "choices": {"task": "arc_challenge", "model": "swish_tiny"},  # 2 to 4 of a text
}

# A gradient computed in bfloat16 has 8 bits, also that of each half of a batch, so that
# the sum of the halves differs in the last of them: by 1 part in 256. Adam divides by
# the size of a gradient, so that where it is little more than rounding a weight moves
# this way or that by a part of a step; there are 8 of 3e-3 at most. Measured: 1e-3.
# What counts whole predictions may count one more or less.
BFLOAT16, COUNTED = 5e-3, ("_accuracy", "_auc", "accuracy")


def freezing(config):
    entry = config["objectives"].get("next_sentence") or {}
    return next((key for key in entry if key.startswith("freeze")), None)


def test_the_cases_cover_all_pairs():
    factors = [
        (
            config.get("accumulation_steps", 1),
            config.get("ema_momentum"),
            config.get("gradient_checkpointing", False),
            config.get("precision", "float32"),
            freezing(config),
        )
        for config in PRETRAINED.values()
    ]
    for one, other in itertools.combinations(zip(*factors, strict=True), 2):
        pairs = set(zip(one, other, strict=True))
        assert pairs == set(itertools.product(set(one), set(other)))


def run(folder, command, recipes, killed):
    """Runs recipes in one process, one of them killed on two devices before."""
    for name, recipe in recipes.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(recipe))
    kill_at_checkpoint(folder, command, killed)
    log = folder / "log.txt"
    process = fork(run_recipes, (folder, command, list(recipes)), log)
    process.join(1800)
    output = log.read_text()
    assert process.exitcode == 0, output[-4000:]
    (resumed,) = re.findall(r"== (.*)\n(?:(?!== ).*\n)*?Resuming after step ", output)
    assert resumed == f"{killed} mirrored"


def kill_at_checkpoint(folder, command, name):
    """Starts a recipe on two devices; kills it once it has a checkpoint."""
    log, run = folder / "killed.txt", folder / name / "mirrored"
    process = fork(run_recipes, (folder, command, [name], ["mirrored"]), log)
    while not list((run / "checkpoints").glob("step_*")):
        assert process.is_alive(), log.read_text()[-4000:]
        time.sleep(0.01)
    process.kill()
    process.join()
    assert not (run / "results.json").exists()


def weights_of(run):
    model = keras_recbert.load(run / "model.keras")
    return {weight.path: weight.numpy() for weight in model.weights}


def results_of(run):
    return json.loads((run / "results.json").read_text())


def largest(one, other):
    """Largest difference of lists of numbers, and how large the numbers are."""
    one, other = np.asarray(one, "float64"), np.asarray(other, "float64")
    assert one.shape == other.shape
    return np.abs(one - other).max() / max(1.0, np.abs(one).max())


def check_equal(folder, in_bfloat16):
    """Checks that a run on two devices is that on one: weights, scores, losses."""
    found = differences(folder)
    if in_bfloat16:
        found = {k: value for k, value in found.items() if not k.endswith(COUNTED)}
    worst = max(found, key=found.get)
    print(f"{folder.name}: {worst} differs by {found[worst]:.1e}")
    assert found[worst] <= (BFLOAT16 if in_bfloat16 else 1e-5)


def differences(folder):
    """Largest differences of two runs: of weights, of scores and of losses."""
    one, two = folder / "one_device", folder / "mirrored"
    weights, others = weights_of(one), weights_of(two)
    assert weights.keys() == others.keys()
    found = {path: largest(weights[path], others[path]) for path in weights}
    results, others = results_of(one), results_of(two)
    assert results["scores"].keys() == others["scores"].keys()
    assert results.get("frozen_at") == others.get("frozen_at")
    for key, score in results["scores"].items():
        found[f"final {key}"] = largest(score, others["scores"][key])
    assert results["history"].keys() == others["history"].keys()
    for key, values in results["history"].items():
        if key not in TIMED:
            found[key] = largest(values, others["history"][key])
    return found


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pretrained")
    corpus = write_corpus(folder, num_documents=12)
    shared = {**PRETRAINING, "corpus": corpus, "validation": {"toy": corpus}}
    cases = {name: {**shared, **case} for name, case in PRETRAINED.items()}
    run(folder, "pretrain", cases, killed="causal_frozen")
    return folder


@pytest.mark.parametrize("name", PRETRAINED)
def test_pretraining_on_two_devices_equals_one(pretrained, name):
    check_equal(pretrained / name, PRETRAINED[name].get("precision") == "bfloat16")


@pytest.fixture(scope="module")
def fine_tuned(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fine_tuned")
    write_tables(folder)
    cases = {name: {**FINE_TUNING, **case} for name, case in FINE_TUNED.items()}
    for case in cases.values():
        if "train" in case:
            case |= {"task": None, "train": str(folder / case["train"])}
        else:
            case["data_dir"] = str(folder / "glue")
    write_quiz(folder / "glue", number=15)
    shutil.copytree(SAMPLES / "wnut17", folder / "glue", dirs_exist_ok=True)
    others = {None, "arc_challenge", "squad1", "wnut17"}
    for task in {case["task"] for case in cases.values()} - others:
        write_glue_task(folder / "glue", task, num_validation=15)
    write_arc(folder / "glue")
    run(folder, "finetune", cases, killed="plain")
    return folder


def write_tables(folder):
    """Writes words.csv, a third of whose labels are good, and numbers.csv."""
    texts, labels = reviews(54)
    rows = list(zip(texts, labels, strict=True))
    rows = [row for index, row in enumerate(rows) if index % 4 != 1]
    words = [(text, ("bad", "good")[label]) for text, label in rows]
    numbers = [(text, 40.5 + 20 * label) for text, label in rows]
    for name, table in (("words", words), ("numbers", numbers)):
        write_rows(folder / f"{name}.csv", ("text", "label"), table)


@pytest.mark.parametrize("name", FINE_TUNED)
def test_fine_tuning_on_two_devices_equals_one(fine_tuned, name):
    check_equal(fine_tuned / name, FINE_TUNED[name].get("precision") == "bfloat16")
