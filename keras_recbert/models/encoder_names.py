"""Names in an encoder that other parts go by. Imports no TensorFlow."""

# Weights that a checkpoint may lack.
POOLER = ("pooler/kernel", "pooler/bias")
# The layer of an encoder whose tokens are read beside its logits.
NEXT_SENTENCE = "next_sentence"
