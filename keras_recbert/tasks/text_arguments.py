"""Arguments of a task model that are about its text."""

from keras_recbert.text.word_tokenizer import WordTokenizer, get_tokenizer

TOKENIZER_ARGUMENTS = ("vocabulary", "lowercase", "strip_accents", "num_oov_buckets")


def check_preprocessor(preprocessor, encoder):
    """Raises `ValueError` for a preprocessor that does not fit an encoder."""
    size = encoder.config["vocabulary_size"]
    if preprocessor.tokenizer.vocabulary_size > size:
        raise ValueError(
            "The vocabulary has more word pieces than the encoder has embeddings. "
            f"Received: {preprocessor.tokenizer.vocabulary_size} word pieces, "
            f"vocabulary_size={size}."
        )
    longest = preprocessor.sequence_length or preprocessor.max_sequence_length
    if longest > encoder.max_sequence_length:
        raise ValueError(
            "The preprocessor packs longer rows than the encoder has positions. "
            f"Received: {longest} word pieces, "
            f"max_sequence_length={encoder.max_sequence_length}."
        )


def text_arguments(packer):
    """Names of the arguments of a task that are about its text.

    Args:
        packer: class of the preprocessor; its `max_sequence_length` follows from the
            encoder.
    """
    names = (*TOKENIZER_ARGUMENTS, *packer.argument_names())
    return tuple(name for name in names if name != "max_sequence_length")


def take_text_arguments(arguments, packer, tokenizer="WordPieceTokenizer"):
    """Takes the arguments of the text out of those of a task.

    Args:
        arguments: dict, changed in place.
        packer: class of the preprocessor.
        tokenizer: str. Name of the class of the tokenizer.

    Returns:
        Tuple of the tokenizer and a dict, other arguments of the preprocessor;
        or of None and an empty dict without a vocabulary.

    Raises:
        ValueError: if there are other arguments than a vocabulary that need one; for
            `num_oov_buckets` of a tokenizer of word pieces.
    """
    names = text_arguments(packer)
    text = {key: arguments.pop(key) for key in names if key in arguments}
    vocabulary = text.pop("vocabulary", None)
    if vocabulary is not None:
        lowercase = text.pop("lowercase", True)
        strip_accents = text.pop("strip_accents", None)
        buckets = text.pop("num_oov_buckets", 0)
        make = get_tokenizer(tokenizer)
        if issubclass(make, WordTokenizer):
            return make(vocabulary, lowercase, strip_accents, buckets), text
        if buckets:
            raise ValueError(
                "`num_oov_buckets` are for whole words that a vocabulary has not. "
                f"Received: num_oov_buckets={buckets!r} with a {tokenizer}, which cuts "
                "such words into pieces. Leave it out, or build an encoder of words, "
                "such as bilstm_student."
            )
        return make(vocabulary, lowercase, strip_accents), text
    if text:
        raise ValueError(
            f"{', '.join(map(repr, text))} need a vocabulary. Pass "
            "vocabulary='vocab.txt', or a list of word pieces."
        )
    return None, {}
