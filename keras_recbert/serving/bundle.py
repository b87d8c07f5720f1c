"""What TensorFlow Serving loads: numbered versions, warm-up, batching."""

import functools
import itertools
import json
import pathlib
import string

import numpy as np
import tensorflow as tf

from keras_recbert.core.answering import KEEPS_PACKED_WEIGHTS
from keras_recbert.core.checks import check_positive
from keras_recbert.core.extras import check_installed
from keras_recbert.core.folders import new_file
from keras_recbert.core.machine import num_cores
from keras_recbert.serving.savedmodel import read_meta_graph, write_savedmodel

MAX_BATCH_SIZE = 64
WARM_UP = pathlib.Path("assets.extra", "tf_serving_warmup_requests")
# Texts of several lengths; lists of strings are of one size.
TEXTS = ("a text", "a longer text, of more words than the first one has", "short")
IMAGE = "tensorflow/serving"  # which has the ops of TF Text

_BATCHING = string.Template("""\
# Read by tensorflow_model_server: --enable_batching --batching_parameters_file=FILE
max_batch_size { value: $largest }
batch_timeout_micros { value: 2000 }
max_enqueued_batches { value: 100 }
num_batch_threads { value: $threads }
$allowed""")
_COMPOSE = string.Template("""\
services:
  $name:
    image: $image
    ports: ["8500:8500", "8501:8501"]
    volumes: [".:/models/$name:ro"]
    environment:
      $keeps_packed_weights: "1"
    command:
      - --model_config_file=/models/$name/models.config
      - --tensorflow_intra_op_parallelism=1
      - --enable_batching
      - --batching_parameters_file=/models/$name/batching.config
""")
_README = string.Template("""\
# $name

A SavedModel of raw strings, in the layout of TensorFlow Serving, which serves the
highest version. Its inputs: `$inputs`.

```bash
docker compose up
recbert check .
curl -d '$request' http://127.0.0.1:8501/v1/models/$name:predict
```

`batching.config` has batches of up to $largest, $threads at a time, one for each core
of the machine that wrote it; so `compose.yaml` gives an op one thread, and lets oneDNN
keep the weights as it packs them for the processor. The ops of the tokenizer are TF
Text's: `recbert check`.
""")


def write_bundle(
    model,
    folder,
    version,
    fields=None,
    max_batch_size=MAX_BATCH_SIZE,
    threads=None,
    overwrite=False,
    gradients=False,
):
    """Writes a version of a model into a folder that TensorFlow Serving serves.

    `FOLDER/VERSION` is the SavedModel, with requests that warm it up at each batch size
    of the batching file: `assets.extra/tf_serving_warmup_requests`. It appears whole,
    so that a server may watch the folder. Beside it: `batching.config`,
    `models.config`, `compose.yaml` and `README.md`, which are written anew.

    Args:
        model: as for `write_savedmodel`.
        folder: str or path. Its name is that of the model; other versions stay.
        version: int, at least 1.
        fields: as for `write_savedmodel`; by default those of the model.
        max_batch_size: int. Examples that the server puts into one batch, at most.
        threads: int. Batches at a time; by default the cores of this machine.
        overwrite: bool. Replaces the version if it is there.
        gradients: as for `write_savedmodel`.

    Returns:
        path of the version.

    Raises:
        ValueError: if `version` or a size is below 1, or the name of the folder is none
            of a model.
        FileExistsError: if the version exists and `overwrite` is False.
        ImportError: if tensorflow-serving-api is not installed.
    """
    threads = num_cores() if threads is None else threads
    check_positive(version=version, max_batch_size=max_batch_size, threads=threads)
    check_installed("A bundle for TensorFlow Serving", "serve", "tensorflow_serving")
    folder = pathlib.Path(folder).absolute()
    name = folder.name
    if not name or not set(name) <= {*string.ascii_letters, *string.digits, *"_-."}:
        raise ValueError(
            "The folder of a model gives it its name in the address of the server: "
            f"letters, digits, _, - and a dot. Received: {str(folder)!r}."
        )
    if name.isdigit():
        raise ValueError(
            "The folder of a model holds its versions, which are numbers, and has "
            f"another name. Received: {str(folder)!r}. Name it DIR/NAME; the version "
            f"is version={version} (--version {version})."
        )
    fields = getattr(model, "fields", ("text",)) if fields is None else fields
    sizes = batch_sizes(max_batch_size)
    warm_up = functools.partial(_write_warm_up, name=name, sizes=sizes)
    path = folder / str(version)
    write_savedmodel(model, path, fields, overwrite, warm_up, gradients)
    specs = input_specs(path)
    texts = {
        "batching.config": _BATCHING.substitute(
            largest=sizes[-1],
            threads=threads,
            allowed="".join(f"allowed_batch_sizes: {size}\n" for size in sizes),
        ),
        "models.config": _models_config(name),
        "compose.yaml": _COMPOSE.substitute(
            name=name, image=IMAGE, keeps_packed_weights=KEEPS_PACKED_WEIGHTS
        ),
        "README.md": _README.substitute(
            name=name,
            inputs="`, `".join(specs),
            request=_request_json(specs),
            largest=sizes[-1],
            threads=threads,
        ),
    }
    for file, text in texts.items():
        with new_file(folder / file) as written:
            written.write_text(text, encoding="utf-8")
    return path


def batch_sizes(largest):
    """Sizes that batches are filled up to: powers of two, and the largest."""
    powers = itertools.takewhile(
        lambda size: size < largest, (2**n for n in itertools.count())
    )
    return (*powers, largest)


def example_inputs(specs, size):
    """Texts for the inputs of a signature.

    Args:
        specs: dict of input name to `tf.TensorSpec` of strings.
        size: int. Examples.

    Returns:
        dict of arrays of str `(size,)`, or `(size, 3)` of lists of strings.
    """
    texts = [text for text, _ in zip(itertools.cycle(TEXTS), range(size), strict=False)]
    return {
        name: np.array([TEXTS] * size if spec.shape.rank == 2 else texts)
        for name, spec in specs.items()
    }


def read_warm_up(path):
    """The requests that warm a version up.

    Args:
        path: str or path of a version of a bundle.

    Returns:
        List of tuples of the name of a signature and a dict of arrays of str.

    Raises:
        ValueError: for what is no request to predict; names file and record.
    """
    check_installed("A bundle for TensorFlow Serving", "serve", "tensorflow_serving")
    from google.protobuf.message import DecodeError
    from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

    file = pathlib.Path(path) / WARM_UP
    requests = []
    try:
        for record in tf.data.TFRecordDataset(str(file)):
            request = PredictionLog.FromString(record.numpy()).predict_log.request
            inputs = {
                name: np.char.decode(tf.make_ndarray(value).astype(bytes), "utf-8")
                for name, value in request.inputs.items()
            }
            requests.append((request.model_spec.signature_name, inputs))
    except (DecodeError, tf.errors.DataLossError) as error:
        raise ValueError(
            f"{file}: record {len(requests) + 1} is no PredictionLog ({error}). Export "
            "the model again."
        ) from error
    return requests


def _write_warm_up(folder, name, sizes):
    """Writes a request to predict for each batch size."""
    from tensorflow_serving.apis import predict_pb2, prediction_log_pb2

    specs = input_specs(folder)
    file = folder / WARM_UP
    file.parent.mkdir()
    with tf.io.TFRecordWriter(str(file)) as writer:
        for size in sizes:
            request = predict_pb2.PredictRequest()
            request.model_spec.name = name
            request.model_spec.signature_name = "serving_default"
            for key, value in example_inputs(specs, size).items():
                request.inputs[key].CopyFrom(tf.make_tensor_proto(value))
            log = prediction_log_pb2.PredictionLog(
                predict_log=prediction_log_pb2.PredictLog(request=request)
            )
            writer.write(log.SerializeToString())


def input_specs(path):
    """Specs of the inputs of the default signature of a SavedModel, by name.

    Read from the file, without loading the model.
    """
    signature = read_meta_graph(path).signature_def["serving_default"]
    return {
        name: tf.TensorSpec(
            tf.TensorShape(info.tensor_shape), tf.as_dtype(info.dtype), name
        )
        for name, info in sorted(signature.inputs.items())
    }


def _models_config(name):
    from google.protobuf import text_format
    from tensorflow_serving.config import model_server_config_pb2

    config = model_server_config_pb2.ModelServerConfig()
    one = config.model_config_list.config.add()
    one.name, one.base_path, one.model_platform = name, f"/models/{name}", "tensorflow"
    return text_format.MessageToString(config)


def _request_json(specs):
    """A request in the row format of TensorFlow Serving, one example."""
    first = {
        name: value[0].tolist() for name, value in example_inputs(specs, 1).items()
    }
    instance = first if len(first) > 1 else next(iter(first.values()))
    return json.dumps({"instances": [instance]})
