import asyncio
import ctypes
import pathlib
import resource
import sys

import pytest

from keras_recbert.server import memory

BLOCK, BLOCKS = 1024, 65_536


def resident_bytes():
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


@pytest.mark.skipif(sys.platform != "linux", reason="/proc and glibc are of Linux")
def test_memory_below_a_block_in_use_goes_back():
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "malloc_trim"):
        pytest.skip("a C library that is not glibc")
    libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    blocks = [libc.malloc(ctypes.c_size_t(BLOCK)) for _ in range(BLOCKS)]
    for block in blocks:
        ctypes.memset(block, 1, BLOCK)
    *blocks, last = blocks  # what is above the others keeps them
    for block in blocks:
        libc.free(block)
    before = resident_bytes()
    assert memory.return_free_memory()
    assert before - resident_bytes() > BLOCK * BLOCKS / 2
    libc.free(last)


def test_memory_goes_back_again_and_again(monkeypatch):
    answers = [True, True, False]  # False: the C library cannot
    monkeypatch.setattr(memory, "SECONDS", 0)
    monkeypatch.setattr(memory, "return_free_memory", lambda: answers.pop(0))
    asyncio.run(asyncio.wait_for(memory.return_memory(), 10))
    assert answers == []
