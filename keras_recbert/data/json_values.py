"""Values of the objects of a JSON file, checked; each error says where it is."""

SHOWN = 60  # characters of a value in a message


def present(where, row, name):
    """The value under a name.

    Args:
        where: str. The place of the object, such as `FILE:LINE`.
        row: dict.
        name: str.

    Raises:
        ValueError: if there is none.
    """
    if name not in row:
        raise ValueError(
            f"{where}: there is no {name!r}. Found "
            f"{', '.join(map(repr, row)) or 'nothing'}."
        )
    return row[name]


def value_of(where, row, name, kind, expected):
    """As `present`, of a type; `true` and `false` are no numbers.

    Args:
        where, row, name: as `present`.
        kind: type.
        expected: str. What the error says was expected.

    Raises:
        ValueError: if there is none, or of another type.
    """
    value = present(where, row, name)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(
            f"{where}: expected {expected} under {name!r}. "
            f"Received: {value!r:.{SHOWN}}."
        )
    return value


def text_of(where, row, name):
    """As `value_of`, a str."""
    return value_of(where, row, name, str, "a string")


def position_of(where, row, name, *sets):
    """The position of a value in one of several sequences of valid ones.

    Raises:
        ValueError: if it is in none of them.
    """
    value = present(where, row, name)
    for valid in sets:
        if not isinstance(value, bool) and value in list(valid):
            return list(valid).index(value)
    shown = " or ".join(", ".join(map(repr, valid)) for valid in sets)
    raise ValueError(f"{where}: {name!r} must be one of {shown}. Received: {value!r}.")


class UniqueIds:
    """Ids of the records of a file, in their order.

    Args:
        advice: str. What to do about an id that stands twice.
    """

    def __init__(self, advice="Give each record an id of its own."):
        self._advice = advice
        self._places = {}

    def add(self, where, id):
        """Adds an id, a str.

        Raises:
            ValueError: if it was there before; names both places.
        """
        if id in self._places:
            raise ValueError(
                f"{where}: the id {id!r} stands twice, first at {self._places[id]}. "
                f"{self._advice}"
            )
        self._places[id] = where

    def list(self):
        """The ids, a list of str."""
        return list(self._places)
