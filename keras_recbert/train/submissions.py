"""Predictions of test splits of a registered task, for its leaderboard."""

import dataclasses
from collections.abc import Mapping

from keras_recbert.data.examples import Examples
from keras_recbert.data.task_files import load_tests
from keras_recbert.data.task_spec import TaskSpec, get_task, list_tasks
from keras_recbert.heads import get_head


@dataclasses.dataclass(frozen=True, eq=False)
class SubmissionFiles:
    """Test splits that a run predicts at its end.

    Args:
        task: `TaskSpec` with a `submission`.
        examples: dict of test split to `Examples`.
    """

    task: TaskSpec
    examples: Mapping[str, Examples]

    @classmethod
    def read(cls, task, data_dir):
        """Reads the test files of a task that are in a folder.

        Args:
            task: `TaskSpec`.
            data_dir: the task's own folder, or the one above it.

        Raises:
            ValueError: if the task has no leaderboard; where a file is not as it
                should be.
            MissingSplitError: if there is no test file.
        """
        if task.submission is None:
            valid = [one for one in list_tasks() if get_task(one).submission]
            raise ValueError(
                f"`submission` is for tasks with a leaderboard: {', '.join(valid)}. "
                f"Received: task={task.name!r}. Leave submission (--submission) out."
            )
        return cls(task, load_tests(task, data_dir, task.submission.files))

    def write(self, folder, predict):
        """Predicts the examples and writes a file a split.

        Args:
            folder: path.
            predict: function from `Examples` to logits.
        """
        head = get_head(self.task.head)(**self.task.head_arguments)
        for split, examples in self.examples.items():
            path = folder / self.task.submission.files[split]
            print(f"Predicting {len(examples):,} examples of {split} ...", flush=True)
            predictions = head.predictions(predict(examples))
            self.task.submission.write(path, examples.ids, predictions)
            print(f"Wrote {path} for the leaderboard.", flush=True)
