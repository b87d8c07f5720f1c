"""A tag for each word: named entities, parts of speech."""

import numpy as np
import tensorflow as tf

from keras_recbert.core.checks import check_positive
from keras_recbert.core.names import nearest
from keras_recbert.heads.blstm_decoder import check_decoder, decode
from keras_recbert.heads.entity_spans import entity_spans
from keras_recbert.heads.head import Head, as_array, register_head
from keras_recbert.heads.token_loss import IGNORED, TokenLoss
from keras_recbert.heads.word_accuracy import WordAccuracy
from keras_recbert.metrics.tagging import (
    ENTITY_METRICS,
    METRICS,
    are_entity_tags,
    tagging_scores,
)

SHOWN = 20  # tags in a message


@register_head
class TokenClassifierHead(Head):
    """A tag for each word, read at its first word piece (Devlin et al. 2018, section
    5.3).

    Where the tags are `O` and such as `B-person` (IOB1, IOB2, IOBES) it gives the
    entities, too.

    Args:
        label_names: sequence of str. The tags; the position of one is its id.
        decoder: `"linear"`, BERT's; or `"blstm"`, two bidirectional LSTMs before it,
            as Devlin et al. 2018, section 5.4, read features of an encoder that is not
            trained (`freeze="encoder"`).
        decoder_units: int. Units of a direction of `"blstm"`.

    Raises:
        ValueError: if there are fewer than two tags, one is empty, or one comes twice;
            for an unknown decoder.
    """

    task = "token_classifier"
    metric_names = ("accuracy",)
    more_metrics = ENTITY_METRICS
    packer = "WordPreprocessor"
    reads = "tokens"
    checks_batches = True

    def __init__(self, label_names, decoder="linear", decoder_units=768):
        label_names = list(label_names)
        is_valid = all(isinstance(name, str) and name for name in label_names)
        if len(label_names) < 2 or len(set(label_names)) < len(label_names):
            is_valid = False
        if not is_valid:
            raise ValueError(
                "`label_names` must be two different tags or more, strings that are "
                f"not empty. Received: label_names={label_names}."
            )
        check_decoder(decoder)
        check_positive(decoder_units=decoder_units)
        super().__init__(len(label_names))
        self.label_names = label_names
        self.decoder = decoder
        self.decoder_units = decoder_units

    def connect(self, outputs, dropout=None):
        """Logits `(num_rows, sequence_length, num_tags)`."""
        tokens = self.reading.rows(outputs)
        if dropout is not None:
            tokens = dropout(tokens)
        mask, policy = outputs.inputs["padding_mask"], outputs.encoder.policy
        return self.logits(
            decode(self.decoder, tokens, mask, self.decoder_units, policy)
        )

    @property
    def has_entities(self):
        """Whether the tags are those of entities."""
        return are_entity_tags(self.label_names)

    def loss(self):
        return TokenLoss()

    def metrics(self):
        return [WordAccuracy(name="accuracy")]

    def as_targets(self, labels, own_loss=False):
        """Ids of the tags of tokens or words, -1 for those that do not count.

        Raises:
            ValueError: for other labels than int `(num_rows, number)` from -1 on.
        """
        labels = as_array(labels)
        if own_loss:
            return labels
        if labels.ndim != 2 or labels.dtype.kind not in "iu":
            raise ValueError(
                "`y` must hold a tag for each word: lists of names or ids, or int "
                f"(num_examples, num_words), -1 behind the last word. Received: shape "
                f"{labels.shape}, dtype {labels.dtype}."
            )
        for index, place in np.argwhere(
            (labels < IGNORED) | (labels >= len(self.label_names))
        ):
            raise self._unknown(int(labels[index, place]), index, place)
        return labels.astype(np.int32)

    def read_labels(self, fields, labels, own_loss=False):
        """Ids of the tags, from tags in the forms that users have.

        Args:
            fields: dict of the column of `words`.
            labels: list of lists of names or ids of tags, one a word; or int
                `(num_examples, num_words)`, -1 behind the last word.

        Returns:
            int32 `(num_examples, most words of an example)`, -1 behind the last word.

        Raises:
            ValueError: for a tag that is not among `label_names`, or a number of tags
                that is not that of the words; names the example and the word.
        """
        counts = _word_counts(fields["words"])
        if len(counts) != len(labels):
            raise ValueError(
                "`y` must hold the tags of each example. Received: "
                f"{len(counts)} examples of words, {len(labels)} of tags."
            )
        if isinstance(labels, np.ndarray) and labels.ndim == 2:
            targets = self.as_targets(labels, own_loss)
            given = [int((row != IGNORED).sum()) for row in targets]
            self._check_counts(counts, given)
            return targets
        self._check_counts(counts, [len(tags) for tags in labels])
        targets = np.full((len(labels), max(counts, default=0)), IGNORED, np.int32)
        ids = {name: index for index, name in enumerate(self.label_names)}
        for index, tags in enumerate(labels):
            for place, tag in enumerate(tags):
                targets[index, place] = self._id(ids, tag, index, place)
        return targets

    @staticmethod
    def _check_counts(counts, given):
        for index, (number, tags) in enumerate(zip(counts, given, strict=True)):
            if number != tags:
                raise ValueError(
                    f"`y` must hold a tag for each word. Received: {number} words and "
                    f"{tags} tags at index {index}."
                )

    def _id(self, ids, tag, index, place):
        tag = tag.decode() if isinstance(tag, bytes) else tag
        if isinstance(tag, str) and tag in ids:
            return ids[tag]
        is_id = isinstance(tag, (int, np.integer)) and not isinstance(tag, bool)
        if is_id and 0 <= tag < len(ids):
            return tag
        raise self._unknown(tag, index, place)

    def _unknown(self, tag, index, place):
        names = self.label_names
        near = nearest(tag, names) if isinstance(tag, str) else ""
        shown = ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
        return ValueError(
            f"`y` must hold tags among {shown}, or their ids, 0 to {len(names) - 1}. "
            f"Received: {tag!r} for word {place} at index {index}. {near}".rstrip()
        )

    def row_targets(self, rows, targets):
        """Targets of tokens: that of the word at its first word piece, else -1.

        Returns:
            int32 `tf.RaggedTensor` `(num_rows, None)`, as long as the rows.
        """
        targets = tf.gather(tf.cast(targets, tf.int32), rows["example"])
        # An empty batch of targets has no column to take.
        targets = tf.pad(targets, [[0, 0], [0, 1]], constant_values=IGNORED)
        word = rows["word"]
        of_word = tf.gather(targets, tf.maximum(word, 0), batch_dims=1)
        of_token = tf.where(word >= 0, of_word, IGNORED)
        return tf.ragged.boolean_mask(of_token, rows["padding_mask"] > 0)

    def answer(self, logits):
        """Probabilities of the tags of tokens.

        Returns:
            dict of `scores`, float32 `(num_rows, sequence_length, num_tags)`.
        """
        return {"scores": tf.nn.softmax(logits)}

    def answer_rows(self, logits, rows, columns):
        """What the SavedModel gives for words.

        Returns:
            dict of `tags` (string `(batch_size, num_words)`, `""` behind the last word)
            and `scores` (float32, the probability of each, 0 there). Of tags of
            entities also `entity_labels` (string `(batch_size, most entities)`, `""`
            behind the last entity), `entity_starts` and `entity_ends` (int32, the
            position of the first word and the one after the last; -1 there).
        """
        shape = tf.shape(columns[0])
        place = tf.where(rows["word"] >= 0)
        word = tf.gather_nd(rows["word"], place)
        example = tf.gather(rows["example"], place[:, 0])
        index = tf.stack([example, word], axis=1)
        logits = tf.gather_nd(logits, place)
        best = tf.argmax(logits, axis=1, output_type=tf.int32)
        tag_ids = tf.fill(shape, IGNORED)
        tag_ids = tf.tensor_scatter_nd_update(tag_ids, index, best)
        score = tf.reduce_max(tf.nn.softmax(logits), axis=1)
        names = tf.constant([*self.label_names, ""])
        answers = {
            "tags": tf.gather(
                names, tf.where(tag_ids < 0, len(self.label_names), tag_ids)
            ),
            "scores": tf.scatter_nd(index, score, shape),
        }
        if self.has_entities:
            labels, starts, ends = entity_spans(tag_ids, self.label_names)
            answers["entity_labels"] = labels
            answers["entity_starts"], answers["entity_ends"] = starts, ends
        return answers

    def answer_text(self, answers, texts, words, starts, ends):
        """What the SavedModel gives for raw texts, of what it gives for their words.

        Args:
            answers: dict, as of `answer_rows`.
            texts: string `(batch_size,)`.
            words, starts, ends: as of `WordPreprocessor.split_text`.

        Returns:
            `answers` with `words`, string `(batch_size, num_words)`, bytes of the
            texts; `word_starts` and `word_ends`, int32, the first byte of each and the
            one after its last. `entity_starts` and `entity_ends` are bytes of the texts
            instead of words, and `entities`, string, those from one to the other.
        """
        answers = {**answers, "words": words, "word_starts": starts, "word_ends": ends}
        if self.has_entities:
            first, last = answers["entity_starts"], answers["entity_ends"] - 1
            begin, end = _at(starts, first), _at(ends, last)
            answers["entities"] = tf.strings.substr(
                tf.repeat(texts[:, tf.newaxis], tf.shape(first)[1], axis=1),
                tf.maximum(begin, 0),
                tf.maximum(end - begin, 0),
            )
            answers["entity_starts"], answers["entity_ends"] = begin, end
        return answers

    def scores(self, metric_names, labels, predictions):
        """Scores of tags, see `keras_recbert.metrics.tagging.tagging_scores`.

        Args:
            metric_names: sequence of str.
            labels: tags as for `read_labels`, names or ids.
            predictions: dict of arrays, as `answer_rows` gives them.
        """
        gold = [list(map(self._name, tags)) for tags in labels]
        found = [
            [tag.decode() for tag in row[: len(tags)]]
            for row, tags in zip(predictions["tags"], gold, strict=True)
        ]
        return tagging_scores(metric_names, gold, found)

    def _name(self, tag):
        return tag if isinstance(tag, str) else self.label_names[tag]

    @classmethod
    def check_metrics(cls, names, arguments):
        super().check_metrics(names, arguments)
        tags = arguments.get("label_names", ())
        wrong = [name for name in names if name in ENTITY_METRICS]
        if wrong and not are_entity_tags(tags):
            raise ValueError(
                f"{', '.join(wrong)} need tags of entities, O and such as B-person. "
                f"Received: label_names={list(tags)[:SHOWN]}. Use the metric "
                f"{METRICS[0]!r}."
            )


def _word_counts(words):
    """Number of words of each example, whatever the form of the column."""
    if tf.is_tensor(words):
        if isinstance(words, tf.RaggedTensor):
            return words.row_lengths().numpy().tolist()
        words = words.numpy()
    if isinstance(words, np.ndarray) and words.ndim == 2:
        positions = np.arange(1, words.shape[1] + 1)
        is_word = np.vectorize(len, otypes=[int])(words) > 0
        return (is_word * positions).max(axis=1, initial=0).tolist()
    return [len(sentence) for sentence in words]


def _at(values, places):
    """`values` at `places` of each row, -1 where these are negative."""
    padded = tf.pad(values, [[0, 0], [0, 1]], constant_values=-1)
    found = tf.gather(padded, tf.maximum(places, 0), batch_dims=1)
    return tf.where(places >= 0, found, -1)
