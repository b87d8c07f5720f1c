"""From the text on this machine to a served model in one command."""

import pathlib
import sys
import time

from keras_recbert.config import FineTuningConfig
from keras_recbert.core.extras import check_installed
from keras_recbert.data.examples import Examples
from keras_recbert.data.python_docs import load_python_docs
from keras_recbert.data.task_spec import TaskSpec
from keras_recbert.models.registry import get_card
from keras_recbert.serving.answers import format_answers
from keras_recbert.serving.clean_process import ask_in_clean_process
from keras_recbert.train.baselines import bag_of_words_accuracy, majority_accuracy
from keras_recbert.train.run import open_run
from keras_recbert.train.run_data import RunData
from keras_recbert.train.training_run import FINE_TUNING, train

DEFAULT_QUESTIONS = (
    "Return the number of items in the queue.",
    "A lock that several threads may share.",
    "Utilities for reading and writing configuration files.",
    "The expression is evaluated once, when the function is called.",
)


def quickstart(model, questions, output_dir, seed):
    """Trains, scores, exports and asks a model; prints each step.

    The task is that of `keras_recbert.data.python_docs`: tell what a sentence
    documents.

    Args:
        model: str. Name of the encoder.
        questions: list of str, sentences to answer; a few of its own if empty.
        output_dir: str. Folder for everything that is written; replaced if a
            quick start wrote it before.
        seed: int.

    Returns:
        dict, the results with `baselines` and `answers` added.

    Raises:
        FileExistsError: if `output_dir` holds something else.
        ValueError: if the model is unknown or the seed out of range; before any work.
        ImportError: without what scores and draws; before any work.
    """
    start = time.perf_counter()
    get_card(model)
    check_installed("`recbert quickstart`", "train", "sklearn", "scipy", "matplotlib")
    if not output_dir:
        raise ValueError("`output_dir` is an empty path. Name a folder (--output-dir).")
    folder = _own_folder(output_dir)
    config = FineTuningConfig(
        model=model,
        task="python_docs",
        output_dir=str(folder),
        epochs=3,
        batch_size=64,
        learning_rate=1e-3,
        dropout=0.2,
        max_sequence_length=48,
        seed=seed,
        overwrite=True,
    )
    with open_run(config, FINE_TUNING) as run:
        baselines, results = _train(run)

    _step("Accuracy on the held-out packages and topics")
    scores = {**baselines, model: results["scores"]["validation_accuracy"]}
    for name, score in scores.items():
        print(f"{name:>20} {100 * score:5.1f} %  {'#' * round(40 * score)}")

    savedmodel = folder / "savedmodel"
    _step(f"Asking {savedmodel} in a fresh process, without this package")
    questions = list(questions) or list(DEFAULT_QUESTIONS)
    answers = ask_in_clean_process(savedmodel, {"text": questions})
    for line in format_answers([(text,) for text in questions], answers):
        print(line)

    print(
        f"\nDone in {(time.perf_counter() - start) / 60:.1f} minutes. "
        f"The learning curve: {folder / 'learning_curve.png'}\n\n"
        "Next:\n"
        f'  recbert predict {savedmodel} "Iterate over the lines of a file."\n'
        f"  recbert play {folder}\n"
        "  recbert finetune --task sst2 --data-dir GLUE_DIR --model swish_small\n"
        "  recbert list --params"
    )
    return {**results, "baselines": baselines, "answers": answers}


def _train(run):
    """Scores of the baselines, and results of the model."""
    _step("Reading the documentation of Python and its packages on this machine")
    docs = load_python_docs(seed=run.config.seed, progress=_show_progress)
    names = ", ".join(docs.label_names)
    packages = docs.held_out["packages"]
    print(
        f"{len(docs.train.texts):,} sentences to learn from, "
        f"{len(docs.validation.texts):,} held out ({len(packages)} whole packages, "
        f"such as {', '.join(packages[:3])}, and {len(docs.held_out['topics'])} topics "
        f"of the reference manual).\nThe task: what does a sentence document: {names}?"
    )
    baselines = {
        "majority": majority_accuracy(docs.train.labels, docs.validation.labels),
        "bag of words": bag_of_words_accuracy(
            docs.train.texts,
            docs.train.labels,
            docs.validation.texts,
            docs.validation.labels,
        ),
    }

    _step(f"Training {run.config.model}")
    task = TaskSpec(
        name="python_docs",
        fields=("text",),
        head_arguments={"label_names": docs.label_names},
        metrics=("accuracy",),
    )
    splits = [
        Examples({"text": split.texts}, {"label": split.labels})
        for split in (docs.train, docs.validation)
    ]
    data = RunData(task, splits[0], {"validation": splits[1]})
    _, results = train(run, data, corpus=docs.corpus)
    return baselines, results


def _own_folder(output_dir):
    """Path of the output folder, checked to hold nothing but an earlier quick start."""
    folder = pathlib.Path(output_dir)
    if not folder.exists():
        return folder
    found = {path.name for path in folder.iterdir()} if folder.is_dir() else {"a file"}
    foreign = sorted(name for name in found - set(FINE_TUNING.files) if name[0] != ".")
    if foreign:
        raise FileExistsError(
            f"{folder} holds something that no quick start wrote: {foreign[0]}. Choose "
            "another folder with --output-dir."
        )
    return folder


def _step(text):
    print(f"\n== {text}", flush=True)


def _show_progress(done, total, package):
    if sys.stdout.isatty():
        end = "\n" if done == total else ""
        print(f"\r{done:>4} of {total} packages  {package[:40]:<40}", end=end)
        sys.stdout.flush()
