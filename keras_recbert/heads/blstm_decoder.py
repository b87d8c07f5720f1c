"""Two bidirectional LSTMs between an encoder and a head that reads tokens."""

from keras_recbert.layers.bidirectional_lstm import BidirectionalLSTM

DECODERS = ("linear", "blstm")
BLSTM_DECODER_LAYERS = 2  # Huang et al. 2020, section 3.3; Devlin et al. 2018, 5.4


def check_decoder(decoder):
    """Raises `ValueError` for a word that names no decoder."""
    if decoder not in DECODERS:
        raise ValueError(
            f"`decoder` must be one of {', '.join(map(repr, DECODERS))}. "
            f"Received: decoder={decoder!r}."
        )


def decode(decoder, tokens, padding_mask, units, policy):
    """What a head reads of tokens: themselves, or the outputs of two BiLSTMs.

    Args:
        decoder: one of `DECODERS`.
        tokens: float `(num_rows, sequence_length, dim)`, a Keras tensor.
        padding_mask: int `(num_rows, sequence_length)`.
        units: int. Units of a direction.
        policy: `keras.DTypePolicy`.

    Returns:
        `tokens`, or float `(num_rows, sequence_length, 2 * units)`.
    """
    if decoder == "blstm":
        for number in range(BLSTM_DECODER_LAYERS):
            name = f"decoder_{number}"
            blstm = BidirectionalLSTM(units, dtype=policy, name=name)
            tokens = blstm(tokens, padding_mask=padding_mask)
    return tokens
