"""The command `recbert`: which commands there are, and how they end."""

import contextlib
import importlib.metadata
import os
import platform
import signal
import sys
import threading

import tyro

import keras_recbert
from keras_recbert.cli.arguments import config_from, without_empty
from keras_recbert.cli.augmenting import augment
from keras_recbert.cli.corpora import prepare, vocabulary
from keras_recbert.cli.extensions import import_extensions
from keras_recbert.cli.files import check, convert, export
from keras_recbert.cli.glue import glue
from keras_recbert.cli.hubs import push
from keras_recbert.cli.predicting import predict
from keras_recbert.cli.probing import probe
from keras_recbert.cli.results import results
from keras_recbert.cli.serving import play, serve
from keras_recbert.cli.speed import (
    benchmark,
    frontier,
    profile,
    serving_benchmark,
)
from keras_recbert.cli.table import table
from keras_recbert.cli.training import (
    average,
    distill,
    evaluate,
    finetune,
    pretrain,
    quickstart,
)
from keras_recbert.cli.zoo import draw, explain, explain_words, list_models
from keras_recbert.config import (
    AugmentConfig,
    BenchmarkConfig,
    DistillationConfig,
    FineTuningConfig,
    FrontierConfig,
    PredictConfig,
    PrepareConfig,
    PretrainingConfig,
    ProbeConfig,
    ServeConfig,
    ServingBenchmarkConfig,
    TableConfig,
)
from keras_recbert.core.os_errors import in_words, is_of_tensorflow

COMMANDS = {
    "list": list_models,
    "quickstart": quickstart,
    "finetune": finetune,
    "distill": distill,
    "average": average,
    "augment": augment,
    "prepare": prepare,
    "pretrain": pretrain,
    "table": table,
    "glue": glue,
    "results": results,
    "evaluate": evaluate,
    "probe": probe,
    "export": export,
    "check": check,
    "convert": convert,
    "push": push,
    "predict": predict,
    "serve": serve,
    "play": play,
    "vocabulary": vocabulary,
    "benchmark": benchmark,
    "draw": draw,
    "explain": explain,
    "explain-words": explain_words,
    "profile": profile,
}
# Of commands with more than a handful of options: they take `--recipe FILE`.
CONFIGS = {
    "finetune": FineTuningConfig,
    "distill": DistillationConfig,
    "augment": AugmentConfig,
    "prepare": PrepareConfig,
    "pretrain": PretrainingConfig,
    "table": TableConfig,
    "predict": PredictConfig,
    "serve": ServeConfig,
    "probe": ProbeConfig,
    "benchmark": BenchmarkConfig,
}
# Commands of two words, with their options.
SUBCOMMANDS = {
    ("benchmark", "frontier"): (frontier, FrontierConfig),
    ("benchmark", "serving"): (serving_benchmark, ServingBenchmarkConfig),
}

# What wrong arguments, files and machines raise, beside errors of TensorFlow. Anything
# else is a mistake of ours, which its traceback helps to find.
_TOLD = (ValueError, TypeError, OSError, ImportError, RuntimeError, MemoryError)


def main(argv=None):
    """Runs `recbert`; returns the exit status."""
    argv = sys.argv[1:] if argv is None else list(argv)
    # TensorFlow notes at start-up, as errors too, that there is no GPU. What really
    # goes wrong is raised.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        with _raising_signals():
            _run(import_extensions(argv))
            sys.stdout.flush()
    except KeyboardInterrupt as stop:
        if os.environ.get("RECBERT_TRACEBACK"):
            raise
        with contextlib.suppress(OSError):  # the terminal may be what is gone
            print(
                "\nrecbert: stopped. The same command resumes a run of finetune, "
                "distill, pretrain, table, probe or predict --input.",
                file=sys.stderr,
                flush=True,
            )
        return 128 + getattr(stop, "number", signal.SIGINT)
    except BrokenPipeError:  # who reads the output has seen enough: recbert list | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except Exception as error:
        is_told = isinstance(error, _TOLD) or is_of_tensorflow(error)
        if os.environ.get("RECBERT_TRACEBACK") or not is_told:
            raise
        print(f"recbert: error: {in_words(error)}", file=sys.stderr)
        print("(RECBERT_TRACEBACK=1 shows where it arose.)", file=sys.stderr)
        return 2
    return 0


def _run(argv):
    if argv == ["--version"]:
        print(_versions())
    elif argv and argv[0] in CONFIGS:
        command, config = with_config(argv)
        command(config)
    else:
        tyro.extras.subcommand_cli_from_dict(
            {name: without_empty(run) for name, run in COMMANDS.items()},
            prog="recbert",
            description="Recurrent BERTs for Keras 3: build, train, export, serve. "
            "`recbert --version` names the versions that a score may depend on. "
            "`--import FILE.py`, with any command, adds the blocks, models and data "
            "sets that a Python file of yours registers.",
            args=argv or ["--help"],
        )


def with_config(argv):
    """The command of a line that begins with one of `CONFIGS`, and its options.

    Args:
        argv: list of str, the line without `recbert`.

    Returns:
        Tuple of a function and the config that it takes; errors as of `config_from`.
    """
    words = tuple(argv[:2])
    if words in SUBCOMMANDS:
        command, cls = SUBCOMMANDS[words]
        return command, config_from(argv[2:], command, cls, " ".join(words))
    command, cls = COMMANDS[argv[0]], CONFIGS[argv[0]]
    return command, config_from(argv[1:], command, cls)


class _Signal(KeyboardInterrupt):
    """Raised by a signal that asks the process to end; `number` says which."""

    def __init__(self, number):
        super().__init__()
        self.number = number


@contextlib.contextmanager
def _raising_signals():
    """Has SIGTERM and SIGHUP end a command as Ctrl-C does: it cleans up, and says so.

    A signal that is ignored, as under `nohup`, stays ignored.
    """

    def stop(number, _):
        raise _Signal(number)

    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:
                before[number] = signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _versions():
    """Versions of what counts, in a line; nothing is imported for it."""
    names = {"keras": "Keras", "tensorflow": "TensorFlow"}
    others = [
        f"{name} {importlib.metadata.version(key)}" for key, name in names.items()
    ]
    python = platform.python_version()
    return f"recbert {keras_recbert.__version__} ({', '.join(others)}, Python {python})"
