"""Tensors in TensorFlow's checkpoint files, of TensorFlow 1 and 2."""

from keras_recbert.convert.checkpoint import CheckpointError


def open_tensors(prefix):
    """Opens `<prefix>.index` and `<prefix>.data-*`. No graph is loaded or run.

    Args:
        prefix: path without `.index`.

    Returns:
        Tuple of a dict of tensor name to shape, and a function from a name to an
        array.

    Raises:
        CheckpointError: if the files cannot be read; naming file and, where it is
            one tensor, the tensor.
    """
    import tensorflow as tf

    # What TensorFlow raises for damaged files depends on where the damage is.
    damaged = (tf.errors.OpError, RuntimeError, ValueError, IndexError)
    try:
        reader = tf.train.load_checkpoint(str(prefix))
        shapes = {
            name: tuple(shape)
            for name, shape in reader.get_variable_to_shape_map().items()
        }
    except damaged as error:
        raise CheckpointError(
            f"{prefix}: TensorFlow cannot read the checkpoint ({error}). It needs "
            "the file .index and every file .data-... whole; get them again."
        ) from error

    def read(name):
        try:
            return reader.get_tensor(name)
        except damaged as error:
            raise CheckpointError(
                f"{prefix}: the tensor {name!r} cannot be read ({error}). The file "
                ".data-... is damaged or cut short; get it again."
            ) from error

    return shapes, read
