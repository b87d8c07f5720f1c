"""What is known of a sentence, behind each of its tokens."""

import keras
from keras import ops

from keras_recbert.layers.checked_layer import ROWS, CheckedLayer


@keras.saving.register_keras_serializable("keras_recbert")
class ConcatenateSentence(CheckedLayer):
    """Concatenates one vector a row to every token of that row.

    Aksoy et al. 2020, section 3 and figure 2: the vector is the output of `[CLS]` or
    that of the next sentence head.

    Call arguments:
        inputs: float, `(batch_size, sequence_length, dim)`.
        sentence: float, `(batch_size, sentence_dim)`.

    Returns:
        float, `(batch_size, sequence_length, dim + sentence_dim)`.
    """

    call_shapes = {
        "inputs": (*ROWS, "dim"),
        "sentence": ("batch_size", "sentence_dim"),
    }
    built_axis = None

    def call(self, inputs, sentence):
        shape = (*ops.shape(inputs)[:2], sentence.shape[-1])
        repeated = ops.broadcast_to(sentence[:, None], shape)
        return ops.concatenate([inputs, repeated], axis=-1)

    def compute_output_shape(self, inputs_shape, sentence_shape):
        return (*inputs_shape[:2], inputs_shape[-1] + sentence_shape[-1])
