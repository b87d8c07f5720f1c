"""Names versions and devices for the results of a run, and writes them as JSON."""

import platform

import keras
import tensorflow as tf

import keras_recbert
from keras_recbert.core.machine import num_cores


def versions():
    """Versions that a score may depend on."""
    return {
        "keras_recbert": keras_recbert.__version__,
        "keras": keras.__version__,
        "tensorflow": tf.__version__,
        "python": platform.python_version(),
    }


def device_name():
    """The GPUs or cores that trained the model, in words."""
    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        details = tf.config.experimental.get_device_details(gpus[0])
        return f"{len(gpus)} x {details.get('device_name', 'GPU')}"
    cpus = tf.config.threading.get_intra_op_parallelism_threads() or num_cores()
    return f"CPU, {cpus} cores, {platform.machine()}"
