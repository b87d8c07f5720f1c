"""The weights of a preset: by name, all of them, finite."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from keras_recbert.convert.checkpoint import CheckpointError
from keras_recbert.convert.preset_files import AGAIN, CONFIG
from keras_recbert.convert.safetensors_files import open_safetensors, tensor_forms

# Keras's names of the dtypes that weights may have: those in safetensors.
DTYPES = {"float32": "F32", "float64": "F64", "float16": "F16", "bfloat16": "BF16"}


def weights_by_name(model, build_again):
    """All weights as arrays, by the names they have in a model built anew.

    Building one without numbers costs a second, and shows that the preset will load.

    Args:
        model: `keras.Model`.
        build_again: function that builds a model from what the preset says.

    Returns:
        dict of str to array.

    Raises:
        ValueError: if the model that is built again has other weights, or a number is
            not finite.
    """
    try:
        twin = list_weights(build_again)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "This model cannot be a preset: its arguments do not build it again "
            f"({error})."
        ) from error
    tensors = {}
    for weight, (name, shape, dtype) in zip(model.weights, twin, strict=False):
        # A name scope around the model stands before its path.
        same_name = f"/{weight.path}".endswith(f"/{name}") and name not in tensors
        same_form = (tuple(weight.shape), weight.dtype) == (shape, dtype)
        if not same_name or not same_form or dtype not in DTYPES:
            break
        tensors[name] = np.asarray(weight.numpy())  # a scalar is no array
    if not len(tensors) == len(model.weights) == len(twin):
        raise ValueError(
            "This model cannot be a preset: built again from its arguments it has "
            f"{len(twin)} weights, and it has {len(model.weights)}; they agree up to "
            f"number {len(tensors)}. What `quantize` and `enable_lora` change is not "
            "among the arguments; `lora_rank` of a task is."
        )
    for name, tensor in tensors.items():
        if not np.all(np.isfinite(tensor)):
            raise ValueError(
                f"The weight {name!r} holds NaN or infinite numbers, so nothing is "
                "written. Did the training diverge? Try a lower learning rate."
            )
    return tensors


def list_weights(build):
    """Names, shapes and dtypes of the weights of a model, which get shapes only.

    In a thread of its own, as `builder.count_parameters` does and says why.

    Args:
        build: function that builds the model.

    Returns:
        list of tuples of path, shape and dtype.
    """

    def unfilled():
        import keras

        with keras.StatelessScope(initialize_variables=False):
            return [(w.path, tuple(w.shape), w.dtype) for w in build().weights]

    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(unfilled).result()


def check_tensors(build, encoder_arguments, file):
    """Checks that a file holds the weights of a model, without building it in full.

    Args:
        build: function that builds the model.
        encoder_arguments: dict. Those of the encoder.
        file: path of a safetensors file.

    Raises:
        CheckpointError: if the file is damaged, or a tensor is missing, unknown, or of
            another shape or dtype.
    """
    found = tensor_forms(file)
    num_layers = encoder_arguments.get("num_layers")
    if isinstance(num_layers, int) and num_layers > len(found):
        raise CheckpointError(
            f"{file} holds {len(found)} tensors, too few for the {num_layers} layers "
            f"of {CONFIG}. {AGAIN}"
        )
    weights = list_weights(build)
    _check_names(file, list(found), [name for name, _, _ in weights])
    for name, shape, dtype in weights:
        if found[name] != (shape, DTYPES[dtype]):
            raise CheckpointError(
                f"{file}: the tensor {name!r} has the shape and dtype {found[name]}. "
                f"By {CONFIG} they must be {(shape, DTYPES[dtype])}. {AGAIN}"
            )


def fill_weights(model, file):
    """Assigns the tensors of a file, which `check_tensors` has passed, by name.

    Raises:
        CheckpointError: if a number is not finite.
    """
    with open_safetensors(file) as tensors:
        for weight in model.weights:
            tensor = tensors.get_tensor(weight.path)
            if not np.all(np.isfinite(tensor)):
                raise CheckpointError(
                    f"{file}: the tensor {weight.path!r} holds NaN or infinite "
                    f"numbers. {AGAIN}"
                )
            weight.assign(tensor)


def _check_names(file, found, needed):
    for what, names in (
        ("lacks", set(needed).difference(found)),
        ("holds, beside those of the model,", set(found).difference(needed)),
    ):
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            raise CheckpointError(
                f"{file} {what} the tensor {sorted(names)[0]!r}{more}. The model that "
                f"{CONFIG} describes has {len(needed)} tensors. {AGAIN}"
            )
