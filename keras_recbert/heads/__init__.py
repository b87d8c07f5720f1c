"""Heads: what a task model computes from an encoder, one file each."""

# The heads of the package, imported for their registration.
from keras_recbert.heads import (  # noqa: F401
    classification,
    multilabel,
    regression,
)
from keras_recbert.heads.head import Head, get_head, list_heads, register_head

__all__ = ["Head", "get_head", "list_heads", "register_head"]
