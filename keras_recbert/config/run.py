"""What the options of every run have in common."""

import dataclasses
from typing import ClassVar

from keras_recbert.core.checks import check_seed

PRECISIONS = ("auto", "float32", "bfloat16")
STRATEGIES = ("auto", "one_device", "mirrored", "tpu")


class RunConfig:
    """What the options of every run have in common.

    Attributes:
        command: str. The command of `recbert` that runs it.
    """

    command: ClassVar[str]

    def changes(self, stopped):
        """What must be the same to resume a run, and is not.

        Args:
            stopped: dict of the fields of that run, as JSON gives them back.

        Returns:
            str such as `steps=10 (now 20)`; empty if nothing stands against it.
        """
        # Options that there were not yet when it was stopped had their defaults.
        stopped = {**dataclasses.asdict(type(self)()), **stopped}
        free = self._free_options()
        return ", ".join(
            f"{name}={stopped[name]!r} (now {value!r})"
            for name, value in dataclasses.asdict(self).items()
            if name not in free and stopped[name] != value
        )

    def _free_options(self):
        """Options that may change when a run resumes."""
        return ["output_dir", "strategy", "overwrite"]

    def _check_shared(self):
        """Checks the options that both kinds of run have."""
        check_seed(self.seed)
        check(self.precision in PRECISIONS, self, "precision", " or ".join(PRECISIONS))
        paths = ("data_dir", "corpus", "output_dir", "weights", "vocabulary")
        paths += ("vectors",)
        for name in (*paths, "train", "validation", "test"):
            if getattr(self, name, None) == "":
                raise ValueError(
                    f"`{name}` is an empty path. Name one, or leave {name} out."
                )
        self._check_overrides()

    def _check_overrides(self):
        """Refuses sizes that would silently take the place of an option."""
        options = {field.name: field.name for field in dataclasses.fields(self)}
        options["dtype"] = "precision"
        for name in self.overrides:
            if name in options:
                raise ValueError(
                    f"`{options[name]}` is an option of its own. Received: {name!r} in "
                    f"overrides={self.overrides!r}. Write {options[name]} beside "
                    "overrides."
                )


def check(valid, config, name, rule):
    """Raises `ValueError` for an option of a config that is not `valid`.

    Args:
        valid: bool.
        config: dataclass.
        name: str. The option.
        rule: str. What it must be.
    """
    if not valid:
        raise ValueError(
            f"`{name}` must be {rule}. Received: {name}={getattr(config, name)!r}."
        )
