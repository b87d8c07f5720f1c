"""Heads: what a task model computes from an encoder, one file each."""

# The heads of the package, imported for their registration.
from keras_recbert.heads import (  # noqa: F401
    classification,
    multilabel,
    multiple_choice,
    question_answering,
    regression,
    token_classification,
)
from keras_recbert.heads.head import Head, get_head, list_heads, register_head
from keras_recbert.heads.named_heads import NamedHeads

__all__ = ["Head", "NamedHeads", "get_head", "list_heads", "register_head"]
