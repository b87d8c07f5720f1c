"""Which kinds of encoder there are."""

from keras_recbert.models import (  # noqa: F401  register their classes
    bi_attentive_encoder,
    recbert_encoder,
    word_blstm_encoder,
)
from keras_recbert.models.encoder import get_encoder, list_encoders

__all__ = ["get_encoder", "list_encoders"]
