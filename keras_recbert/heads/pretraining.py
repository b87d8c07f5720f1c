"""The heads of the pre-training objectives."""

import keras

from keras_recbert.heads.head import Head
from keras_recbert.heads.pretraining_losses import (
    CountedAccuracy,
    CountedAUC,
    CountedCrossentropy,
    TokenAccuracy,
    TokenBinaryCrossentropy,
    TokenCrossentropy,
)
from keras_recbert.layers.common import bert_initializer
from keras_recbert.layers.masked_lm_head import MaskedLMHead
from keras_recbert.models.recbert_encoder import make_next_sentence_head


class ObjectiveHead(Head):
    """A head of a pre-training objective.

    Attributes:
        layer: `keras.layers.Layer` with the weights of the head.
        inputs: tuple of str. int32 inputs `(batch_size, num_positions)` that the head
            reads beside those of the encoder.

    Args:
        name: str. The objective; also the name of the output.
        encoder: `RecBertEncoder`.
    """

    inputs = ()

    def __init__(self, name, encoder):
        self.name = name
        self.layer = self._make_layer(encoder)

    def loss(self):
        return keras.losses.SparseCategoricalCrossentropy(
            from_logits=True, name=self.name
        )

    def metrics(self, prefix=""):
        """New metrics, whose names start with `prefix`."""
        return [
            CountedAccuracy(name=f"{prefix}accuracy"),
            CountedCrossentropy(from_logits=True, name=f"{prefix}cross_entropy"),
        ]

    def _make_layer(self, encoder):
        raise NotImplementedError


class LanguageModelHead(ObjectiveHead):
    """Guesses word pieces at some positions (Devlin et al. 2018, section 3.3.1)."""

    inputs = ("mask_positions",)

    def _make_layer(self, encoder):
        return MaskedLMHead(
            encoder.config["vocabulary_size"],
            encoder.hidden_dim,
            encoder.embeddings.token_embedding,
            encoder.config["implementation"],
            dtype=encoder.policy,
            name=self.name,
        )

    def connect(self, outputs):
        rows = self.reading.rows(outputs)
        return self.layer(rows, outputs.inputs["mask_positions"])


class NextSentenceHead(ObjectiveHead):
    """Says whether the second text follows the first (Devlin et al. 2018, 3.3.2).

    The encoder's, if that has one.
    """

    def _make_layer(self, encoder):
        return encoder.next_sentence_head or make_next_sentence_head()

    def connect(self, outputs):
        if self.layer is outputs.encoder.next_sentence_head:
            return outputs.next_sentence(self.reading.layer)
        return self.layer(self.reading.rows(outputs))


class BigramShiftHead(ObjectiveHead):
    """Says of each word piece whether it is in place (Aksoy et al. 2020, section 3).

    Logits are `(batch_size, sequence_length)`; above 0, out of place.
    """

    def _make_layer(self, encoder):
        return keras.layers.Dense(
            1,
            kernel_initializer=bert_initializer(),
            dtype="float32",
            name=f"{self.name}_head",
        )

    def connect(self, outputs):
        squeeze = keras.layers.Reshape((-1,), dtype="float32", name=self.name)
        return squeeze(self.layer(self.reading.rows(outputs)))

    def loss(self):
        return TokenCrossentropy(name=self.name)

    def metrics(self, prefix=""):
        return [
            TokenAccuracy(name=f"{prefix}accuracy"),
            CountedAUC(from_logits=True, name=f"{prefix}auc"),
            TokenBinaryCrossentropy(name=f"{prefix}cross_entropy"),
        ]


OBJECTIVE_HEADS = {
    "masked_lm": LanguageModelHead,
    "next_sentence": NextSentenceHead,
    "bigram_shift": BigramShiftHead,
    "causal_lm": LanguageModelHead,
}
