"""Where the peers are installed, and how to install those that are not."""

import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import sys

PROBE = pathlib.Path(__file__).parent / "workers" / "probe.py"


@dataclasses.dataclass(frozen=True)
class Peer:
    """A framework that workers run in.

    Attributes:
        name: str. What messages call it.
        script: str. File of its worker.
        distributions: tuple of str. What must be installed, as pip calls it.
        requirements: tuple of str. What `--install-peers` installs; empty where it is
            part of every installation of this package.
        option: str. Flag that names another interpreter.
        answers: bool. Whether its workers answer by SavedModels, and never train.
    """

    name: str
    script: str
    distributions: tuple
    requirements: tuple = ()
    option: str = ""
    answers: bool = False


PEERS = {
    "recbert": Peer("keras_recbert", "recbert_worker.py", ("keras_recbert",)),
    "keras": Peer("Keras", "keras_worker.py", ("keras",)),
    "savedmodel": Peer(
        "a SavedModel",
        "savedmodel_worker.py",
        ("tensorflow", "tensorflow-text"),
        answers=True,
    ),
    "torch": Peer(
        "torch with Hugging Face transformers",
        "torch_worker.py",
        ("torch", "transformers"),
        ("torch==2.13.0", "transformers>=5,<6"),
        "--torch-python",
    ),
    "torch_questions": Peer(
        "torch with Hugging Face transformers",
        "torch_questions_worker.py",
        ("torch", "transformers"),
        ("torch==2.13.0", "transformers>=5,<6"),
        "--torch-python",
    ),
    "torch_teacher": Peer(
        "torch with Hugging Face transformers",
        "torch_teacher_worker.py",
        ("torch", "transformers"),
        ("torch==2.13.0", "transformers>=5,<6"),
        "--torch-python",
    ),
    "kerashub": Peer(
        "KerasHub",
        "kerashub_worker.py",
        ("keras-hub", "keras", "tensorflow"),
        (
            "keras-hub==0.32.0",
            "keras>=3.15,<3.16",
            "tensorflow>=2.20,<2.21",
            "tensorflow-text>=2.20.1,<2.21",
        ),
        "--kerashub-python",
    ),
    "model_garden": Peer(
        "the TensorFlow Model Garden",
        "model_garden_worker.py",
        ("tf-models-official", "tf_keras", "tensorflow"),
        ("tf-models-official>=2.20,<2.21", "tensorflow-text>=2.20.1,<2.21"),
        "--model-garden-python",
    ),
    # Of `recbert benchmark frontier`: they answer texts with labels.
    "export": Peer("keras_recbert", "export_worker.py", ("keras_recbert",)),
    "labels": Peer(
        "a SavedModel",
        "labels_worker.py",
        ("tensorflow", "tensorflow-text"),
        answers=True,
    ),
    "litert": Peer("LiteRT", "litert_worker.py", ("keras_recbert", "tensorflow")),
    # Written here and tokenized by this package: beside it, or not at all.
    "onnx": Peer(
        "ONNX Runtime",
        "onnx_worker.py",
        ("keras_recbert", "tf2onnx", "onnx", "onnxruntime"),
        ("tf2onnx>=1.17,<1.18", "onnx>=1.23,<2", "onnxruntime>=1.32,<2"),
    ),
    "tfidf": Peer(
        "scikit-learn",
        "tfidf_worker.py",
        ("scikit-learn",),
        ("scikit-learn>=1.5,<2",),
        "--sklearn-python",
    ),
    "fasttext": Peer(
        "fastText",
        "fasttext_worker.py",
        ("fasttext-wheel",),
        ("fasttext-wheel==0.9.2",),
        "--fasttext-python",
    ),
    "model2vec": Peer(
        "Model2Vec",
        "model2vec_worker.py",
        ("model2vec", "torch", "scikit-learn"),
        ("model2vec[distill]==0.10.0", "torch==2.13.0", "scikit-learn>=1.5,<2"),
        "--model2vec-python",
    ),
    "torch_classifier": Peer(
        "torch with Hugging Face transformers",
        "torch_classifier_worker.py",
        ("torch", "transformers"),
        ("torch==2.13.0", "transformers>=5,<6"),
        "--torch-python",
    ),
    # Of `recbert benchmark serving`: this server, and classifiers in its environment.
    "torch_server": Peer(
        "FastAPI with torch and Hugging Face transformers",
        "torch_server.py",
        ("fastapi", "uvicorn", "torch", "transformers"),
        (
            "fastapi>=0.130,<1",
            "uvicorn>=0.40,<1",
            "torch==2.13.0",
            "transformers>=5,<6",
        ),
        "--torch-python",
    ),
}


def find_environments(keys, pythons, folder, install=False, say=print):
    """Interpreters for workers.

    In order: the one that was named, the one of this process, the one that
    `--install-peers` made.

    Args:
        keys: keys of `PEERS`.
        pythons: dict of key to interpreter that was named, or None.
        folder: path. Where `--install-peers` makes environments.
        install: bool. Makes an environment for each peer that is nowhere.
        say: function of str, told before something long starts.

    Returns:
        Tuple of a dict of key to interpreter, and a dict of key to a sentence that
        says what is not installed and how to install it.

    Raises:
        ValueError: if an interpreter that was named is none, or lacks the peer.
        RuntimeError: if an installation fails.
    """
    found, missing = {}, {}
    # Those that nothing needs, too: whoever names one expects it to be used.
    named = {
        key: _check_named(python, PEERS[key])
        for key, python in pythons.items()
        if python is not None
    }
    for key in keys:
        peer = PEERS[key]
        made = environment_python(folder, key)
        if key in named:
            found[key] = named[key]
        elif not _lacks(sys.executable, peer):
            found[key] = sys.executable
        elif made.is_file() and not _lacks(made, peer):
            found[key] = str(made)
        elif install and "keras_recbert" not in peer.distributions:
            say(f"Installing {peer.name} into {made.parents[1]} ...")
            found[key] = install_peer(folder, key)
        else:
            missing[key] = how_to_install(peer)
    return found, missing


def environment_python(folder, key):
    """Interpreter of the environment that `--install-peers` makes for a peer."""
    scripts = "Scripts/python.exe" if os.name == "nt" else "bin/python"
    return pathlib.Path(folder).absolute() / key / scripts


def how_to_install(peer):
    """A sentence for a peer that is not there."""
    needs = " ".join(f'"{name}"' for name in peer.requirements)
    elsewhere = (
        " or with --install-peers in an environment of its own, or name an interpreter "
        f"that has it with {peer.option}"
    )
    return (
        f"{peer.name} is not installed, so it is left out. Install it beside this "
        f"package (pip install {needs}){elsewhere if peer.option else ''}."
    )


def install_peer(folder, key):
    """Makes an environment with a peer; returns its interpreter.

    Raises:
        RuntimeError: if pip fails; with the end of what it printed. No environment
            is left behind.
    """
    python = environment_python(folder, key)
    root = pathlib.Path(folder).absolute() / key
    try:
        for command in (
            [sys.executable, "-m", "venv", "--clear", str(root)],
            [str(python), "-m", "pip", "install", "-q", *PEERS[key].requirements],
        ):
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError(
                    f"{PEERS[key].name} could not be installed: {' '.join(command)}\n"
                    f"{done.stderr[-2000:]}"
                )
    except BaseException:
        shutil.rmtree(root, ignore_errors=True)
        raise
    return str(python)


def installed(python, distributions):
    """Versions of distributions in the environment of an interpreter, None if absent.

    Raises:
        ValueError: if `python` is no Python.
    """
    try:
        done = subprocess.run(
            [str(python), str(PROBE), *distributions],
            capture_output=True,
            text=True,
            timeout=60,
        )
        done.check_returncode()
        return json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, json.JSONDecodeError) as error:
        raise ValueError(f"{python} does not run as a Python: {error}.") from error


def _check_named(python, peer):
    path = shutil.which(python)
    if path is None:
        raise ValueError(
            f"{peer.option} must name an interpreter, such as "
            f"environment/bin/python. There is none at {python!r}."
        )
    lacks = _lacks(path, peer)
    if lacks:
        raise ValueError(
            f"{peer.option} must name an interpreter that has {peer.name}. {python} "
            f"lacks {', '.join(lacks)}: {python} -m pip install "
            + " ".join(f'"{name}"' for name in peer.requirements)
        )
    return path


def _lacks(python, peer):
    versions = installed(python, peer.distributions)
    return [name for name in peer.distributions if versions[name] is None]
