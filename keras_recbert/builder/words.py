"""Words and their vectors, or the word pieces of a BERT and theirs."""

import inspect
import os

from keras_recbert.builder.encoder import encoder_class

# In place of a file of vectors: those of `keras_recbert.text.learn_vectors`, or drawn.
LEARNED, RANDOM = "learned", "random"
WORD_ARGUMENTS = ("vectors", "texts", "max_words", "min_frequency")


def take_words(card, overrides):
    """Takes what `build` is told of words out of its arguments.

    Args:
        card: `keras_recbert.models.registry.ModelCard`.
        overrides: dict, as of `keras_recbert.build`.

    Returns:
        Tuple of the other arguments, with the `vocabulary` and the sizes that follow;
        `WordVectors` or None; and the name of the tokenizer. Of an encoder that takes
        no vectors the arguments as they are, and None.

    Raises:
        FileNotFoundError, ValueError: as `keras_recbert.text.learn_words` and
            `keras_recbert.convert.token_table.read_token_table`; for arguments that do
            not go together.
    """
    cls = encoder_class(card.encoder)
    if not (cls.takes_vectors or cls.reads_words):
        return overrides, None, cls.tokenizer
    from keras_recbert.convert.token_table import TokenTable, is_folder

    vectors = overrides.get("vectors")
    if is_folder(vectors) or isinstance(vectors, TokenTable):
        return *_take_word_pieces(card, overrides), "WordPieceTokenizer"
    if cls.reads_words:
        return *_take_words(card, overrides), cls.tokenizer
    if vectors is not None:
        raise ValueError(
            f"{card.name!r} reads word pieces, whose vectors come from the folder of a "
            f"BERT. Received: vectors={vectors!r}."
        )
    return overrides, None, cls.tokenizer


def vector_dim(card, overrides):
    """Width of the vectors of an encoder that has them, an int."""
    default = inspect.signature(encoder_class(card.encoder)).parameters["vector_dim"]
    return {"vector_dim": default.default, **card.sizes, **overrides}["vector_dim"]


def _take_words(card, overrides):
    """Vocabulary and vectors of whole words."""
    rest = {k: v for k, v in overrides.items() if k not in WORD_ARGUMENTS}
    given = {k: overrides[k] for k in WORD_ARGUMENTS if overrides.get(k) is not None}
    if given.get("vectors") == RANDOM:
        del given["vectors"]
    if not given:
        return rest, None
    text = {k: rest[k] for k in ("lowercase", "strip_accents") if k in rest}
    if given.get("vectors") == LEARNED:
        dim = vector_dim(card, rest)
        rest["vocabulary"], vectors = _learn(given, rest.get("vocabulary"), dim, text)
    elif rest.get("vocabulary") is None:
        from keras_recbert.text.word_vocabulary import learn_words

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
    rest.setdefault("channels", vectors.channels)
    return rest, vectors


def _learn(given, vocabulary, dim, text):
    """Vocabulary and vectors of `texts`."""
    from keras_recbert.text.learned_vectors import learn_vectors
    from keras_recbert.text.word_vocabulary import learn_words

    if given.get("texts") is None:
        raise ValueError(
            f"Vectors are learned from `texts`. Received: vectors={LEARNED!r} without "
            "them. Pass texts=[...]."
        )
    texts = list(given["texts"])
    if vocabulary is None:
        limits = {k: v for k, v in given.items() if k not in ("vectors", "texts")}
        vocabulary, _ = learn_words(texts, **limits, **text)
    return vocabulary, learn_vectors(texts, vocabulary, dim, **text)


def _take_word_pieces(card, overrides):
    """Vocabulary and token table of a BERT, at the width of the encoder's vectors."""
    from keras_recbert.convert.token_table import TokenTable, read_token_table

    rest = {k: v for k, v in overrides.items() if k not in WORD_ARGUMENTS}
    others = [k for k in WORD_ARGUMENTS[1:] if overrides.get(k) is not None]
    if others:
        raise ValueError(
            f"{', '.join(f'`{name}`' for name in others)} say which words a vocabulary "
            "has. Received beside the folder of a BERT as `vectors`, whose word pieces "
            "are the vocabulary. Leave one out."
        )
    table = overrides["vectors"]
    if not isinstance(table, TokenTable):
        table = read_token_table(table)
    take_vocabulary(table, table.words, rest, f"of {table.source}")
    dim = min(vector_dim(card, {}), table.vector_dim)
    dim = rest.setdefault("vector_dim", dim)
    rest.setdefault("channels", table.channels)
    return rest, table.project(dim)


def take_vocabulary(source, words, arguments, what):
    """Sets what arguments leave open about the text to what a BERT has.

    Args:
        source: has `lowercase` and `strip_accents`.
        words: tuple of str, the word pieces of the BERT; None where it names none.
        arguments: dict, changed in place.
        what: str. Whose word pieces these are.

    Raises:
        ValueError: for a `vocabulary` of other word pieces.
    """
    for key in ("lowercase", "strip_accents"):
        if getattr(source, key) is not None:
            arguments.setdefault(key, getattr(source, key))
    given = arguments.get("vocabulary")
    if words is None:
        return
    if given is not None:
        from keras_recbert.text.vocabulary import check_vocabulary, load_vocabulary

        is_path = isinstance(given, (str, os.PathLike))
        given = load_vocabulary(given) if is_path else check_vocabulary(given)
        if tuple(given) != words:
            raise ValueError(
                f"`vocabulary` differs from that {what}: its embeddings would be "
                f"those of other word pieces. Received: {len(given)} word pieces; "
                f"the BERT has {len(words)}. Leave it out to take the BERT's."
            )
    arguments["vocabulary"] = list(words)


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
