"""Facts of the machine that are known without TensorFlow."""

import ctypes
import os
import sys


def num_cores():
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


def return_free_memory():
    """Gives the system back what this process has freed, where glibc can.

    Batches of ever new shapes leave holes that the C library keeps for itself.

    Returns:
        bool. Whether the C library has `malloc_trim`.
    """
    trim = None
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is None:
        return False
    trim(0)
    return True
