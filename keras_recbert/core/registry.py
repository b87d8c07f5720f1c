"""What is registered by name: blocks, heads, encoders, packers, tasks, cards."""

import fnmatch

from keras_recbert.core.names import UnknownNameError, nearest


class Registry:
    """A mapping of names to what they stand for, in the order of registration.

    Args:
        what: str. The word for one of them in messages, such as `"task"`.
        reserved: names that nothing is registered under.
        spelling: function of a name to what must agree for it to be the same.
        hint: str. Where to look for an unknown name; by default all names.
    """

    def __init__(self, what, reserved=(), spelling=str, hint=None):
        self._what, self._hint = what, hint
        self._reserved, self._spelling = tuple(reserved), spelling
        self.entries = {}  # by spelling: the name and what it stands for

    def add(self, name, entry):
        """Registers under a name.

        Raises:
            ValueError: if the name is taken, or empty.
        """
        taken = (*self.names(), *self._reserved)
        if not name or self._spelling(name) in map(self._spelling, taken):
            raise ValueError(
                f"A {self._what} needs a name of its own. Received: {name!r}. Taken: "
                f"{', '.join(taken)}."
            )
        self.entries[self._spelling(name)] = name, entry

    def __getitem__(self, name):
        """What is registered under a name.

        Raises:
            UnknownNameError: if there is nothing; names the nearest.
        """
        key = self._spelling(name)
        if key not in self.entries:
            hint = self._hint or f"Valid: {', '.join(self.names())}."
            raise UnknownNameError(
                f"No {self._what} is called {name!r}. "
                f"{nearest(name, self.names())}{hint}"
            )
        return self.entries[key][1]

    def __contains__(self, name):
        return self._spelling(name) in self.entries

    def names(self, pattern="*"):
        """The names that match a shell pattern such as `"*blstm*"`: a list."""
        names = (name for name, _ in self.entries.values())
        return [name for name in names if fnmatch.fnmatchcase(name, pattern)]
