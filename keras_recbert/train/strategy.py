"""On which devices a run computes. Only `train` knows `tf.distribute`."""

import types

import keras
import tensorflow as tf
from keras.src.optimizers.base_optimizer import BaseOptimizer

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
    return tf.distribute.MirroredStrategy([device.name for device in devices])


def sum_gradients_first(optimizer):
    """Has an optimizer clip and accumulate the gradients of all devices together.

    So that several devices take the same step as one. Keras 3 clips on each device what
    that one found, and adds up the rest; with `gradient_accumulation_steps` it fails
    under a strategy, because devices may not wait for each other inside a condition.
    Here gradients are added up first. Then each device updates its own copy of the
    weights, all alike, by the code that Keras runs on one device.

    Gradients of rows of a table are added up too: of a row that a batch reads several
    times Keras would square the gradients one by one.

    Args:
        optimizer: `keras.optimizers.Optimizer`, made in the scope of the strategy.
            Changed in place; what is saved of it stays the same.

    Returns:
        `optimizer`.
    """
    apply = optimizer.apply

    def apply_sums(grads, trainable_variables=None):
        grads = [g if g is None else tf.convert_to_tensor(g) for g in grads]
        replica = tf.distribute.get_replica_context()
        if replica.num_replicas_in_sync > 1:
            found = [g for g in grads if g is not None]
            sums = iter(replica.all_reduce(tf.distribute.ReduceOp.SUM, found))
            grads = [g if g is None else next(sums) for g in grads]
        apply(grads, trainable_variables)

    optimizer.apply = apply_sums
    for name in (
        "_apply_weight_decay",
        "_backend_update_step",
        "_backend_increment_gradient_accumulators",
    ):
        # What a subclass does in its own way stays.
        if getattr(type(optimizer), name) is getattr(keras.optimizers.Optimizer, name):
            on_one_device = getattr(BaseOptimizer, name)
            setattr(optimizer, name, types.MethodType(on_one_device, optimizer))
    return optimizer


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
