"""The only place that knows `tf.distribute`."""

import tensorflow as tf


def make_strategy(name="auto"):
    """The distribution strategy of a run.

    Args:
        name: `"one_device"`; `"mirrored"`, all GPUs of this machine (or its logical
            devices, if it has several CPUs configured); `"tpu"`; or `"auto"`, which
            is mirrored where there are at least two GPUs and one device elsewhere.

    Returns:
        `tf.distribute.Strategy`.

    Raises:
        RuntimeError: if there is no such device.
    """
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
    return tf.distribute.MirroredStrategy([device.name for device in devices])
