"""What an encoder gives for some inputs, block by block, for heads to read."""

import keras

from keras_recbert.layers.concatenate_sentence import ConcatenateSentence
from keras_recbert.layers.scalar_mix import ScalarMix
from keras_recbert.models.encoder import FreezableModel


class EncoderOutputs:
    """Outputs of one call of an encoder; several heads share what they read.

    Args:
        encoder: `Encoder`.
        inputs: dict of Keras tensors: those of the encoder, and of heads. By default
            the encoder is not called: its own graph is read, which tells its layers
            apart.
    """

    def __init__(self, encoder, inputs=None):
        self.encoder = encoder
        self.inputs = encoder.input if inputs is None else inputs
        self._own_graph = inputs is None
        self._outputs = encoder.output if inputs is None else encoder(self._features())
        self._found = {}
        self._layers = {}
        self._num_mixes = 0

    def tokens(self, layer=None, concatenate=None, sentence_layer=None, combine=None):
        """A row for each token.

        Args:
            layer: int. 0, the embeddings; a block, from 1; None, the last block. A
                tuple of them is combined.
            concatenate: what stands behind each token (Aksoy et al. 2020, section 3,
                figure 2): `"cls"`, the first token of `sentence_layer`;
                `"next_sentence"`, the logits of the encoder's next sentence head
                there; None, nothing.
            sentence_layer: int. Block, from 1; None, the last.
            combine: of a tuple of layers, `"concatenate"`, `"sum"` or
                `"weighted_sum"`, with weights that each call makes anew.

        Returns:
            float, `(batch_size, sequence_length, dim)`.
        """
        if isinstance(layer, tuple):
            hidden = self._combined([self._block(one) for one in layer], combine)
        else:
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

    def _combined(self, hidden, combine):
        policy = self.encoder.policy
        if combine == "weighted_sum":
            name = f"scalar_mix_{self._num_mixes}" if self._num_mixes else "scalar_mix"
            self._num_mixes += 1
            mix = ScalarMix(dtype=policy, name=name)
            return mix(keras.ops.stack(hidden, axis=-1))
        if len(hidden) == 1:
            return hidden[0]
        cls = {"sum": keras.layers.Add, "concatenate": keras.layers.Concatenate}
        return cls[combine](dtype=policy)(hidden)

    def _pooled_at(self, layer):
        return self.encoder.pooler(self._first(layer))

    def _first(self, layer):
        mask = self.inputs["padding_mask"]
        return self._once(
            "first", layer, lambda at: self.encoder.pool_token(self._block(at), mask)
        )

    def _block(self, layer):
        if layer == 0:
            return self._once("embeddings", layer, lambda at: self._embeddings())
        if self.encoder.is_last(layer):
            return self._outputs["sequence_output"]
        return self._outputs["encoder_outputs"][layer - 1]

    def _embeddings(self):
        """What is below the blocks, which no encoder has among its outputs."""
        encoder = self.encoder
        if self._own_graph:
            return encoder.embeddings.output
        below = FreezableModel(
            encoder.input, encoder.embeddings.output, name="embedding_output"
        )
        return below(self._features())

    def _features(self):
        return {name: self.inputs[name] for name in self.encoder.input}

    def _once(self, what, layer, compute):
        key = what, None if self.encoder.is_last(layer) else layer
        if key not in self._found:
            self._found[key] = compute(layer)
        return self._found[key]


def unread_layers(encoder, readings):
    """Layers of an encoder that no head reads: training leaves them as they are.

    Such as the pooler, or blocks above the one that is read.

    Args:
        encoder: `Encoder`.
        readings: sequence of `keras_recbert.heads.reading.Reading`.

    Returns:
        list of layers.
    """
    outputs = EncoderOutputs(encoder)
    rows = [reading.rows(outputs) for reading in readings]
    read = keras.Model(encoder.input, rows).layers
    layers = [*encoder.layers]
    if encoder.next_sentence_head is not None:
        layers.append(encoder.next_sentence_head)
    return [layer for layer in layers if layer not in read]
