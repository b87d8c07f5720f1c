"""One teacher or several, which answer with the mean of their logits."""

import dataclasses
import hashlib

import numpy as np

from keras_recbert.train.teacher import TaskTeacher, Teacher


def load_teachers(paths, precision, batch_size=128):
    """Loads the teachers of a run.

    Args:
        paths: str, path or sequence of them, see `Teacher`.
        precision: `keras_recbert.train.precision.Precision`.
        batch_size: int. Texts that a model reads at a time.

    Returns:
        list of `Teacher`.

    Raises:
        As `Teacher`.
    """
    paths = paths if isinstance(paths, (list, tuple)) else [paths]
    return [Teacher(path, precision, batch_size) for path in paths]


@dataclasses.dataclass(frozen=True, eq=False)
class TeacherEnsemble:
    """Teachers of one task, each with one vote, as in Liu et al. 2019 (1904.09482).

    Args:
        members: list of `TaskTeacher`, one at least, of one number of logits.
    """

    members: list[TaskTeacher]

    @classmethod
    def of_task(cls, teachers, task):
        """The teachers of a task; raises as `Teacher.of_task` where one is not."""
        return cls([teacher.of_task(task) for teacher in teachers])

    @property
    def checksum(self):
        """Checksum of weights, tokenizers and arguments, a str."""
        sums = [member.teacher.checksum for member in self.members]
        if len(sums) == 1:
            return sums[0]
        return hashlib.sha256(" ".join(sums).encode()).hexdigest()

    @property
    def places(self):
        """The teacher's logit of each of the student's; of several, a list of each."""
        places = [member.places for member in self.members]
        return places[0] if len(places) == 1 else places

    @property
    def num_logits(self):
        """Logits of an example, an int."""
        return len(self.members[0].places)

    def num_parameters(self):
        """Weights of all of them, an int."""
        return sum(member.teacher.model.count_params() for member in self.members)

    def logits(self, columns):
        """Mean of the logits, as `TaskTeacher.logits` gives them."""
        return np.mean([member.logits(columns) for member in self.members], axis=0)
