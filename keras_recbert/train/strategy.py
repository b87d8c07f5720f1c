"""Chooses the devices of a run. Only `train` knows `tf.distribute`."""

import functools

import keras
import tensorflow as tf

from keras_recbert.train.multi_worker import make_multi_worker_strategy


def make_strategy(name="auto"):
    """The distribution strategy of a run.

    Args:
        name: `"one_device"`; `"mirrored"`, all GPUs of this machine (or its logical
            devices, if it has several CPUs configured); `"multi_worker"`, all machines
            of the environment variable `TF_CONFIG`; `"tpu"`; or `"auto"`, which is
            mirrored where there are at least two GPUs and one device elsewhere.

    Returns:
        `tf.distribute.Strategy`.

    Raises:
        RuntimeError: if there is no such device.
        ValueError: if `TF_CONFIG` is not valid.
    """
    if name == "multi_worker":  # first: TensorFlow lists no devices before
        return make_multi_worker_strategy()
    gpus = tf.config.list_logical_devices("GPU")
    if name == "one_device" or (name == "auto" and len(gpus) < 2):
        return tf.distribute.get_strategy()
    if name == "tpu":
        try:
            resolver = tf.distribute.cluster_resolver.TPUClusterResolver()
        except ValueError as error:
            raise RuntimeError(
                f"strategy='tpu' found no TPU: {error} Use strategy='auto'."
            ) from error
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
        return tf.distribute.TPUStrategy(resolver)
    devices = gpus or tf.config.list_logical_devices("CPU")
    if len(devices) < 2:
        raise RuntimeError(
            "strategy='mirrored' needs at least two devices. Found: "
            f"{[device.name for device in devices]}. Use strategy='auto'."
        )
    return _mirrored(tuple(device.name for device in devices))


@functools.cache
def _mirrored(devices):
    """The one strategy of these devices in this process.

    Each strategy numbers what its devices exchange from the same number on, so that
    TensorFlow takes exchanges of a second one for those of the first, and fails when
    they are of other shapes.
    """
    return tf.distribute.MirroredStrategy(devices)


def steps_done(optimizer):
    """Steps that an optimizer has taken, an int, under any strategy.

    `int(optimizer.iterations)` fails where each device has a copy of it.

    Args:
        optimizer: `keras.optimizers.Optimizer`.
    """
    return int(keras.ops.convert_to_numpy(optimizer.iterations))
