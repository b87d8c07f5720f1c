"""Steps of layers and models of Keras, whichever Keras: the module is an argument."""

import numpy as np
import tensorflow as tf


def layer_step(keras, layer, job):
    """A forward pass of a layer, or its gradients for inputs and weights.

    The loss is the sum of the outputs times fixed random weights, so that no
    gradient is trivial.

    Args:
        keras: the module `keras` or `tf_keras`.
        layer: layer from `(batch_size, sequence_length, hidden_dim)` to any width.
        job: dict of `batch_size`, `sequence_length`, `hidden_dim`, `precision`,
            `pass`.

    Returns:
        `(step, facts)`, see `worker_protocol.serve`.
    """
    shape = (job["batch_size"], job["sequence_length"], job["hidden_dim"])
    # What a layer inside a model of this precision gets.
    dtype = "float32" if job["precision"] == "float32" else "bfloat16"
    random = np.random.default_rng(0)
    inputs = tf.cast(random.standard_normal(shape, np.float32), dtype)
    outputs = layer(inputs)
    seed = tf.cast(random.standard_normal(outputs.shape, np.float32), outputs.dtype)

    @tf.function
    def forward(inputs):
        return layer(inputs, training=False)

    @tf.function
    def train(inputs, seed):
        weights = [variable.value for variable in layer.trainable_variables]
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            loss = tf.reduce_sum(layer(inputs, training=True) * seed)
        return tape.gradient(loss, [inputs, *weights])

    def step():
        return forward(inputs) if job["pass"] == "forward" else train(inputs, seed)

    if job["pass"] == "train" and any(gradient is None for gradient in step()):
        raise ValueError(f"{job['name']}: a weight has no gradient.")
    return step, {"parameters": layer.count_params(), "items": shape[0] * shape[1]}


def model_step(keras, model, job, names, optimizer=None):
    """A forward pass or a training step of a classifier, as users run them.

    Training is `train_on_batch`: cross entropy of 2 classes, dropout, AdamW.

    Args:
        keras: the module `keras` or `tf_keras`.
        model: classifier from packed ids to logits.
        job: dict of `batch_size`, `sequence_length`, `vocabulary_size`, `pass`.
        names: names of the inputs of the model: ids, segments, mask.
        optimizer: class of the AdamW that the package trains with; by default Keras's.

    Returns:
        `(step, facts)`, see `worker_protocol.serve`.
    """
    ids, labels = packed_batch(job)
    inputs = dict(zip(names, ids, strict=True))
    model.compile(
        optimizer=(optimizer or keras.optimizers.AdamW)(1e-5, weight_decay=0.01),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )

    def step():
        if job["pass"] == "forward":
            return model.predict_on_batch(inputs)
        return model.train_on_batch(inputs, labels)

    items = job["batch_size"] * job["sequence_length"]
    return step, {"parameters": model.count_params(), "items": items}


def packed_batch(job):
    """Ids, segments and mask of full rows, and labels: the same in every worker."""
    shape = (job["batch_size"], job["sequence_length"])
    random = np.random.default_rng(0)
    token_ids = random.integers(1, job["vocabulary_size"], shape, dtype=np.int32)
    segment_ids = np.zeros(shape, np.int32)
    padding_mask = np.ones(shape, np.int32)
    labels = random.integers(0, 2, shape[0], dtype=np.int32)
    return (token_ids, segment_ids, padding_mask), labels
