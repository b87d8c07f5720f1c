"""What TensorFlow's compiler writes to standard error."""

import ctypes
import os

import tensorflow as tf

# `absl::SetMinLogLevel(absl::LogSeverityAtLeast)` in the version of Abseil that each
# release of TensorFlow carries; Python has no other way to it.
_SET_MIN_LOG_LEVEL = "_ZN4absl12lts_2025012714SetMinLogLevelENS0_18LogSeverityAtLeastE"
_WARNING, _ERROR = 1, 2


def quiet_compiler():
    """Leaves out notes of TensorFlow's compiler such as "Compiled cluster using XLA!".

    `TF_CPP_MIN_LOG_LEVEL`, TensorFlow's variable for all other notes, is followed
    where it is set; 0 shows them. Errors always are. In a TensorFlow with another
    Abseil the notes stay.
    """
    level = os.environ.get("TF_CPP_MIN_LOG_LEVEL", "")
    level = int(level) if level.isdecimal() else _WARNING
    library = f"libtensorflow_framework.so.{tf.__version__.partition('.')[0]}"
    try:
        loaded = ctypes.CDLL(os.path.join(tf.sysconfig.get_lib(), library))
        set_level = getattr(loaded, _SET_MIN_LOG_LEVEL)
    except (OSError, AttributeError):  # a note on the screen is no reason to fail
        return
    set_level(ctypes.c_int(min(level, _ERROR)))
