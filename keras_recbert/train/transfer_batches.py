"""Batches of a run that learns from a teacher: a transfer set, streamed from disk."""

import numpy as np
import tensorflow as tf

from keras_recbert.losses.distillation import DistillationLoss, TeacherAgreement
from keras_recbert.tasks.text_batches import BucketedBatches, pack
from keras_recbert.text.wordpiece_tokenizer import MASK

# Records that are shuffled together, and batches of texts of similar length that are
# cut out of as many records. Shards are read in another order each epoch, too.
SHUFFLED_RECORDS = 1 << 16
BATCHES_AT_A_TIME = 64


class TransferBatches:
    """What a run learns from the logits of a teacher.

    Args:
        config: `keras_recbert.config.DistillationConfig`.
        transfer: `keras_recbert.data.transfer_set.TransferSet`.
        facts: dict of JSON, what results say of teacher and transfer set.
    """

    def __init__(self, config, transfer, facts):
        self.config, self.transfer, self._facts = config, transfer, facts

    def __len__(self):
        return self.transfer.num_records

    def texts(self):
        """Yields the texts to learn a vocabulary from; checks their keys on the way."""
        for texts, _, _ in self.transfer.records():
            yield from (text.replace(MASK, " ") for text in texts)

    def checksums(self):
        """Checksum of all records, a dict."""
        return {"transfer_set": self.transfer.sha256()}

    def facts(self):
        """What results say of it: a dict of JSON."""
        return self._facts

    def batches(self, model, batch_size, scale):
        """The batches, as `BucketedBatches`, whose `lengths` are those of a sample.

        Each epoch shuffles shards and records, takes `BATCHES_AT_A_TIME` batches at a
        time, sorts their texts by their bytes, and shuffles the batches. Memory does
        not grow with the transfer set.

        Args:
            model: `TextModel` whose examples are one row each.
            batch_size: int.
            scale: optional `LabelScale`, that of the validation labels.
        """
        dataset = self._dataset(model, batch_size, scale)
        num_batches = -(-len(self) // batch_size)
        sample = [
            int(features["token_ids"].shape[1])
            for features, _ in dataset.take(BATCHES_AT_A_TIME)
        ]
        lengths = tuple(np.resize(sample, num_batches).tolist())
        dataset = dataset.apply(tf.data.experimental.assert_cardinality(num_batches))
        return BucketedBatches(dataset, lengths, len(self))

    def _dataset(self, model, batch_size, scale):
        transfer, seed = self.transfer, self.config.seed
        packer = model.preprocessor.reading_masks()
        needs_labels = self.config.label_weight > 0

        @tf.autograph.experimental.do_not_convert
        def by_length(serialized):
            records = tf.io.parse_example(serialized, transfer.features)
            texts = [records[name] for name in transfer.fields]
            size = tf.add_n([tf.strings.length(column) for column in texts])
            order = tf.argsort(size, stable=True)
            columns = (*texts, records["logits"], records["label"])
            sorted_columns = tuple(tf.gather(column, order) for column in columns)
            return tf.data.Dataset.from_tensor_slices(sorted_columns).batch(batch_size)

        @tf.autograph.experimental.do_not_convert
        def make(*columns):
            *texts, logits, label = columns
            if scale is not None:
                logits = (logits - scale.mean) / scale.deviation
                label = (label - scale.mean) / scale.deviation
            if needs_labels:
                logits = tf.concat([logits, label[:, None]], axis=1)
            return pack(packer, tuple(texts)), logits

        paths = tf.data.Dataset.from_tensor_slices(transfer.paths)
        paths = paths.shuffle(len(transfer.paths), seed=seed)
        dataset = paths.interleave(
            tf.data.TFRecordDataset, cycle_length=8, block_length=64
        )
        dataset = dataset.shuffle(min(SHUFFLED_RECORDS, len(self)), seed=seed)
        dataset = dataset.batch(batch_size * BATCHES_AT_A_TIME).flat_map(by_length)
        dataset = dataset.shuffle(BATCHES_AT_A_TIME, seed=seed)
        dataset = dataset.map(
            make, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True
        )
        return dataset.prefetch(tf.data.AUTOTUNE)

    def compile_arguments(self, head):
        """What `compile_for_fine_tuning` takes beside the schedule: a dict."""
        config = self.config
        loss = DistillationLoss(
            config.objective, config.temperature, config.label_weight
        )
        is_classifier = head.task == "classifier"
        return {
            "loss": loss,
            "metrics": [TeacherAgreement()] if is_classifier else [],
            "optimizer": config.optimizer,
        }

    def class_weights(self):
        """None: the teacher has learned what the classes weigh."""
        return None
