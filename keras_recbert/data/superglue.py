"""JSON lines of SuperGLUE (Wang et al. 2019): BoolQ, CB, MultiRC and WSC."""

import re

from keras_recbert.data.examples import Examples
from keras_recbert.data.json_values import UniqueIds, position_of, text_of, value_of
from keras_recbert.data.rows import TableRows

CB_LABELS = ("entailment", "contradiction", "neutral")
# Around the first and the second span of WSC, as in the code of T5.
WSC_MARKS = ("*", "#")


def read_boolq(path, split) -> Examples:
    """Reads yes/no questions on passages.

    Args:
        path: a `.jsonl` file, or one that is compressed, such as `.jsonl.gz`.
        split: str. Rows of a test split may all lack `label`.

    Returns:
        `Examples` of `question` and `passage`, with the target `label`: 0 for false, 1
        for true; ids are those under `idx`.

    Raises:
        ValueError: for a broken row, one that lacks a value, or an id that stands
            twice; names file and line.
    """
    return _read_rows(path, split, ("question", "passage"), _truth)


def read_cb(path, split) -> Examples:
    """Reads premises and hypotheses of CommitmentBank.

    Args, Raises: as `read_boolq`.

    Returns:
        `Examples` of `premise` and `hypothesis`, with the target `label`: positions in
        `CB_LABELS`.
    """

    def label_of(where, row):
        return position_of(where, row, "label", CB_LABELS)

    return _read_rows(path, split, ("premise", "hypothesis"), label_of)


def read_multirc(path, split) -> Examples:
    """Reads questions on passages with answers, of which any number may be right.

    Each answer is an example. Its id is made of those of passage, question and answer,
    such as `"0-2-13"`; what stands before the last dash is that of its question.

    Args:
        path, split: as `read_boolq`; it is the answers that lack `label`.

    Returns:
        `Examples` of `question_and_answer`, joined by a space, and `passage`, with the
        target `label`: 0 or 1, whether the answer is right.

    Raises:
        ValueError: as `read_boolq`; names file, line, question and answer.
    """
    questions, passages, labels, ids = [], [], [], UniqueIds()
    for where, row in TableRows(path).rows():
        passage = value_of(where, row, "passage", dict, "an object")
        text = text_of(where, passage, "text")
        for at, question, id in _objects(where, passage, "questions", _idx(where, row)):
            begin = text_of(at, question, "question")
            for place, answer, answer_id in _objects(at, question, "answers", id):
                ids.add(place, answer_id)
                questions.append(f"{begin} {text_of(place, answer, 'text')}")
                passages.append(text)
                labels.append((place, answer))
    labels = _labels(path, split, labels, lambda *at: position_of(*at, "label", (0, 1)))
    fields = {"question_and_answer": questions, "passage": passages}
    return Examples(fields, labels, ids.list())


def question_ids(ids) -> list[str]:
    """The id of the question of each example of `read_multirc`, of the examples'."""
    return [id.rpartition("-")[0] for id in ids]


def read_wsc(path, split) -> Examples:
    """Reads texts of the Winograd schema challenge: does a pronoun mean a noun?

    The text has `*` around the words of the first span and `#` around the second, as in
    the code of T5 (Raffel et al. 2020). A span whose words do not stand at its index is
    marked at the nearest place where they do, with a note: the published files have one
    such row.

    Args:
        path, split: as `read_boolq`.

    Returns:
        `Examples` of `text`, with the target `label`: 0 or 1, whether both spans mean
        the same.

    Raises:
        ValueError: as `read_boolq`, and for a span whose words are not in the text.
    """
    texts, labels, ids, moved = [], [], UniqueIds(), []
    for where, row in TableRows(path).rows():
        ids.add(where, str(_idx(where, row)))
        text, is_moved = _mark_spans(where, row)
        texts.append(text)
        labels.append((where, row))
        if is_moved:
            moved.append(where)
    notes = ()
    if moved:
        notes = (
            f"{path}: in {len(moved)} rows a span is not at its index; the nearest "
            f"place of its words was marked (the first at {moved[0]})",
        )
    labels = _labels(path, split, labels, _truth)
    return Examples({"text": texts}, labels, ids.list(), notes)


def texts_without_marks(fields) -> list[str]:
    """What rows of `read_wsc` on one text share: its characters but marks and spaces.

    Args:
        fields: dict of `text` to a list of str.
    """
    return [re.sub(rf"[\s{''.join(WSC_MARKS)}]", "", text) for text in fields["text"]]


def _read_rows(path, split, fields, label_of):
    """Examples of rows of texts, `idx` and `label`."""
    columns, labels, ids = {field: [] for field in fields}, [], UniqueIds()
    for where, row in TableRows(path).rows():
        ids.add(where, str(_idx(where, row)))
        for field, column in columns.items():
            column.append(text_of(where, row, field))
        labels.append((where, row))
    return Examples(columns, _labels(path, split, labels, label_of), ids.list())


def _labels(path, split, places, label_of):
    """Targets of records, of tuples of where one is and the record; None without."""
    if not places:
        raise ValueError(f"{path} has no examples.")
    if split.startswith("test") and not any("label" in record for _, record in places):
        return None
    return {"label": [label_of(where, record) for where, record in places]}


def _truth(where, row):
    return int(value_of(where, row, "label", bool, "true or false"))


def _idx(where, row):
    return value_of(where, row, "idx", int, "a whole number")


def _objects(where, parent, name, parent_id):
    """Yields the objects of a list: where each is, itself, and its id."""
    found = value_of(where, parent, name, list, "a list")
    if not found:
        raise ValueError(
            f"{where}: expected one or more in the list under {name!r}. Received: []. "
            "Remove what has none."
        )
    for number, one in enumerate(found):
        at = f"{where}, {name}[{number}]"
        if not isinstance(one, dict):
            raise ValueError(f"{at}: expected an object. Received: {one!r:.60}.")
        yield at, one, f"{parent_id}-{_idx(at, one)}"


def _mark_spans(where, row):
    """The text with marks around both spans, and whether one is not at its index."""
    text = text_of(where, row, "text")
    target = value_of(where, row, "target", dict, "an object")
    words = list(re.finditer(r"\S+", text))
    marks, is_moved = [], False
    for number, mark in enumerate(WSC_MARKS, start=1):
        span = text_of(where, target, f"span{number}_text")
        index = value_of(
            where, target, f"span{number}_index", int, "the position of a word"
        )
        start, end, is_there = _find_span(where, words, span, index)
        is_moved |= not is_there
        # One span may be in the other, whose marks are then outside.
        marks += [(start, start - end, f"{mark} "), (end, end - start, f" {mark}")]
    for place, _, mark in sorted(marks, reverse=True):
        text = text[:place] + mark + text[place:]
    return text, is_moved


def _find_span(where, words, span, index):
    """First and last character of a span, and whether it begins at the word `index`.

    Words are compared whatever their case and what follows the last one, such as the
    stop of `him.` where the span is `him`.
    """
    wanted = span.casefold().split()
    starts = []
    for start in range(len(words) - len(wanted) + 1 if wanted else 0):
        *first, last = (word[0].casefold() for word in words[start:][: len(wanted)])
        rest = last.removeprefix(wanted[-1])
        is_there = first == wanted[:-1] and rest != last
        # At the index, "the men" may be a part of "the men's".
        if is_there and (start == index or not rest[:1].isalnum()):
            starts.append(start)
    if not starts:
        raise ValueError(
            f"{where}: the words of the span {span!r} do not stand in the text, one "
            "behind the other."
        )
    start = min(starts, key=lambda at: abs(at - index))
    last = words[start + len(wanted) - 1]
    end = last.start() + len(span.split()[-1])
    return words[start].start(), end, start == index
