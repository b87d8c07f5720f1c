"""The command `recbert`."""

import argparse
import inspect
import itertools
import os
import shlex
import signal
import sys
from typing import Annotated, Literal

import tyro
from tyro.conf import Positional, arg

import keras_recbert
from keras_recbert.config import FineTuningConfig, PretrainingConfig, read_recipe


def list_models(pattern: Positional[str] = "*", params: bool = False):
    """Lists the models of the zoo.

    Args:
        pattern: Shell pattern of names, such as '*blstm*'.
        params: Count the parameters of each model and show them beside the paper's.
    """
    names = keras_recbert.list_models(pattern)
    if not names:
        raise ValueError(f"No model matches {pattern!r}. `recbert list` shows all.")
    width = max(map(len, names))
    header = f"{'parameters':>11}  published  " if params else ""
    print(f"{'model':<{width}}  {header}source")
    for name in names:
        card = keras_recbert.get_card(name)
        counts = ""
        if params:
            published = card.published_parameters or ""
            counts = f"{keras_recbert.count_parameters(name):>11,}  {published:>9}  "
        paper = card.paper.partition(",")[0]
        print(f"{name:<{width}}  {counts}{paper}: {card.table}", flush=True)


def quickstart(
    ask: Annotated[Positional[list[str]], arg(metavar="[SENTENCE ...]")] = [],  # noqa: B006
    model: str = "swish_tiny",
    output_dir: str = "runs/quickstart",
    seed: int = 0,
):
    """Trains, scores, exports and asks a small model on text that is here already.

    Args:
        ask: Sentences to answer at the end.
        model: Name of the encoder, see `recbert list`.
        output_dir: Folder for everything it writes.
        seed: Seed of everything.
    """
    from keras_recbert.train.quickstart import quickstart

    quickstart(model, ask, output_dir, seed)


def finetune(config: Annotated[FineTuningConfig, arg(name="")]):
    """Trains a model on a GLUE task, scores it, exports it.

    `--recipe FILE` takes the options from a YAML file; options beside it replace
    the file's.
    """
    from keras_recbert.train.fine_tuning import fine_tune

    _, results = fine_tune(config)
    for name, score in results["scores"].items():
        print(f"{name.replace('_', ' ')}: {score:.4f}")
    print(
        f"best epoch {results['best_epoch']} of {config.epochs}, "
        f"{results['seconds'] / 60:.1f} minutes on {results['device']}. "
        f"Everything is in {config.run_dir()}/ (results.json, learning_curve.png, "
        f"model.keras{', savedmodel/' if config.export else ''})."
    )


def prepare(
    inputs: Annotated[Positional[list[str]], arg(metavar="INPUT [INPUT ...]")],
    output_dir: str,
    vocabulary: str | None = None,
    vocabulary_size: int | None = None,
    lowercase: bool = True,
    strip_accents: bool | None = None,
    format: Literal["text", "jsonl", "squad", "wikitext"] | None = None,
    documents: Literal["blocks", "files"] = "blocks",
    sentences: Literal["split", "lines"] = "split",
    text_field: str = "text",
    split: str = "train",
    tfds_data_dir: str | None = None,
    num_shards: int = 16,
    num_workers: int = 1,
    beam_options: str = "",
    overwrite: bool = False,
):
    """Cuts documents into word pieces and writes them as a corpus to pre-train on.

    Args:
        inputs: Files, folders, patterns, or tfds: and a name. Text (.txt), JSON lines
            (.jsonl), SQuAD (.json) and WikiText (.tokens), also .gz and .bz2.
        output_dir: Folder to write.
        vocabulary: A vocab.txt.
        vocabulary_size: Learn a vocabulary of so many pieces from the documents.
        lowercase: Lower-case the text and strip accents.
        strip_accents: By default as lowercase.
        format: What the files hold; by default their endings say it.
        documents: blocks, text files hold documents with blank lines between; or
            files, each is one.
        sentences: split lines into sentences, or take lines as sentences.
        text_field: Field of JSON lines or of a data set that holds the text.
        split: Split of a data set.
        tfds_data_dir: Where TensorFlow Datasets keeps its files.
        num_shards: Files to write.
        num_workers: Processes; the files are the same.
        beam_options: Options of Apache Beam, after an equals sign:
            --beam-options='--runner=FlinkRunner ...'.
        overwrite: Replace a corpus that is there.
    """
    from keras_recbert.data.prepare import prepare

    options = dict(locals())
    del options["prepare"]
    written = prepare(**options)
    for name, count in written["counts"].items():
        print(f"{name.replace('_', ' '):<17}{count:>15,}")
    measured = written["measured"]
    print(
        f"{measured['tokens_per_second']:,} word pieces a second, "
        f"{measured['seconds']:.1f} seconds. Train on it: recbert pretrain --corpus "
        f"{shlex.quote(output_dir)}"
    )


def pretrain(config: Annotated[PretrainingConfig, arg(name="")]):
    """Pre-trains an encoder on a corpus that `recbert prepare` wrote.

    `--recipe FILE` takes the options from a YAML file; options beside it replace
    the file's, but for entries of objectives and overrides that the file lacks: write
    those into it. The same command goes on with a run that was stopped.
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
        f"{results['seconds'] / 60:.1f} minutes on {results['device']}. Everything is "
        f"in {config.run_dir()}/ (results.json, pretraining_curves.png, preset/)."
    )


def pretrain_table(
    recipes: Annotated[Positional[list[str]], arg(metavar="RECIPE [RECIPE ...]")],
    corpus: str,
    validation: dict[str, str] | None = None,
    test: dict[str, str] | None = None,
    seeds: list[int] = [0, 1, 2],  # noqa: B006
    output_dir: str = "runs/pretraining",
    background: bool = False,
):
    """Pre-trains several recipes with several seeds, and writes a table of them.

    What is finished is not run again, and what was stopped goes on: run the same
    command again. Table and curves are written anew after each run.

    Args:
        recipes: YAML files, such as configs/pretraining/*.yaml.
        corpus: Folder written by `recbert prepare`.
        validation: Names of other prepared folders, such as books DIR; by default
            those of each recipe.
        test: Names of prepared folders that the models are scored on at the end, on
            the whole of each.
        seeds: Seeds of each recipe.
        output_dir: Folder of the runs, table.md and curves.png.
        background: Return at once; the output goes to log.txt in the folder.
    """
    from keras_recbert.train.pretraining_table import (
        plan_table,
        pretrain_table,
        run_in_background,
    )

    options = {"corpus": corpus, **_given(validation=validation)}
    if background:
        plan_table(recipes, seeds, output_dir, test, **options)
        arguments = ["pretrain-table", *recipes, "--corpus", corpus]
        for flag, folders in (("--validation", validation), ("--test", test)):
            if folders is not None:
                arguments += [flag, *itertools.chain(*folders.items())]
        arguments += ["--seeds", *map(str, seeds), "--output-dir", output_dir]
        pid, log = run_in_background(arguments, output_dir)
        print(f"Process {pid} is at work; its output goes to {log}. Stop: kill {pid}")
        return
    table = pretrain_table(recipes, seeds, output_dir, test, **options)
    print(f"Wrote {table} and curves.png beside it.")
    print(table.read_text(encoding="utf-8"))


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
    from keras_recbert.train.pretraining_scores import score_pretrained

    scores = score_pretrained(
        model, corpora, sequence_length, num_examples, batch_size, seed
    )
    for name, score in scores.items():
        print(f"{name.removeprefix('test_').replace('_', ' ')}: {score:.4f}")


def export(
    model: Positional[str],
    output: Positional[str],
    num_texts: int | None = None,
    overwrite: bool = False,
):
    """Writes a SavedModel that answers raw strings.

    Args:
        model: A model.keras written by `recbert finetune` or `model.save`, or a preset.
        output: Folder of the SavedModel.
        num_texts: 1 or 2, texts an example has; by default what it was trained on.
        overwrite: Replace the folder if it exists.
    """
    loaded = keras_recbert.load(model)
    if not hasattr(loaded, "export_savedmodel"):
        raise ValueError(
            f"{model} holds an encoder without a head for a task, which answers "
            "nothing. Train one first: recbert finetune --weights."
        )
    loaded.export_savedmodel(output, num_texts=num_texts, overwrite=overwrite)
    is_pair = (num_texts or loaded.num_texts) == 2
    texts = "'a text' 'another' --pairs" if is_pair else "'a sentence'"
    print(f"Wrote {output}. Ask it: recbert predict {output} {texts}")


def convert(
    source: Positional[str],
    output: Positional[str],
    model: str | None = None,
    to: Literal["preset", "huggingface"] = "preset",
    overwrite: bool = False,
):
    """Turns a BERT of another tool into a preset, or a model into a BERT of others.

    Prints what became of each tensor of a BERT: copied, adapted, new, unused.

    Args:
        source: A folder of Hugging Face, Google's TF1, the Model Garden or TF Hub, a
            preset, or a model.keras.
        output: Folder to write.
        model: Name of the encoder to put the weights into, see `recbert list`; by
            default a plain BERT of the sizes of the source.
        to: preset, for keras_recbert.load and --weights; or huggingface, for
            transformers (plain BERTs only, without a head).
        overwrite: Replace the folder if it exists.
    """
    from keras_recbert.convert.huggingface import FILES as HUGGINGFACE_FILES
    from keras_recbert.convert.open_checkpoint import is_preset
    from keras_recbert.convert.preset import read_preset
    from keras_recbert.convert.preset_files import FILES as PRESET_FILES
    from keras_recbert.folders import check_folder

    files = {"preset": PRESET_FILES, "huggingface": HUGGINGFACE_FILES}[to]
    check_folder(output, files, overwrite)
    card = {"source": source}
    if model is None:
        loaded = keras_recbert.load(source)
        if is_preset(source):
            kept = ("metrics", "source", "license")
            card = {key: read_preset(source).card[key] for key in kept}
    else:
        loaded = keras_recbert.build(model, weights=source)
    encoder = getattr(loaded, "backbone", loaded)
    if encoder.weights_report is not None:
        print(encoder.weights_report)
    if to == "preset":
        loaded.save_preset(output, overwrite=overwrite, **card)
        print(f"Wrote the preset {output}. Load it: keras_recbert.load({output!r})")
        return
    if encoder is not loaded:
        encoder.preprocessor = loaded.preprocessor
    encoder.save_huggingface(output, overwrite=overwrite)
    if encoder is not loaded:
        print("The head is left out: the folder holds the encoder.")
    print(
        f"Wrote {output}. Load it: transformers.AutoModel.from_pretrained({output!r})"
    )


def predict(
    savedmodel: Positional[str],
    texts: Annotated[Positional[list[str]], arg(metavar="TEXT [TEXT ...]")],
    pairs: bool = False,
):
    """Asks a SavedModel; needs TensorFlow and TF Text only.

    Args:
        savedmodel: Folder of the SavedModel.
        texts: One text or more.
        pairs: The texts are pairs: first, second, first, second, ...
    """
    from keras_recbert.serving.answers import print_answers

    print_answers(savedmodel, texts, pairs)


def vocabulary(
    corpus: Annotated[Positional[list[str]], arg(metavar="FILE [FILE ...]")],
    output: str = "vocab.txt",
    size: int = 8000,
    lowercase: bool = True,
):
    """Learns a WordPiece vocabulary from text files.

    Args:
        corpus: Text files, one text a line.
        output: The vocab.txt to write.
        size: Number of word pieces.
        lowercase: Lower-case the text and strip accents.
    """
    from keras_recbert.text.vocabulary import (
        learn_vocabulary_from_files,
        save_vocabulary,
    )

    learned = learn_vocabulary_from_files(corpus, size, lowercase=lowercase)
    save_vocabulary(learned, output)
    print(f"Wrote {len(learned):,} word pieces to {output}.")


def benchmark(
    comparisons: Annotated[Positional[list[str]], arg(metavar="[COMPARISON ...]")] = [],  # noqa: B006
    quick: bool = False,
    shapes: list[str] = [],  # noqa: B006
    precision: list[str] = [],  # noqa: B006
    passes: list[str] = [],  # noqa: B006
    rounds: int | None = None,
    output_dir: str = "runs/benchmark",
    install_peers: bool = False,
    torch_python: str | None = None,
    kerashub_python: str | None = None,
    model_garden_python: str | None = None,
    weights: str | None = None,
    texts: str | None = None,
    model: str = "bert_minilm",
    timeout: float = 900.0,
):
    """Times layers and models beside Keras, KerasHub, the Model Garden and torch.

    Writes benchmark.csv, benchmark.txt and benchmark.png.

    Args:
        comparisons: Some of swish_rnn, bilstm_768, bilstm_256, swish_model,
            trans_blstm_model, bert_model, serving, scaling; by default all that can
            run.
        quick: Small models, one shape and few rounds, in about two minutes.
        shapes: Rows x tokens, such as 8x128; by default what suits the comparison.
        precision: Some of float32, mixed_bfloat16 (weights in float32) and bfloat16.
        passes: Some of forward and train.
        rounds: Turns of each candidate; 7 by default, 3 with --quick.
        output_dir: Folder for what it writes. Files of an earlier run are replaced.
        install_peers: Install peers that are nowhere, in environments of their own in
            the output folder.
        torch_python: Interpreter that has torch and transformers.
        kerashub_python: Interpreter that has KerasHub.
        model_garden_python: Interpreter that has tf-models-official.
        weights: A BERT of Hugging Face, a folder, for serving.
        texts: A file with one text a line, for serving.
        model: Encoder of this zoo that reads the weights, for serving.
        timeout: Seconds a process may take to build a model, or for one round.
    """
    from keras_recbert.benchmark.run import benchmark

    benchmark(
        comparisons,
        quick=quick,
        shapes=shapes,
        precisions=precision,
        passes=passes,
        rounds=rounds,
        output_dir=output_dir,
        pythons={
            "torch": torch_python,
            "kerashub": kerashub_python,
            "model_garden": model_garden_python,
        },
        install_peers=install_peers,
        weights=weights,
        texts=texts,
        model=model,
        timeout=timeout,
    )


def explain(model: Positional[str], implementation: str | None = None):
    """Says what runs in each kind of layer on this machine, and why.

    Args:
        model: Name of an encoder, see `recbert list`; or a preset, a model.keras, a
            BERT of another tool.
        implementation: auto, reference, loop or xla; by default what a model was saved
            with, and auto for a name.
    """
    print(keras_recbert.explain(model, **_given(implementation=implementation)))


def profile(
    model: Positional[str],
    shape: str = "8x128",
    precision: Literal["float32", "bfloat16"] = "float32",
    forward: bool = False,
    steps: int = 3,
    implementation: str | None = None,
    csv: str | None = None,
):
    """Shows the ops that a training step spends its time in, on a CPU.

    Args:
        model: As for `recbert explain`; the weights are random.
        shape: Rows x tokens.
        precision: What it computes in; weights are kept in float32.
        forward: A forward pass instead of a training step.
        steps: Steps to time, and steps to profile.
        implementation: auto, reference, loop or xla; by default what a model was saved
            with, and auto for a name.
        csv: File to write all ops into.
    """
    from keras_recbert.benchmark.profile import profile

    given = _given(implementation=implementation)
    profile(model, shape, precision, forward, steps, csv, **given)


def _given(**options):
    """Options that were given; what is None has the default of the model."""
    return {name: value for name, value in options.items() if value is not None}


COMMANDS = {
    "list": list_models,
    "quickstart": quickstart,
    "finetune": finetune,
    "prepare": prepare,
    "pretrain": pretrain,
    "pretrain-table": pretrain_table,
    "evaluate": evaluate,
    "export": export,
    "convert": convert,
    "predict": predict,
    "vocabulary": vocabulary,
    "benchmark": benchmark,
    "explain": explain,
    "profile": profile,
}


def main(argv=None):
    """Runs `recbert`; returns the exit status."""
    argv = sys.argv[1:] if argv is None else list(argv)
    # TensorFlow notes at start-up, as errors too, that there is no GPU. What really
    # goes wrong is raised.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        if argv[:1] == ["finetune"]:
            finetune(_config_from(argv[1:], finetune, FineTuningConfig))
        elif argv[:1] == ["pretrain"]:
            pretrain(_config_from(argv[1:], pretrain, PretrainingConfig))
        else:
            tyro.extras.subcommand_cli_from_dict(
                COMMANDS,
                prog="recbert",
                description="Recurrent BERTs for Keras 3: build, train, export, serve.",
                args=argv or ["--help"],
            )
    except KeyboardInterrupt:
        if os.environ.get("RECBERT_TRACEBACK"):
            raise
        print(
            "\nrecbert: stopped. The same command goes on with a run of finetune, "
            "pretrain or pretrain-table.",
            file=sys.stderr,
        )
        return 128 + signal.SIGINT
    except (ValueError, TypeError, OSError, ImportError, RuntimeError) as error:
        if os.environ.get("RECBERT_TRACEBACK"):
            raise
        print(f"recbert: error: {error}", file=sys.stderr)
        print("(RECBERT_TRACEBACK=1 shows where it arose.)", file=sys.stderr)
        return 2
    return 0


def _config_from(argv, command, cls):
    """A config from flags, on top of a `--recipe` if one is named."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--recipe", nargs="?", const="")
    known, argv = parser.parse_known_args(argv)
    if known.recipe == "":
        raise ValueError("--recipe needs the path of a YAML file.")
    return tyro.cli(
        cls,
        prog=f"recbert {command.__name__}",
        description=inspect.getdoc(command),
        default=read_recipe(known.recipe, cls) if known.recipe else cls(),
        args=argv,
    )


if __name__ == "__main__":
    sys.exit(main())
