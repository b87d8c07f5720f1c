"""Commands that measure time: benchmark, profile."""

import dataclasses
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from keras_recbert.cli.arguments import given
from keras_recbert.config import BenchmarkConfig, FrontierConfig, ServingBenchmarkConfig
from keras_recbert.convert.hub_folder import local_folder
from keras_recbert.keras_backend import require_tensorflow


def benchmark(config: Annotated[BenchmarkConfig, arg(name="")]):
    """Times layers and models beside Keras, KerasHub, the Model Garden and torch.

    Writes benchmark.csv, benchmark.txt and benchmark.png. `recbert benchmark frontier`
    is a command of its own: accuracy, speed and size of small classifiers; `recbert
    benchmark serving` too: the HTTP server. `--recipe FILE` takes the options from a
    YAML file; options beside it replace the file's.
    """
    from keras_recbert.benchmark.run import benchmark

    benchmark(
        config.comparisons,
        quick=config.quick,
        shapes=config.shapes,
        precisions=config.precision,
        passes=config.passes,
        rounds=config.rounds,
        output_dir=config.output_dir,
        pythons={
            "torch": config.torch_python,
            "torch_questions": config.torch_python,
            "torch_teacher": config.torch_python,
            "kerashub": config.kerashub_python,
            "model_garden": config.model_garden_python,
        },
        install_peers=config.install_peers,
        weights=config.weights and local_folder(config.weights),
        texts=config.texts,
        questions=config.questions,
        model=config.model,
        teacher=config.teacher,
        task=config.task,
        data_dir=config.data_dir,
        timeout=config.timeout,
    )


def frontier(config: Annotated[FrontierConfig, arg(name="")]):
    """Measures accuracy, texts a second and bytes of small text classifiers.

    Raw strings in, labels out, in one thread: students, their teacher, TF-IDF,
    fastText, Model2Vec. Writes frontier.json, frontier.md and frontier.png. `--recipe
    FILE` takes the options from a YAML file; options beside it replace the file's.
    """
    from keras_recbert.benchmark.frontier import frontier

    weights = config.weights and local_folder(config.weights)
    frontier(dataclasses.replace(config, weights=weights))


def serving_benchmark(config: Annotated[ServingBenchmarkConfig, arg(name="")]):
    """Measures the HTTP server: requests a second, latency, overhead, memory.

    Beside it FastAPI with torch serves the same classifier, with the same batching.
    Writes serving.json, serving.md and serving.png. `--recipe FILE` takes the options
    from a YAML file; options beside it replace the file's.
    """
    from keras_recbert.benchmark.serving import measure_serving

    measure_serving(config)


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
