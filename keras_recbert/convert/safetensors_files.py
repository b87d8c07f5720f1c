"""Tensors in safetensors files."""

from keras_recbert.convert.checkpoint import CheckpointError


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


def tensor_shapes(file):
    """dict of name to shape of all tensors in a file."""
    with open_safetensors(file) as tensors:
        names = list(tensors.keys())
        return {name: tuple(tensors.get_slice(name).get_shape()) for name in names}


def read_tensor(file, name):
    """One tensor as an array.

    Raises:
        CheckpointError: if it does not hold floats.
    """
    import ml_dtypes  # noqa: F401  NumPy learns bfloat16

    with open_safetensors(file) as tensors:
        kind = tensors.get_slice(name).get_dtype()
        if not kind.startswith(("F", "BF")):
            raise CheckpointError(
                f"{file}: the tensor {name!r} holds {kind}. Weights must be floats."
            )
        return tensors.get_tensor(name)


def write_tensors(tensors, file, metadata=None):
    """Writes a dict of name to array into a file that others may read.

    safetensors makes the file private to the user, whatever the umask says.
    """
    from safetensors.numpy import save_file

    file.touch()
    mode = file.stat().st_mode
    save_file(tensors, file, metadata)
    file.chmod(mode)
