"""Memory that was freed goes back to the system while the server runs."""

import asyncio
import ctypes
import sys

SECONDS = 10  # between two times


async def return_memory():
    """Gives freed memory back now and again, until cancelled, where glibc can."""
    while await asyncio.to_thread(return_free_memory):
        await asyncio.sleep(SECONDS)


def return_free_memory():
    """Gives the system back what this process has freed.

    Batches of ever new shapes leave holes that the C library keeps for itself.

    Returns:
        bool. Whether the C library has `malloc_trim`, as glibc has.
    """
    trim = None
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is None:
        return False
    trim(0)
    return True
