"""Batches of a run that learns from labels."""

from keras_recbert.data.examples import texts_in
from keras_recbert.tasks.text_batches import bucketed_batches
from keras_recbert.train.run_model import class_weights
from keras_recbert.train.validation_split import labels_of, learned_labels


class LabelledBatches:
    """What a run learns from labels.

    Args:
        config: `FineTuningConfig`.
        task: `TaskSpec`.
        examples: `Examples`.
    """

    def __init__(self, config, task, examples):
        self.config, self.task, self.examples = config, task, examples

    def __len__(self):
        return len(self.examples)

    def texts(self):
        """Texts to learn a vocabulary from, a list of str."""
        columns = self.examples.fields.values()
        return [text for column in columns for one in column for text in texts_in(one)]

    def batches(self, model, batch_size, scale):
        """The `BucketedBatches` of the model."""
        return bucketed_batches(
            model.preprocessor,
            tuple(self.examples.fields.values()),
            (learned_labels(model, self.examples, scale),),
            batch_size,
            self.config.seed,
            model.head.row_targets,
        )

    def compile_arguments(self, head):
        """What `compile_for_fine_tuning` takes beside the schedule: a dict."""
        return {}

    def checksums(self):
        """Checksums of what is learned beside the examples of the run: none, a dict."""
        return {}

    def facts(self):
        """What results say of it: a dict of JSON."""
        return {}

    def class_weights(self):
        """Weight of each class in the loss, by id, or None."""
        return class_weights(self.config, self.task, labels_of(self.examples))
