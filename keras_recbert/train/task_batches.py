"""Batches of several tasks, each batch of one, in an order by chance."""

import itertools

import numpy as np
import tensorflow as tf

from keras_recbert.tasks.text_batches import BucketedBatches


class TaskBatches:
    """What a run learns of several tasks, each with a head of its name.

    The batches of all tasks are shuffled together in every epoch (Liu et al. 2019,
    arXiv:1901.11504, algorithm 1; Liu 2020, section 4.1.1 and algorithm 1): a task has
    as many as it has examples for. A batch has labels of its task; the other heads get
    labels that weigh nothing, so that the loss is the one of the task.

    Args:
        config: `FineTuningConfig`.
        learned: dict of the name of a head to what it learns, `LabelledBatches` or
            `TransferBatches`.
    """

    def __init__(self, config, learned):
        self.config, self.learned = config, learned

    def __len__(self):
        return sum(map(len, self.learned.values()))

    def texts(self):
        """Yields the texts to learn a vocabulary from."""
        return itertools.chain.from_iterable(
            learned.texts() for learned in self.learned.values()
        )

    def checksums(self):
        """Checksums of what is learned beside the examples of the run, a dict."""
        return {
            f"{name} {key}": value
            for name, learned in self.learned.items()
            for key, value in learned.checksums().items()
        }

    def facts(self):
        """What results say of it: a dict of JSON."""
        facts = {name: learned.facts() for name, learned in self.learned.items()}
        return {"tasks": facts} if any(facts.values()) else {}

    def batches(self, model, batch_size, scale):
        """The `BucketedBatches` of the model, whose elements have weights by head.

        Raises:
            ValueError: in the scope of a strategy of several devices.
        """
        num_devices = tf.distribute.get_strategy().num_replicas_in_sync
        if num_devices > 1:
            raise ValueError(
                "Several tasks are learned on one device. Received: a strategy of "
                f"{num_devices}. Use strategy='one_device' (--strategy one_device)."
            )
        made = [
            learned.batches(model.head_view(name), min(batch_size, len(learned)), scale)
            for name, learned in self.learned.items()
        ]
        specs = {
            name: batches.dataset.element_spec[1]
            for name, batches in zip(self.learned, made, strict=True)
        }
        datasets = [
            batches.dataset.map(_for_head(name, specs))
            for name, batches in zip(specs, made, strict=True)
        ]
        numbers = [len(batches.lengths) for batches in made]
        order = np.repeat(np.arange(len(made), dtype=np.int64), numbers)
        choice = tf.data.Dataset.from_tensor_slices(order)
        choice = choice.shuffle(len(order), seed=self.config.seed)
        dataset = tf.data.Dataset.choose_from_datasets(datasets, choice)
        dataset = dataset.apply(tf.data.experimental.assert_cardinality(len(order)))
        return BucketedBatches(
            dataset.prefetch(tf.data.AUTOTUNE),
            tuple(length for batches in made for length in batches.lengths),
            sum(batches.num_rows for batches in made),
        )

    def compile_arguments(self, head):
        """What `compile_for_fine_tuning` takes beside the schedule: a dict."""
        own = {
            name: learned.compile_arguments(head.heads[name])
            for name, learned in self.learned.items()
        }
        first = next(iter(own.values()))
        by_head = {
            key: {name: arguments[key] for name, arguments in own.items()}
            for key in ("loss", "metrics")
            if key in first
        }
        return {**first, **by_head}

    def class_weights(self):
        """None: each example counts the same."""
        return None


def _for_head(name, specs):
    """From features and targets of a head to targets and weights of all heads."""

    @tf.autograph.experimental.do_not_convert
    def make(features, targets):
        num_rows = tf.shape(targets)[:1]
        every = {
            other: tf.zeros(tf.concat([num_rows, spec.shape[1:]], 0), spec.dtype)
            for other, spec in specs.items()
        }
        weights = {other: tf.zeros(num_rows) for other in specs}
        weights[name] = tf.ones(num_rows)
        return features, {**every, name: targets}, weights

    return make
