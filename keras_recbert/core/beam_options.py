"""Options of Apache Beam, as users write them. Imports no Beam."""

import shlex


def needs_beam(pattern, num_workers, beam_options):
    """Whether an input is many files, or other processes or machines are to read it."""
    many = any(character in pattern for character in "*?[") or "://" in pattern
    return many or num_workers > 1 or bool(beam_options)


def read_beam_options(options, num_workers, name="num_workers"):
    """Options of Apache Beam as a list.

    Args:
        options: str, as in a shell, or list of str.
        num_workers: int. Processes of the runner on this machine.
        name: str. What messages call `num_workers`.

    Returns:
        list of str.

    Raises:
        ValueError: if a quotation does not end, or if both a runner and a number of
            processes are named.
    """
    if isinstance(options, str):
        try:
            options = shlex.split(options)
        except ValueError as error:
            raise ValueError(
                f"`beam_options`: {error}. Received: {options!r}."
            ) from None
    if num_workers > 1 and any("--runner" in option for option in options):
        raise ValueError(
            f"`{name}` is for the runner on this machine. Received: {name}="
            f"{num_workers} and a --runner in `beam_options`. Leave one of them out."
        )
    return options
