"""Names in an encoder that other parts go by. Imports no TensorFlow."""

# Where an encoder is read, which its weights leave open: arguments of the encoder.
LEVELS = ("sentence_layer", "token_layer", "concatenate")
# Weights that a checkpoint may lack.
POOLER = ("pooler/kernel", "pooler/bias")
