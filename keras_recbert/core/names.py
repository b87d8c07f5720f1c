"""Names that users type: what is unknown, and what may have been meant."""

import difflib


class UnknownNameError(ValueError):
    """A name under which nothing is registered in this process."""


def nearest(word, valid):
    """`"Did you mean ...? "` with the closest of `valid`, or an empty string."""
    close = difflib.get_close_matches(str(word), list(valid), n=3, cutoff=0.5)
    return f"Did you mean {' or '.join(map(repr, close))}? " if close else ""


def check_arguments(what, arguments, valid):
    """Raises `ValueError` for the first of `arguments` that is not `valid`."""
    for key, value in arguments.items():
        if key not in valid:
            raise ValueError(
                f"{what} takes no argument {key!r}. Received: {key}={value!r}. "
                f"{nearest(key, valid)}Valid: {', '.join(valid)}."
            )
