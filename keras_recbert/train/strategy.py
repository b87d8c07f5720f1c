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


def even_batches(batches, strategy):
    """Fills batches up so that the devices of a strategy share them equally.

    Keras averages over devices, whatever their shares, and stops at a batch that it
    cannot share equally. The rows added weigh nothing and the real ones so much that
    the loss stays the mean over the real rows.

    Args:
        batches: `tf.data.Dataset` of `(features, labels)`.
        strategy: `tf.distribute.Strategy`.

    Returns:
        `batches` for one device, else a dataset of `(features, labels, weights)`.
    """
    num_devices = strategy.num_replicas_in_sync
    if num_devices == 1:
        return batches

    def fill(features, labels):
        num_real = tf.shape(labels)[0]
        num_rows = -(-num_real // num_devices) * num_devices
        rows = tf.range(num_rows)
        weight = tf.cast(num_rows / num_real, tf.float32)
        weights = tf.where(rows < num_real, weight, 0.0)
        features, labels = tf.nest.map_structure(
            lambda values: tf.gather(values, rows % num_real), (features, labels)
        )
        return features, labels, weights

    return batches.map(fill, num_parallel_calls=tf.data.AUTOTUNE)
