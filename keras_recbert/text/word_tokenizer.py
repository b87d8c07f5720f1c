"""In-graph tokenizer of whole words."""

import reprlib

import keras

from keras_recbert.core.registry import Registry
from keras_recbert.text.wordpiece_tokenizer import WordPieceTokenizer


@keras.saving.register_keras_serializable("keras_recbert")
class WordTokenizer(WordPieceTokenizer):
    """Splits texts into words and looks each up; one that is not there is `[UNK]`.

    Words are those of BERT's basic tokenization: separated by white space, each
    punctuation character one of its own, see `split_words`. It is WordPiece without
    pieces that continue a word, so all packers take it, and the words are a constant of
    the graph that a SavedModel keeps.

    Args:
        vocabulary: str, path or list of str. Words, or the path of a file of them, one
            a line. `[PAD]`, `[UNK]`, `[CLS]` and `[SEP]` must be among them;
            `keras_recbert.text.learn_words` makes such a list.
        lowercase, strip_accents, read_masks, call arguments, returns, raises: as for
            `WordPieceTokenizer`.

    Example:

    ```python
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "film", "."]
    WordTokenizer(words)("A films.")  # [[4, 1, 6]]
    ```
    """

    def __init__(self, vocabulary, lowercase=True, strip_accents=None, **kwargs):
        super().__init__(vocabulary, lowercase, strip_accents, **kwargs)
        pieces = [word for word in self.vocabulary if word.startswith("##")]
        if pieces:
            raise ValueError(
                "A vocabulary of words has no word pieces. Received: "
                f"{len(pieces):,} that begin with '##', {reprlib.repr(pieces)}. Is it "
                "the vocab.txt of a BERT? Leave vocabulary out to take the words of "
                "texts, or use a WordPieceTokenizer."
            )


TOKENIZERS = Registry("tokenizer")
for _class in (WordPieceTokenizer, WordTokenizer):
    TOKENIZERS.add(_class.__name__, _class)


def get_tokenizer(name):
    """The class of tokenizer of a name.

    Raises:
        UnknownNameError: if there is none.
    """
    return TOKENIZERS[name]
