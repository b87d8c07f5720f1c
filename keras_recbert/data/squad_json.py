"""SQuAD's JSON: questions on paragraphs, and files of answers to them."""

import json

from keras_recbert.core.folders import new_file
from keras_recbert.data.examples import Examples
from keras_recbert.data.gzip_files import read_bytes

SHOWN = 60  # characters of a text in a message


def read_squad(path, split) -> Examples:
    """Reads a file of SQuAD 1.1 or 2.0, or of another data set in its form.

    Args:
        path: a `.json` file, or one that gzip compressed, `.json.gz`.
        split: str. Questions of a test split may lack answers.

    Returns:
        `Examples` of `question` and `context`, with the target `answers`: a dict of
        `text` and `answer_start` (in characters), lists, an example each; empty for a
        question without an answer.

    Raises:
        ValueError: where the file is no such JSON, an id stands twice, a value is
            missing or of another type, or an answer is not in its context at its
            place; names file, paragraph and question.
    """
    data = _load(path)
    questions, contexts, answers, ids = [], [], [], []
    seen = set()
    for article_number, article in enumerate(_list(path, "the file", data, "data")):
        place = f"data[{article_number}]"
        paragraphs = _list(path, place, article, "paragraphs")
        for number, paragraph in enumerate(paragraphs):
            where = f"{place}.paragraphs[{number}]"
            context = _text(path, where, paragraph, "context")
            for index, question in enumerate(_list(path, where, paragraph, "qas")):
                at = f"{where}.qas[{index}]"
                id = _text(path, at, question, "id")
                if id in seen:
                    raise ValueError(f"{path}, {at}: the id {id!r} stands twice.")
                seen.add(id)
                at = f"{at} ({id})"
                questions.append(_text(path, at, question, "question"))
                contexts.append(context)
                answers.append(_answers(path, at, question, context, split))
                ids.append(id)
    if not ids:
        raise ValueError(f"{path} has no questions.")
    targets = {"answers": answers}
    if split.startswith("test") and not any(one["text"] for one in answers):
        targets = None
    return Examples({"question": questions, "context": contexts}, targets, ids)


def write_answers(folder, examples, answers):
    """Writes answers in the form of SQuAD's scripts.

    `predictions.json` has the answer of each id, `nbest.json` the best ones with their
    probabilities, and where there may be none `null_odds.json` how much the score of
    no answer is above that of the best one.

    Args:
        folder: path.
        examples: `Examples`.
        answers: dict of arrays, as `QuestionAnsweringHead.answer_rows` has them.
    """
    texts = [_decoded(answer) for answer in answers["answer"]]
    _write(folder / "predictions.json", dict(zip(examples.ids, texts, strict=True)))
    best = {
        id: [
            {
                "text": _decoded(text),
                "probability": float(score),
                "start": int(start),
                "end": int(end),
            }
            for text, score, start, end in zip(*row, strict=True)
            if score > 0
        ]
        for id, *row in zip(
            examples.ids,
            answers["best_answers"],
            answers["best_scores"],
            answers["best_starts"],
            answers["best_ends"],
            strict=True,
        )
    }
    _write(folder / "nbest.json", best)
    if "no_answer_score" in answers:
        odds = map(float, answers["no_answer_score"])
        _write(folder / "null_odds.json", dict(zip(examples.ids, odds, strict=True)))


def _decoded(text):
    return text.decode("utf-8", "replace")


def _write(path, value):
    with new_file(path) as written:
        text = json.dumps(value, indent=1, ensure_ascii=False)
        written.write_text(text + "\n", encoding="utf-8")


def _load(path):
    content = read_bytes(path)
    try:
        return json.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ValueError(
            f"{path}, line {line}: byte {error.start} is not UTF-8. Save the file as "
            "UTF-8."
        ) from None
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{path}, line {error.lineno}, column {error.colno}: expected JSON "
            f"({error.msg}). Questions are read in the form of SQuAD, one object: "
            '{"data": [{"paragraphs": [{"context": ..., "qas": [...]}]}]}.'
        ) from None


def _value(path, where, record, name, kind, expected):
    if not isinstance(record, dict) or not isinstance(record.get(name), kind):
        found = record.get(name) if isinstance(record, dict) else record
        raise ValueError(
            f"{path}, {where}: expected {expected} under {name!r}. Received: "
            f"{_short(found)}."
        )
    return record[name]


def _list(path, where, record, name):
    return _value(path, where, record, name, list, "a list")


def _text(path, where, record, name):
    return _value(path, where, record, name, str, "a string")


def _answers(path, where, question, context, split):
    """The answers of a question: `text` and `answer_start`, lists."""
    answers = {"text": [], "answer_start": []}
    is_impossible = question.get("is_impossible", False)
    if not isinstance(is_impossible, bool):
        raise ValueError(
            f"{path}, {where}: expected true or false under 'is_impossible'. Received: "
            f"{_short(is_impossible)}."
        )
    if is_impossible and question.get("answers"):
        raise ValueError(
            f"{path}, {where}: 'is_impossible' is true, and there are answers: "
            f"{_short(question['answers'])}. Remove one of them."
        )
    if is_impossible or (split.startswith("test") and "answers" not in question):
        return answers
    for number, answer in enumerate(_list(path, where, question, "answers")):
        at = f"{where}.answers[{number}]"
        text = _text(path, at, answer, "text")
        start = _value(path, at, answer, "answer_start", int, "a whole number")
        if not text or start < 0 or context[start : start + len(text)] != text:
            found = context[max(start, 0) : max(start, 0) + len(text)]
            raise ValueError(
                f"{path}, {at}: the answer {_short(text)} is not in its context at "
                f"character {start}, where there is {_short(found)}."
            )
        answers["text"].append(text)
        answers["answer_start"].append(start)
    return answers


def _short(value):
    text = repr(value)
    return text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."
