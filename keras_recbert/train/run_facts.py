"""Names versions and devices for the results of a run, and writes them as JSON."""

import os
import platform

import keras
import tensorflow as tf

import keras_recbert


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
    cpus = tf.config.threading.get_intra_op_parallelism_threads() or _num_cpus()
    return f"CPU, {cpus} cores, {platform.machine()}"


def _num_cpus():
    return (
        len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count()
    )
