"""What a run learns of several tasks, and what it is scored on."""

import dataclasses
import functools
from collections.abc import Callable

import keras_recbert
from keras_recbert.heads import get_head
from keras_recbert.text.text_preprocessor import TextPreprocessor
from keras_recbert.train.run_data import RunData
from keras_recbert.train.run_model import model_arguments, row_length
from keras_recbert.train.task_batches import TaskBatches
from keras_recbert.train.validation_split import predict_examples

MEAN = "mean"  # of the main metrics of all tasks


@dataclasses.dataclass(frozen=True, eq=False)
class SeveralTasks:
    """The examples of several tasks, which one model learns with a head for each.

    It has what `RunData` has of one task. Scores are called TASK_METRIC, and those of
    a second validation split TASK_SPLIT_METRIC; the main one is the mean of the main
    metrics of all tasks on their first validation splits.

    Args:
        data: dict of the name of a task, and of its head, to its `RunData`, of which
            `finish` is not called.
        finish: optional function that is called once the model is that of the best
            epoch, with a dict of task to a function from `Examples` to logits; it gives
            a dict of scores to add.
    """

    data: dict[str, RunData]
    finish: Callable | None = None

    metrics = (MEAN,)
    main_metric = MEAN
    test = None

    @property
    def name(self):
        return "+".join(self.data)

    @property
    def version(self):
        return {name: data.version for name, data in self.data.items()}

    @property
    def notes(self):
        return [note for data in self.data.values() for note in data.notes]

    def limited(self, limit):
        """As `RunData.limited`, of each task."""
        limited = {name: data.limited(limit) for name, data in self.data.items()}
        return dataclasses.replace(self, data=limited)

    def labelled(self, config):
        """Batches of texts and labels."""
        learned = {name: data.labelled(config) for name, data in self.data.items()}
        return TaskBatches(config, learned)

    def checksums(self):
        """Checksum of each split of each task, a dict."""
        return {
            f"{name} {split}": checksum
            for name, data in self.data.items()
            for split, checksum in data.checksums().items()
        }

    def label_scale(self):
        """None: the data sets that are registered are learned as they are."""
        return None

    def build(self, config, vocabulary, vectors, precision):
        """The model with a head for each task, untrained."""
        arguments = model_arguments(config, vocabulary, precision, vectors)
        tasks = [data.task for data in self.data.values()]
        length = max(row_length(config, task) for task in tasks)
        heads = {
            name: {
                "task": data.task.head,
                **data.task.head_arguments,
                **_of_head(data.task.head, config.overrides),
                "fields": list(TextPreprocessor.fields[: len(data.task.fields)]),
            }
            for name, data in self.data.items()
        }
        arguments["max_sequence_length"] = length
        for name in set().union(*heads.values()):
            arguments.pop(name, None)  # of heads, not of the encoder
        return keras_recbert.build(config.model, task=heads, **arguments)

    def splits(self, run, model, scale):
        """What scores the model after each epoch: a dict by validation split."""
        made = {
            name: (data, data.splits(run, model.head_view(name), scale))
            for name, data in self.data.items()
        }
        return {"validation": _TaskSplits(model, made)}

    def sizes(self):
        """What results say of the number of examples: a dict of JSON."""
        sizes = {name: data.sizes() for name, data in self.data.items()}
        return {
            "train_examples": sum(data["train_examples"] for data in sizes.values()),
            "validation_examples": {
                f"{name} {split}": number
                for name, data in sizes.items()
                for split, number in data["validation_examples"].items()
            },
        }

    def final_scores(self, run, model):
        """The scores that `finish` adds: a dict."""
        if self.finish is None:
            return {}
        return self.finish(
            {
                name: functools.partial(predict_examples, run, model.head_view(name))
                for name in self.data
            }
        )

    def warnings(self):
        """What will keep a model from learning, printed and returned as sentences."""
        return [one for data in self.data.values() for one in data.warnings()]


def _of_head(task, overrides):
    """Those of overrides that are arguments of the head of a task: a dict."""
    names = get_head(task).arguments()
    return {name: value for name, value in overrides.items() if name in names}


class _TaskSplits:
    """The validation splits of all tasks, scored as one.

    Args:
        model: the model of the run.
        tasks: dict of name to `RunData` and a dict of its `ValidationSplit`s.
    """

    def __init__(self, model, tasks):
        self._tasks = tasks
        self._views = {name: model.head_view(name) for name in tasks}

    def scores(self, model, metrics):
        """`loss`, the sum of the tasks'; scores of each task; and their `mean`."""
        found, main, loss = {}, [], 0.0
        for name, (data, splits) in self._tasks.items():
            for number, (split, one) in enumerate(splits.items()):
                scores = one.scores(self._views[name], data.metrics)
                own_loss = scores.pop("loss")
                where = name
                if number == 0:
                    main.append(scores[data.main_metric])
                    loss += own_loss
                else:
                    where = f"{name}_{split.removeprefix('validation_')}"
                found |= {f"{where}_{key}": value for key, value in scores.items()}
        return {"loss": loss, **found, MEAN: sum(main) / len(main)}

    def tune(self, model):
        """Lets the heads choose what follows from their splits, see `Head.tune`."""
        for name, (_, splits) in self._tasks.items():
            next(iter(splits.values())).tune(self._views[name])
