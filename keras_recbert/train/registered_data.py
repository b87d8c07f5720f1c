"""What a run on a registered task writes of its validation set."""

import dataclasses

from keras_recbert.data.examples import Examples
from keras_recbert.data.task_spec import TaskSpec
from keras_recbert.heads import get_head
from keras_recbert.train.multilabel_report import write_multilabel_report
from keras_recbert.train.predictions import write_example_predictions
from keras_recbert.train.report import write_report

# Heads whose labels and logits a report reads.
REPORTED = ("classifier", "multilabel_classifier", "regressor")
SPLIT = "validation"  # in the names of files
SEPARATOR = "|"


@dataclasses.dataclass(frozen=True, eq=False)
class ValidationReport:
    """Predictions and a report on the split that decides which epoch is kept.

    Args:
        task: `TaskSpec` with `write`, or whose head is one of `REPORTED`.
        examples: `Examples` of the split.
        seed: int.
    """

    task: TaskSpec
    examples: Examples
    seed: int

    @classmethod
    def of(cls, task, validation_examples, seed):
        """That of a run; None for a head of the user's, whose labels have any form,
        unless the task writes files of its own.

        Args:
            task: `TaskSpec`.
            validation_examples: dict of split name to `Examples`.
            seed: int.
        """
        reported = task.head in REPORTED and task.targets == ("label",)
        if not reported and task.write is None:
            return None
        return cls(task, next(iter(validation_examples.values())), seed)

    def finish(self, folder, train_examples, predict):
        """Writes both; the `finish` of `training_run.train`.

        Args:
            folder: path.
            train_examples: `Examples` that were trained on.
            predict: function from `Examples` to logits.

        Returns:
            dict, empty: the scores of a registered task are those that it names.
        """
        if self.task.write is not None:
            self.task.write(folder, self.examples, predict(self.examples))
            return {}
        head = get_head(self.task.head)(**self.task.head_arguments)
        examples, logits = _with_targets(head, self.examples), predict(self.examples)
        names = getattr(head, "label_names", None)
        is_multilabel = self.task.head == "multilabel_classifier"
        separator = SEPARATOR if is_multilabel else None
        path = folder / "predictions.csv"
        write_example_predictions(path, examples, logits, names, separator)
        if is_multilabel:
            write_multilabel_report(folder, SPLIT, examples, logits, names)
            return {}
        train_examples = _with_targets(head, train_examples)
        write_report(folder, SPLIT, train_examples, examples, logits, names, self.seed)
        return {}


def _with_targets(head, examples):
    """The examples with labels as the head learns them: ids of one-hot rows."""
    label = head.as_targets(examples.targets["label"])
    return dataclasses.replace(examples, targets={"label": label})
