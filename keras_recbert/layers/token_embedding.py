"""A table of vectors whose rows are cast, not the table."""

import keras


@keras.saving.register_keras_serializable("keras_recbert")
class TokenEmbedding(keras.layers.Embedding):
    """`keras.layers.Embedding`; in mixed precision it casts what it has looked up.

    That layer stands in the autocast scope of the model around it, so each call of it
    casts the whole table: 12 million numbers for a sentence of 20 words, and in
    training as many of a gradient.
    """

    def quantize(self, mode=None, type_check=False, config=None):
        # Keras leaves subclasses out, as they may compute something else.
        super().quantize(mode, type_check=False, config=config)

    def add_weight(self, *args, **kwargs):
        return super().add_weight(*args, **{"autocast": False, **kwargs})
