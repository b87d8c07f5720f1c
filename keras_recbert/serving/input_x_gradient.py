"""What an answer owes to each token: gradients times inputs."""

import tensorflow as tf

from keras_recbert.text.text_preprocessor import TextPreprocessor


def check_gradients(model):
    """Raises `ValueError` unless gradients times inputs are known of a model.

    Args:
        model: as for `write_savedmodel`.
    """
    task = getattr(getattr(model, "head", None), "task", "sentence encoder")
    packer = type(model.preprocessor)
    if task not in ("classifier", "regressor") or packer is not TextPreprocessor:
        raise ValueError(
            "Gradients times inputs are of a classifier or regressor with one head, "
            f"whose texts are one row each. Received: {task}, packed by "
            f"{packer.__name__}. Leave gradients=True (--gradients) out."
        )


def input_x_gradient(model, columns):
    """The product of each token's vector and the gradient of the answer by it.

    "Gradient * input" of Shrikumar et al. 2016 (Not just a black box, section 2): the
    sum over the dimensions of a token's row in the embedding table, each times the
    derivative of the answer's logit by it. Of a classifier that is the largest logit,
    of a regressor the score. To be called in a graph.

    Args:
        model: `TextModel`, see `check_gradients`.
        columns: tuple of string tensors `(batch_size,)`, a field each.

    Returns:
        dict of tensors `(batch_size, sequence_length)`: `input_x_gradient`, float32,
        0 on padding; `segment_ids`, int32, the number of the text a token is of; and
        int32 `begins` and `ends`, its first byte in that text and the one after its
        last, -1 on special tokens and padding.
    """
    packed = model.preprocessor.pack_with_offsets(*model.preprocessor.columns(columns))
    places = {name: packed.pop(name) for name in ("begins", "ends")}
    tables = [table.value for table in model.encoder.embeddings.token_tables]
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        for table in tables:
            tape.watch(table)
        logits = tf.cast(model(packed, training=False), tf.float32)
        if logits.shape.rank == 2:
            logits = tf.reduce_max(logits, axis=1)
        answers = tf.reduce_sum(logits)  # each of its own row alone
    products = []
    for table, slices in zip(tables, tape.gradient(answers, tables), strict=True):
        # The rows of a table that were looked up, one after the other.
        rows = tf.cast(tf.gather(table, slices.indices), tf.float32)
        products.append(tf.reduce_sum(tf.cast(slices.values, tf.float32) * rows, 1))
    owed = tf.reshape(tf.add_n(products), tf.shape(packed["token_ids"]))
    return {
        "input_x_gradient": owed * tf.cast(packed["padding_mask"], tf.float32),
        "segment_ids": packed["segment_ids"],
        **places,
    }
