"""Commands that train and score: quickstart, finetune, distill, pretrain, evaluate."""

import pathlib
from typing import Annotated

from tyro.conf import Positional, arg

from keras_recbert.config import (
    DistillationConfig,
    FineTuningConfig,
    PretrainingConfig,
)
from keras_recbert.core.checks import check_seed


def quickstart(
    ask: Annotated[Positional[list[str]], arg(metavar="[SENTENCE ...]")] = [],  # noqa: B006
    model: str = "swish_tiny",
    output_dir: str = "runs/quickstart",
    seed: int = 0,
    play: bool = False,
):
    """Trains, scores, exports and asks a small model on text that is here already.

    Args:
        ask: Sentences to answer at the end.
        model: Name of the encoder, see `recbert list`.
        output_dir: Folder for everything it writes.
        seed: Seed of everything.
        play: Serve the page of `recbert play` at the end, until Ctrl-C.
    """
    check_seed(seed)  # before TensorFlow, which takes seconds
    from keras_recbert.train.quickstart import quickstart

    if not play:
        quickstart(model, ask, output_dir, seed)
        return
    from keras_recbert.server import run

    run.check_address()  # before minutes of training
    quickstart(model, ask, output_dir, seed)
    run.play(output_dir)


def finetune(config: Annotated[FineTuningConfig, arg(name="")]):
    """Trains a model on a table of your own or a data set, scores it, exports it.

    `--recipe FILE`, or FILE as the first word, takes the options from a YAML file;
    options beside it replace the file's. The same command resumes a run that was
    stopped.
    """
    from keras_recbert.train.fine_tuning import fine_tune

    _, results = fine_tune(config)
    _print_results(config, results)


def distill(config: Annotated[DistillationConfig, arg(name="")]):
    """Trains a small student on the logits of a large teacher, scores it, exports it.

    The teacher scores the texts of a table or a data set, texts without labels, and
    texts that are made of them; the student learns these logits. `--recipe FILE`, or
    FILE as the first word, takes the options from a YAML file; options beside it
    replace the file's. The same command resumes a run that was stopped.
    """
    from keras_recbert.train.distillation import distill

    _, results = distill(config)
    _print_results(config, results)


def average(
    runs: Annotated[Positional[list[str]], arg(metavar="RUN RUN [RUN ...]")],
    output_dir: str,
    export: bool = True,
    overwrite: bool = False,
):
    """Averages the weights of runs that differ in their seeds, and scores the mean.

    It often scores better than each of them, at the cost of one (model soups, Wortsman
    et al. 2022).

    Args:
        runs: Output folders of recbert finetune or distill that started from the same
            weights, with the same options but for the seed.
        output_dir: Folder for everything this writes.
        export: Write a SavedModel into it.
        overwrite: Replace what is in the output folder of another average.
    """
    from keras_recbert.train.averaging import average

    _, results = average(runs, output_dir, export, overwrite)
    main = results["main_score"]
    for member in results["averaged"]:
        print(f"seed {member['seed']}: {main.replace('_', ' ')} {member[main]:.4f}")
    for name, score in results["scores"].items():
        print(f"{name.replace('_', ' ')}: {score:.4f}")
    print(
        f"The mean of {len(runs)} runs. Everything is in {output_dir}/ (results.json, "
        f"model.keras{', savedmodel/' if export else ''}{_reports(output_dir)})."
    )


def _print_results(config, results):
    """Prints scores, time and place of a finished run."""
    for name, score in results["scores"].items():
        print(f"{name.replace('_', ' ')}: {score:.4f}")
    print(
        f"{config.keep_epoch} epoch {results['best_epoch']} of "
        f"{len(results['history']['loss'])}, "
        f"{results['seconds'] / 60:.1f} minutes of training on "
        f"{results['device']}. Everything is in {config.run_dir()}/ (results.json, "
        f"learning_curve.png, model.keras{', savedmodel/' if config.export else ''}"
        f"{_reports(config.run_dir())})."
    )


def _reports(folder):
    """What a run wrote on its predictions, as the end of a list."""
    names = ("report_validation.md", "report_test.md", "predictions.csv")
    return "".join(f", {n}" for n in names if (pathlib.Path(folder) / n).exists())


def pretrain(config: Annotated[PretrainingConfig, arg(name="")]):
    """Pre-trains an encoder on a corpus that `recbert prepare` wrote.

    `--recipe FILE`, or FILE as the first word, takes the options from a YAML file;
    options beside it replace the file's, but for entries of objectives and overrides
    that the file lacks: write those into it. The same command resumes a run that was
    stopped.
    """
    from keras_recbert.train.pretraining_run import pretrain

    _, results = pretrain(config)
    if results is None:
        print("Done. The results are with the chief.")
        return
    for name, score in results["scores"].items():
        print(f"{name.replace('_', ' ')}: {score:.4f}")
    print(
        f"{config.steps:,} steps, {results['tokens'] / 1e6:,.1f} M tokens, "
        f"{results['seconds'] / 60:.1f} minutes of training on {results['device']}. "
        f"Everything is in {config.run_dir()}/ (results.json, pretraining_curves.png, "
        "preset/)."
    )


def evaluate(
    model: Positional[str],
    corpora: dict[str, str],
    sequence_length: int | None = None,
    num_examples: int | None = None,
    batch_size: int = 64,
    seed: int = 0,
):
    """Scores a pre-trained model on its objectives: perplexity, accuracy.

    Args:
        model: The model.keras of `recbert pretrain`.
        corpora: Names of folders of `recbert prepare`, such as books DIR.
        sequence_length: Word pieces of a row; by default all positions of the model.
        num_examples: Examples of each corpus, spread over it; by default all.
        batch_size: Examples at a time.
        seed: Seed of masks, swaps and pairs.
    """
    check_seed(seed)
    from keras_recbert.train.pretraining_scores import score_pretrained

    scores = score_pretrained(
        model, corpora, sequence_length, num_examples, batch_size, seed
    )
    for name, score in scores.items():
        print(f"{name.removeprefix('test_').replace('_', ' ')}: {score:.4f}")
