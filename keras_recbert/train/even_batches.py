"""Batches of any number of rows on several devices, with the numbers of one device."""

import tensorflow as tf


def even_batches(batches, strategy):
    """Fills batches up so that the devices of a strategy share them equally.

    Keras averages over devices, whatever their shares, and stops at a batch that it
    cannot share equally. The rows added weigh nothing and the real ones so much that
    the loss stays the mean over the real rows. `count_real_rows` does the same for
    what `fit` logs.

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
        features, labels = fill_rows((features, labels), num_real, num_devices)
        num_rows = tf.shape(labels)[0]
        weight = tf.cast(num_rows / num_real, tf.float32)
        weights = tf.where(tf.range(num_rows) < num_real, weight, 0.0)
        return features, labels, weights

    return _in_order(batches.map(fill, num_parallel_calls=tf.data.AUTOTUNE))


def even_features(features, strategy):
    """Batches for `predict`, which the devices of a strategy share equally.

    The rows added stand at the end of their batch.

    Args:
        features: `tf.data.Dataset` of features.
        strategy: `tf.distribute.Strategy`.

    Returns:
        `features` for one device, else such a dataset.
    """
    num_devices = strategy.num_replicas_in_sync
    if num_devices == 1:
        return features

    def fill(batch):
        num_real = tf.shape(tf.nest.flatten(batch)[0])[0]
        return fill_rows(batch, num_real, num_devices)

    return _in_order(features.map(fill, num_parallel_calls=tf.data.AUTOTUNE))


def fill_rows(batch, num_rows, num_devices):
    """Repeats rows of a batch until its devices can share it equally.

    Args:
        batch: nest of tensors `(num_rows, ...)`.
        num_rows: int32 tensor.
        num_devices: int.

    Returns:
        The same nest of `(num_filled, ...)`, a multiple of `num_devices`.
    """
    rows = tf.range(-(-num_rows // num_devices) * num_devices) % num_rows
    return tf.nest.map_structure(lambda values: tf.gather(values, rows), batch)


def count_real_rows(model, strategy, class_weights=None):
    """Has `fit` count each real row of `even_batches` once, and the others never.

    Keras counts all rows of a batch in the mean loss of an epoch, and weighs its
    metrics as it weighs the loss.

    Args:
        model: compiled `keras.Model`, made in the scope of the strategy, with one
            output. Its training step is replaced; for one device it stays.
        strategy: `tf.distribute.Strategy`.
        class_weights: optional dict of class id to float, as `fit` takes it for one
            device; leave it out of `fit` for several.
    """
    num_devices = strategy.num_replicas_in_sync
    if num_devices == 1:
        return
    if class_weights is not None:
        table = tf.constant([class_weights[id] for id in range(len(class_weights))])
    loss_tracker = model.metrics[0]  # as Keras puts it

    def train_step(batch):
        features, labels, weights = batch
        is_real = tf.cast(weights > 0, tf.float32)
        largest = tf.reduce_max(weights)
        counted = is_real
        if class_weights is not None:
            of_class = tf.gather(table, labels)
            weights, counted = weights * of_class, is_real * of_class
        with tf.GradientTape() as tape:
            predictions = model(features, training=True)
            # Divided by the rows of this device, and by the number of devices.
            loss = model.compute_loss(
                features, labels, predictions, weights, training=True
            )
        gradients = tape.gradient(loss, model.trainable_variables)
        model.optimizer.apply_gradients(
            zip(gradients, model.trainable_variables, strict=True)
        )
        num_rows = tf.cast(tf.shape(weights)[0], tf.float32)
        total = tf.math.divide_no_nan(loss * num_devices * num_rows, largest)
        num_real = tf.reduce_sum(is_real)
        loss_tracker.update_state(
            tf.math.divide_no_nan(total, num_real), sample_weight=num_real
        )
        return model.compute_metrics(features, labels, predictions, counted)

    model.train_step = train_step


def _in_order(batches):
    """Has TensorFlow not look for files that each device could read alone."""
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = (
        tf.data.experimental.AutoShardPolicy.OFF
    )
    return batches.with_options(options)
