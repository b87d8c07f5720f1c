"""In-graph tokenizer of whole words."""

import reprlib

import keras
import tensorflow as tf

from keras_recbert.core.checks import check_integer
from keras_recbert.core.registry import Registry
from keras_recbert.text.wordpiece_tokenizer import WordPieceTokenizer


@keras.saving.register_keras_serializable("keras_recbert")
class WordTokenizer(WordPieceTokenizer):
    """Splits texts into words and looks each up.

    Words are those of BERT's basic tokenization: separated by white space, each
    punctuation character one of its own, see `split_words`. It is WordPiece without
    pieces that continue a word, so all packers take it, and the words are a constant of
    the graph that a SavedModel keeps.

    A word that is not there is `[UNK]`; with `num_oov_buckets` it has one of so many
    ids behind the vocabulary, by its hash, as of `tf.lookup.StaticVocabularyTable`.
    Most unknown words then differ, and each has the same id wherever it stands.

    Args:
        vocabulary: str, path or list of str. Words, or the path of a file of them, one
            a line. `[PAD]`, `[UNK]`, `[CLS]` and `[SEP]` must be among them;
            `keras_recbert.text.learn_words` makes such a list.
        lowercase, strip_accents, read_masks: as for `WordPieceTokenizer`.
        num_oov_buckets: int. Number of ids for words that are not in the vocabulary;
            0, all are `[UNK]`.

    Call arguments, returns: as for `WordPieceTokenizer`.

    Raises:
        ValueError, TypeError: as `WordPieceTokenizer`; for a vocabulary of word pieces;
            if `num_oov_buckets` is no whole number of at least 0.

    Example:

    ```python
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "film", "."]
    WordTokenizer(words)("A films.")  # [[4, 1, 6]]
    ```
    """

    def __init__(
        self,
        vocabulary,
        lowercase=True,
        strip_accents=None,
        num_oov_buckets=0,
        **kwargs,
    ):
        check_integer(least=0, num_oov_buckets=num_oov_buckets)
        self.num_oov_buckets = num_oov_buckets
        super().__init__(vocabulary, lowercase, strip_accents, **kwargs)
        pieces = [word for word in self.vocabulary if word.startswith("##")]
        if pieces:
            raise ValueError(
                "A vocabulary of words has no word pieces. Received: "
                f"{len(pieces):,} that begin with '##', {reprlib.repr(pieces)}. Is it "
                "the vocab.txt of a BERT? Leave vocabulary out to take the words of "
                "texts, or use a WordPieceTokenizer."
            )

    @property
    def vocabulary_size(self):
        """Number of ids: of words, and of buckets of unknown ones."""
        return len(self.vocabulary) + self.num_oov_buckets

    def id_to_token(self, token_id):
        """Returns the word of one id; of a bucket `[UNK]`.

        Raises:
            IndexError: if there is no such id.
        """
        is_bucket = len(self.vocabulary) <= token_id < self.vocabulary_size
        return super().id_to_token(self.unk_id if is_bucket else token_id)

    def options(self):
        buckets = {"num_oov_buckets": self.num_oov_buckets}
        return super().options() | (buckets if self.num_oov_buckets else {})

    def _with_buckets(self, ids, words):
        if not self.num_oov_buckets:
            return ids
        # One id a word, in their order.
        found, words = ids.flat_values, words.flat_values
        bucket = tf.strings.to_hash_bucket_fast(words, self.num_oov_buckets)
        own = len(self.vocabulary) + tf.cast(bucket, found.dtype)
        # "[UNK]" itself is no word of a text, but what a mask became.
        is_unknown = (found == self.unk_id) & (words != "[UNK]")
        return ids.with_flat_values(tf.where(is_unknown, own, found))

    def _without_buckets(self, ids):
        return tf.where(ids < len(self.vocabulary), ids, self.unk_id)


TOKENIZERS = Registry("tokenizer")
for _class in (WordPieceTokenizer, WordTokenizer):
    TOKENIZERS.add(_class.__name__, _class)


def get_tokenizer(name):
    """The class of tokenizer of a name.

    Raises:
        UnknownNameError: if there is none.
    """
    return TOKENIZERS[name]
