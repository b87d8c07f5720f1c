"""Words and their vectors for an encoder that reads words."""

import os

from keras_recbert.builder.encoder import encoder_class

WORD_ARGUMENTS = ("vectors", "texts", "max_words", "min_frequency")


def take_words(card, overrides):
    """Takes what `build` is told of words out of its arguments.

    Args:
        card: `keras_recbert.models.registry.ModelCard`.
        overrides: dict, as of `keras_recbert.build`.

    Returns:
        Tuple of the other arguments, with the `vocabulary` and the sizes that follow,
        and of `WordVectors` or None. Of an encoder that reads no words the arguments
        as they are, and None.

    Raises:
        FileNotFoundError, ValueError: as `keras_recbert.text.learn_words`; for
            arguments that do not go together.
    """
    if not encoder_class(card.encoder).reads_words:
        return overrides, None
    rest = {k: v for k, v in overrides.items() if k not in WORD_ARGUMENTS}
    given = {k: overrides[k] for k in WORD_ARGUMENTS if overrides.get(k) is not None}
    if not given:
        return rest, None
    vectors = given.get("vectors")
    if rest.get("vocabulary") is None:
        from keras_recbert.text.word_vocabulary import learn_words

        text = {k: rest[k] for k in ("lowercase", "strip_accents") if k in rest}
        rest["vocabulary"], vectors = learn_words(**given, **text)
    else:
        vectors = _of_vocabulary(rest["vocabulary"], given)
    if vectors is None:
        return rest, None
    dim = vectors.vector_dim
    if rest.setdefault("vector_dim", dim) != dim:
        raise ValueError(
            f"The vectors of {vectors.source} are {dim} wide. Received: vector_dim="
            f"{rest['vector_dim']}. Leave it out."
        )
    # Kim 2014, section 3.1: given vectors, as they are and trained.
    rest.setdefault("channels", "multichannel")
    return rest, vectors


def _of_vocabulary(vocabulary, given):
    """The vectors of the words of a vocabulary, or None."""
    others = [name for name in given if name != "vectors"]
    if others:
        raise ValueError(
            f"{', '.join(f'`{name}`' for name in others)} say which words a vocabulary "
            "has. Received beside a `vocabulary`. Leave one out."
        )
    from keras_recbert.text.vocabulary import check_vocabulary, load_vocabulary
    from keras_recbert.text.word_vocabulary import read_vectors_of

    is_path = isinstance(vocabulary, (str, os.PathLike))
    words = load_vocabulary(vocabulary) if is_path else check_vocabulary(vocabulary)
    return read_vectors_of(words, given["vectors"])


def set_vectors(encoder, vocabulary, vectors):
    """Gives an encoder the vectors of its words.

    Args:
        encoder: `Encoder` that reads words.
        vocabulary: sequence of str.
        vectors: `WordVectors`.
    """
    from keras.src.backend.common.stateless_scope import in_stateless_scope

    if in_stateless_scope():
        return  # weights get shapes only
    place = {word: index for index, word in enumerate(vocabulary)}
    ids = [place[word] for word in vectors.words]
    encoder.embeddings.set_vectors(ids, vectors.vectors)
    encoder.fine_tuning = {
        **encoder.fine_tuning,
        "start": f"vectors of {vectors.source}",
    }
