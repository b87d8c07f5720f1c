"""What users register: blocks, heads, packers, encoders, data sets, names."""

import contextlib
import sys

from keras_recbert.blocks import block_kind
from keras_recbert.data import task_spec
from keras_recbert.heads import head
from keras_recbert.models import encoder, encoders, registry
from keras_recbert.text import packers


@contextlib.contextmanager
def registries_kept():
    """Forgets afterwards what was registered, and the modules that did.

    Other tests count what is registered.
    """
    assert "RecBertEncoder" in encoders.list_encoders()  # imported before
    registries = [
        registry._CARDS,
        block_kind._KINDS,
        head._HEADS,
        encoder._ENCODERS,
        packers.PACKERS,  # of the module that imports those of the package
        task_spec._TASKS,
    ]
    before = [dict(one.entries) for one in registries]
    modules = set(sys.modules)
    try:
        yield
    finally:
        for name in set(sys.modules) - modules:
            if name.startswith("my_"):
                del sys.modules[name]
        for one, kept in zip(registries, before, strict=True):
            one.entries = kept
