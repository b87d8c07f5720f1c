"""Tensors in safetensors files."""

import os

from keras_recbert.convert.checkpoint import CheckpointError

# Of any encoder, its heads and what an optimizer keeps of them: 48 layers have some 800
# tensors. Reading a million names takes minutes.
LARGEST_HEADER = 8 * 2**20  # bytes
MOST_TENSORS = 20_000
# Not those of 8 bits, whose numbers mean nothing without their scales.
FLOATS = ("F64", "F32", "F16", "BF16")


def open_safetensors(file):
    """Opens a file for reading; use it in a `with`.

    Raises:
        CheckpointError: if it is damaged or cut short, or its header is too large.
    """
    from safetensors import SafetensorError, safe_open

    with open(file, "rb") as stream:
        size = int.from_bytes(stream.read(8), "little")
    # Of a damaged file the number may be anything: safetensors says that.
    if LARGEST_HEADER < size < os.path.getsize(file):
        raise CheckpointError(
            f"{file} has a header of {size:,} bytes. That of an encoder has at most "
            f"{LARGEST_HEADER:,}. Get it again from where it comes from."
        )
    try:
        return safe_open(file, "np")
    except SafetensorError as error:
        raise CheckpointError(
            f"{file} is damaged or cut short ({error}). Get it again."
        ) from error


def tensor_forms(file):
    """dict of name to shape and dtype (`"F32"`) of all tensors in a file."""
    with open_safetensors(file) as tensors:
        count = len(tensors.keys())
        if count > MOST_TENSORS:
            raise CheckpointError(
                f"{file} holds {count:,} tensors. An encoder has at most "
                f"{MOST_TENSORS:,}. Get it again from where it comes from."
            )
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
