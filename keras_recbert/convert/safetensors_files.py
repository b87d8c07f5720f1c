"""Tensors in safetensors files."""

from keras_recbert.convert.checkpoint import CheckpointError

# Not those of 8 bits, whose numbers mean nothing without their scales.
FLOATS = ("F64", "F32", "F16", "BF16")


def open_safetensors(file):
    """Opens a file for reading; use it in a `with`.

    Raises:
        CheckpointError: if it is damaged or cut short.
    """
    from safetensors import SafetensorError, safe_open

    try:
        return safe_open(file, "np")
    except SafetensorError as error:
        raise CheckpointError(
            f"{file} is damaged or cut short ({error}). Get it again."
        ) from error


def tensor_forms(file):
    """dict of name to shape and dtype (`"F32"`) of all tensors in a file."""
    with open_safetensors(file) as tensors:
        slices = {name: tensors.get_slice(name) for name in list(tensors.keys())}
        return {
            name: (tuple(part.get_shape()), part.get_dtype())
            for name, part in slices.items()
        }


def tensor_shapes(file):
    """dict of name to shape of all tensors in a file."""
    return {name: shape for name, (shape, _) in tensor_forms(file).items()}


def read_tensor(file, name):
    """One tensor as an array.

    Raises:
        CheckpointError: if it does not hold floats.
    """
    import ml_dtypes  # noqa: F401  NumPy learns bfloat16

    with open_safetensors(file) as tensors:
        kind = tensors.get_slice(name).get_dtype()
        if kind not in FLOATS:
            raise CheckpointError(
                f"{file}: the tensor {name!r} holds {kind}. Weights must be floats: "
                f"{', '.join(FLOATS)}."
            )
        return tensors.get_tensor(name)


def write_tensors(tensors, file, metadata=None):
    """Writes a dict of name to array into a file that others may read.

    safetensors makes the file private to the user, whatever the umask says.

    Raises:
        OSError: if it cannot be written, such as on a full disk.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    file.touch()
    mode = file.stat().st_mode
    try:
        save_file(tensors, file, metadata)
    except SafetensorError as error:
        raise OSError(f"{file} could not be written: {error}") from error
    file.chmod(mode)
