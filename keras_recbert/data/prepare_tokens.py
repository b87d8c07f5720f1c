"""Documents to word pieces, many at a time."""

import itertools

import numpy as np
import tensorflow as tf

from keras_recbert.text.string_tensor import to_string_tensor
from keras_recbert.text.wordpiece_tokenizer import WordPieceTokenizer

_MOST_WORDS = 1 << 20  # about 200 MB


class DocumentTokenizer:
    """Cuts documents into sentences and those into word pieces.

    Sentences are found by `nupunkt`, a Punkt model (Kiss and Strunk 2006) that comes
    with its package. On real text TF Text's `StateBasedSentenceBreaker` took four
    times as long and ended sentences in "Dr.", "e.g." and "3.5".

    Args:
        vocabulary: list of str.
        lowercase: bool.
        strip_accents: bool or None.
        sentences: str. split: paragraphs are split into sentences; lines: each is one.
    """

    def __init__(self, vocabulary, lowercase, strip_accents, sentences):
        self._tokenizer = WordPieceTokenizer(vocabulary, lowercase, strip_accents)
        self._is_continuation = np.array(
            [piece.startswith("##") for piece in self._tokenizer.vocabulary]
        )
        self._split = None
        if sentences == "split":
            import nupunkt

            self._split = nupunkt.load("default").tokenize

        self._forget()

    def __call__(self, documents):
        """Cuts documents.

        Args:
            documents: list of lists of str, the paragraphs of each.

        Returns:
            list, for each document its `(token_ids, sentence_lengths)`: int32 and int64
            arrays, without empty sentences; and a dict of counts.
        """
        sentences, counts = [], []
        for paragraphs in documents:
            before = len(sentences)
            for paragraph in paragraphs:
                sentences.extend(self._split(paragraph) if self._split else [paragraph])
            counts.append(len(sentences) - before)
        ids, lengths = self._cut(sentences)
        sentence_ends = np.cumsum(counts)[:-1]
        token_ends = np.concatenate([[0], np.cumsum(lengths)])[sentence_ends]
        cut = [
            (token_ids, sentence_lengths[sentence_lengths > 0])
            for token_ids, sentence_lengths in zip(
                np.split(ids, token_ends), np.split(lengths, sentence_ends), strict=True
            )
        ]
        return cut, {
            "documents": sum(len(token_ids) > 0 for token_ids, _ in cut),
            "empty_documents": sum(len(token_ids) == 0 for token_ids, _ in cut),
            "sentences": int(np.count_nonzero(lengths)),
            "words": len(ids) - int(np.count_nonzero(self._is_continuation[ids])),
            "tokens": len(ids),
            "unknown_tokens": int(np.count_nonzero(ids == self._tokenizer.unk_id)),
        }

    def _cut(self, sentences):
        """Cuts sentences, each distinct word once.

        What is between two spaces is cut alike wherever it stands, and looking it up
        is twice as fast as cutting it again.

        Args:
            sentences: list of str.

        Returns:
            int32 ids of all sentences, and the int64 number of ids of each.
        """
        if len(self._words) > _MOST_WORDS:
            self._forget()
        words, num_words = [], []
        for sentence in sentences:
            words_of_sentence = sentence.split(" ")
            words += words_of_sentence
            num_words.append(len(words_of_sentence))
        rows = np.fromiter(map(self._words.__getitem__, words), np.int64, len(words))
        self._learn()
        starts, ends = self._ends[rows], self._ends[rows + 1]
        lengths = ends - starts
        word_ends = np.concatenate([[0], np.cumsum(lengths)])
        # Piece p of a word is at starts + p, and goes to word_ends + p.
        places = np.arange(word_ends[-1]) + np.repeat(starts - word_ends[:-1], lengths)
        sentence_ends = word_ends[np.cumsum(num_words, dtype=np.int64)]
        return self._ids[places], np.diff(sentence_ends, prepend=0)

    def _forget(self):
        self._words = _Rows()
        self._ids = np.zeros(0, np.int32)  # of all words, one after the other
        self._ends = np.zeros(1, np.int64)

    def _learn(self):
        new = list(itertools.islice(self._words, len(self._ends) - 1, None))
        if not new:
            return
        cut = self._tokenizer(to_string_tensor(new))
        self._ids = np.concatenate([self._ids, cut.flat_values.numpy()])
        ends = self._ends[-1] + cut.row_splits.numpy()[1:]
        self._ends = np.concatenate([self._ends, ends])


class _Rows(dict):
    """Numbers words as they are asked for, from 0."""

    def __missing__(self, word):
        self[word] = row = len(self)
        return row


def to_record(token_ids, sentence_lengths):
    """Serialises a document as a `tf.train.Example`."""
    return tf.train.Example(
        features=tf.train.Features(
            feature={
                "sentence_lengths": _integers(sentence_lengths),
                "token_ids": _integers(token_ids),
            }
        )
    ).SerializeToString(deterministic=True)


def _integers(values):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values.tolist()))
