"""Who computes matrix products on this machine."""

import functools

import keras
import tensorflow as tf

# No public name: shows a graph as it is after TensorFlow has optimized it.
from tensorflow.python.eager import context

from keras_recbert.ops.implementation import accelerators


@functools.cache
def matrix_product(dtype):
    """Who multiplies matrices, and whether bias and GELU are computed in the product.

    TensorFlow decides it when it optimizes a graph, by processor, type and
    environment: so a small graph is run, and looked at.
    """

    @tf.function
    def product(x, kernel, bias):
        x = tf.nn.bias_add(tf.matmul(x, kernel), bias)
        # Behind it stands something, as in every layer: an output is never fused.
        return tf.reshape(keras.activations.gelu(x, approximate=False), [-1])

    arguments = [tf.zeros(shape, dtype) for shape in ((8, 16), (16, 16), (16,))]
    context.context().enable_graph_collection()
    try:
        product(*arguments)
        collected = context.context().export_run_metadata()
    finally:
        context.context().disable_graph_collection()
    ops = {
        node.op
        for function in collected.function_graphs
        for graph in function.partition_graphs
        for node in graph.node
    }
    if any(op.startswith("_Mkl") and "MatMul" in op for op in ops):
        library = "oneDNN"
    else:
        library = accelerators()[0] if accelerators() else "Eigen"
    return library, not any("Erf" in op for op in ops)
