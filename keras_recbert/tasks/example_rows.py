"""Examples that a packer gives one row of, or several."""

import numpy as np
import tensorflow as tf

from keras_recbert.tasks.padding import to_padded_length

PACK_CHUNK = 2048  # texts tokenized at a time; bounds the padded copy in memory


def of_rows(preprocessor, packed, targets, row_targets):
    """What the encoder takes of each row, and the targets of each row.

    Args:
        preprocessor: `Packer`.
        packed: dict, as `pack` gives it.
        targets: tuple of labels and weights, an item an example each; or None.
        row_targets: `Head.row_targets`; not called where an example is one row.

    Returns:
        Tuple of a dict and a tuple or None.
    """
    names = preprocessor.row_features
    if not names:
        return packed, targets
    features = {name: ids for name, ids in packed.items() if name not in names}
    if not targets:
        return features, targets
    rows = {name: packed[name] for name in (*names, "padding_mask")}
    labels, *weights = targets
    weights = [tf.gather(weight, rows["example"]) for weight in weights]
    return features, (row_targets(rows, labels), *weights)


def padded_targets(targets, length):
    """Targets of rows, those of tokens padded with -1 to the length of the rows.

    Args:
        targets: nest of tensors; those of tokens are ragged, see `Head.row_targets`.
        length: int or int32 scalar.

    Returns:
        The same nest of tensors `(num_rows, ...)`.
    """

    def padded(target):
        if isinstance(target, tf.RaggedTensor):
            return target.to_tensor(-1, shape=tf.stack([-1, length]))
        return target

    return tf.nest.map_structure(padded, targets)


def join(features, targets):
    """What `fit` takes: features alone, or in a tuple before their padded targets."""
    if not targets:
        return features
    return (features, *padded_targets(targets, tf.shape(features["token_ids"])[-1]))


class ExampleRows:
    """Rows of many examples, tokenized once and kept without padding.

    Args:
        preprocessor: `Packer`.
        parts: tuple of string tensors, a field each, as `Packer.columns` gives them.
        targets: tuple of labels and weights, as for `ordered_batches`.
        row_targets: as for `of_rows`.
        keep_features: bool. Whether `features` are needed.

    Attributes:
        token_ids, segment_ids: int32 `tf.RaggedTensor` `(num_rows, None)`; of examples
            with choices or windows `(num_examples, None, None)`.
        features: dict of the `row_features` of the packer: ragged too, but for
            `example`, int32 `(num_rows,)`.
        targets: the same of tensors `(num_rows, ...)`, those of tokens ragged.
    """

    def __init__(
        self, preprocessor, parts, targets=(), row_targets=None, keep_features=True
    ):
        self._preprocessor = preprocessor
        kept = ("token_ids", "segment_ids")
        self._kept = (*kept, *preprocessor.row_features) if keep_features else kept
        chunks, all_targets = [], []
        for start in range(0, len(parts[0]), PACK_CHUNK):
            chunk = slice(start, start + PACK_CHUNK)
            packed = preprocessor(tuple(part[chunk] for part in parts))
            _, own = of_rows(
                preprocessor,
                packed,
                tf.nest.map_structure(
                    lambda one, chunk=chunk: tf.convert_to_tensor(one[chunk]), targets
                ),
                row_targets,
            )
            all_targets.append(own)
            chunks.append(self._without_padding(packed, start))
        together = {
            name: tf.concat([chunk[name] for chunk in chunks], axis=0)
            for name in chunks[0]
        }
        self.token_ids = together.pop("token_ids")
        self.segment_ids = together.pop("segment_ids")
        self.features = together
        self.targets = tf.nest.map_structure(
            lambda *chunks: tf.concat(chunks, axis=0), *all_targets
        )

    def _without_padding(self, packed, first):
        mask = tf.cast(packed["padding_mask"], tf.bool)

        def unpadded(feature):
            tokens = tf.ragged.boolean_mask(feature, mask)
            if mask.shape.rank == 2:
                return tokens
            return tf.ragged.boolean_mask(tokens, tf.reduce_any(mask, -1))

        ids = {
            name: unpadded(feature)
            for name, feature in packed.items()
            if name in self._kept and name != "example"
        }
        if "example" in self._kept:
            ids["example"] = packed["example"] + first
        return ids

    @property
    def num_rows(self):
        return int(self.token_ids.nrows())

    @property
    def lengths(self):
        """Tokens of each row, int64 `(num_rows,)`; with choices or windows of the
        longest one."""
        if self.token_ids.ragged_rank == 1:
            return self.token_ids.row_lengths()
        return tf.reduce_max(self.token_ids.row_lengths(axis=2), axis=1)

    @property
    def longest_first(self):
        """Positions of the rows by length: what does not fit in memory fails at once.

        int64 array `(num_rows,)`.
        """
        return np.argsort(-self.lengths.numpy(), kind="stable")

    @property
    def rows_per_example(self):
        """Mean number of choices or windows, a float; 1 without."""
        if self.token_ids.ragged_rank == 1:
            return 1.0
        return float(tf.reduce_mean(tf.cast(self.token_ids.row_lengths(), "float64")))

    def gather(self, indices):
        """Some rows, as long as the longest of them; called in a graph.

        Args:
            indices: int `(batch_size,)`.

        Returns:
            Tuple of what the encoder takes, a dict of int32 `(batch_size, length)`,
            with `example` if features are kept; and the targets.
        """
        ids = tf.gather(self.token_ids, indices)
        features = {
            "token_ids": ids.to_tensor(self._preprocessor.tokenizer.pad_id),
            "segment_ids": tf.gather(self.segment_ids, indices).to_tensor(),
            "padding_mask": tf.ones_like(ids).to_tensor(),
        }
        if "example" in self.features:
            features["example"] = tf.gather(self.features["example"], indices)
        targets = tf.nest.map_structure(
            lambda one: tf.gather(one, indices), self.targets
        )
        return features, targets

    def batches(self, batch_size, with_targets=False, order=None):
        """Batches of the rows, each padded to `padded_length`.

        Args:
            batch_size: int. Rows of a batch.
            with_targets: bool.
            order: optional int `(num_rows,)`, the positions of the rows in the order
                that they are taken in; by default their own.

        Returns:
            `tf.data.Dataset` of what `gather` gives: features alone, or in a tuple with
            the targets if there are any.
        """

        @tf.autograph.experimental.do_not_convert  # which takes longer than the trace
        def batch(indices):
            features, targets = self.gather(indices)
            features = to_padded_length(features, self._preprocessor)
            return join(features, targets if with_targets else ())

        rows = tf.data.Dataset.range(self.num_rows)
        if order is not None:
            rows = tf.data.Dataset.from_tensor_slices(order)
        batches = rows.batch(batch_size)
        batches = batches.map(batch, num_parallel_calls=tf.data.AUTOTUNE)
        return batches.prefetch(tf.data.AUTOTUNE)

    def row_features(self, rows):
        """The `row_features` of some rows, as long as rows may be.

        Args:
            rows: slice.

        Returns:
            dict of int32 tensors.
        """
        packer = self._preprocessor
        return {
            name: self.features[name][rows]
            if value is None
            else self.features[name][rows].to_tensor(value, shape=[None, packer.limit])
            for name, value in packer.row_features.items()
        }
