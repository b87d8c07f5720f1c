"""Commands that measure time: benchmark, profile."""

from typing import Annotated, Literal

from tyro.conf import Positional, arg

from keras_recbert.cli.arguments import given
from keras_recbert.keras_backend import require_tensorflow


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
    require_tensorflow()
    from keras_recbert.benchmark.profile import profile

    chosen = given(implementation=implementation)
    profile(model, shape, precision, forward, steps, csv, **chosen)
