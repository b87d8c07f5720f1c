"""What an encoder gives for some inputs, block by block, for heads to read."""

import keras

from keras_recbert.layers.concatenate_sentence import ConcatenateSentence


class EncoderOutputs:
    """Outputs of one call of an encoder; several heads share what they read.

    Args:
        encoder: `Encoder`.
        inputs: dict of Keras tensors: those of the encoder, and of heads.
        outputs: what the encoder gave for them; by default it is called.
    """

    def __init__(self, encoder, inputs, outputs=None):
        self.encoder = encoder
        self.inputs = inputs
        if outputs is None:
            outputs = encoder({name: inputs[name] for name in encoder.input})
        self._outputs = outputs
        self._sentences = {}
        self._layers = {}

    def tokens(self, layer=None, concatenate=None, sentence_layer=None):
        """A row for each token.

        Args:
            layer: int. Block, from 1; None, the last.
            concatenate: what stands behind each token (Aksoy et al. 2020, section 3,
                figure 2): `"cls"`, the first token of `sentence_layer`;
                `"next_sentence"`, the logits of the encoder's next sentence head
                there; None, nothing.
            sentence_layer: int. Block, from 1; None, the last.

        Returns:
            float, `(batch_size, sequence_length, dim)`.
        """
        hidden = self._block(layer)
        if concatenate is None:
            return hidden
        if concatenate == "cls":
            sentence = self._first(sentence_layer)
        else:
            sentence = self.next_sentence(sentence_layer)
        join = self.shared_layer(ConcatenateSentence, "concatenate_sentence")
        return join(hidden, sentence)

    def pooled(self, layer=None):
        """BERT's pooled output of the first token of a block.

        Of a left-to-right encoder that of the last real token.

        Returns:
            float, `(batch_size, dim)`.
        """
        if self.encoder.is_last(layer):
            return self._outputs["pooled_output"]
        return self._once("pooled", layer, self._pooled_at)

    def next_sentence(self, layer=None):
        """Logits of the encoder's next sentence head on `pooled(layer)`.

        Returns:
            float32, `(batch_size, 2)`.
        """
        head = self.encoder.next_sentence_head
        return self._once("next_sentence", layer, lambda at: head(self.pooled(at)))

    def shared_layer(self, cls, name):
        """A layer without weights that all who read these outputs share.

        Args:
            cls: class of the layer.
            name: str. Its name in the model.
        """
        if name not in self._layers:
            self._layers[name] = cls(dtype=self.encoder.policy, name=name)
        return self._layers[name]

    def _pooled_at(self, layer):
        return self.encoder.pooler(self._first(layer))

    def _first(self, layer):
        mask = self.inputs["padding_mask"]
        return self._once(
            "first", layer, lambda at: self.encoder.pool_token(self._block(at), mask)
        )

    def _block(self, layer):
        if self.encoder.is_last(layer):
            return self._outputs["sequence_output"]
        return self._outputs["encoder_outputs"][layer - 1]

    def _once(self, what, layer, compute):
        key = what, None if self.encoder.is_last(layer) else layer
        if key not in self._sentences:
            self._sentences[key] = compute(layer)
        return self._sentences[key]


def unread_layers(encoder, readings):
    """Layers of an encoder that no head reads: training leaves them as they are.

    Such as the pooler, or blocks above the one that is read.

    Args:
        encoder: `Encoder`.
        readings: sequence of `keras_recbert.heads.reading.Reading`.

    Returns:
        list of layers.
    """
    # In the graph of the encoder itself, which tells its layers apart.
    outputs = EncoderOutputs(encoder, encoder.input, encoder.output)
    rows = [reading.rows(outputs) for reading in readings]
    read = keras.Model(encoder.input, rows).layers
    layers = [*encoder.layers]
    if encoder.next_sentence_head is not None:
        layers.append(encoder.next_sentence_head)
    return [layer for layer in layers if layer not in read]
