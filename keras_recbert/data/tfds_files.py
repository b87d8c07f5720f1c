"""Rows of TensorFlow Datasets in the form of a data set's own files.

These are then read, and checked, as the files that their authors publish. Rows are
dicts of features as NumPy values, strings as bytes.
"""

import json

# In the order of the class ids there.
NER_TAGS = (
    "O",
    *(f"{p}-{name}" for name in ("PER", "ORG", "LOC", "MISC") for p in "BI"),
)
UPOS = (
    *("ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM"),
    *("PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM", "VERB", "X", "_"),
)


def squad_file(rows):
    """JSON of SQuAD 1.1 or 2.0, of `squad/v1.1` or `squad/v2.0`."""
    paragraphs = []
    for row in rows:
        answers = row["answers"]
        question = {
            "id": _text(row["id"]),
            "question": _text(row["question"]),
            "answers": [
                {"text": _text(text), "answer_start": int(start)}
                for text, start in zip(
                    answers["text"], answers["answer_start"], strict=True
                )
            ],
            "is_impossible": bool(row.get("is_impossible", False)),
        }
        paragraphs.append({"context": _text(row["context"]), "qas": [question]})
    return json.dumps({"data": [{"paragraphs": paragraphs}]})


def arc_file(rows):
    """JSON lines of `ai2_arc`, whose letters are class ids."""
    return _lines(
        {
            "id": _text(row["id"]),
            "question": {
                "stem": _text(row["question"]),
                "choices": [
                    {"text": _text(text), "label": _letter(label)}
                    for text, label in zip(
                        row["choices"]["text"], row["choices"]["label"], strict=True
                    )
                ],
            },
            "answerKey": _letter(row["answerKey"]),
        }
        for row in rows
    )


def copa_file(rows):
    """JSON lines of `super_glue/copa`."""
    texts = ("premise", "choice1", "choice2", "question")
    return _lines(
        {**{name: _text(row[name]) for name in texts}, **_idx_and_label(row)}
        for row in rows
    )


def wsc_file(rows):
    """JSON lines of `super_glue/wsc`."""
    return _lines(
        {
            "text": _text(row["text"]),
            "target": {
                "span1_text": _text(row["span1_text"]),
                "span1_index": int(row["span1_index"]),
                "span2_text": _text(row["span2_text"]),
                "span2_index": int(row["span2_index"]),
            },
            **_idx_and_label(row),
            "label": bool(row["label"]),
        }
        for row in rows
    )


def multirc_file(rows):
    """JSON lines of `super_glue/multirc`, which has a row for each answer."""
    passages = {}
    for row in rows:
        idx = {name: int(value) for name, value in row["idx"].items()}
        passage = passages.setdefault(
            idx["paragraph"], {"text": _text(row["paragraph"]), "questions": {}}
        )
        question = passage["questions"].setdefault(
            idx["question"],
            {"question": _text(row["question"]), "idx": idx["question"], "answers": []},
        )
        answer = {"text": _text(row["answer"]), "idx": idx["answer"]}
        question["answers"].append({**answer, "label": int(row["label"])})
    return _lines(
        {
            "idx": idx,
            "passage": {**passage, "questions": [*passage["questions"].values()]},
        }
        for idx, passage in passages.items()
    )


def conll2003_file(rows):
    """Columns of a word and its entity tag, of `conll2003`."""
    return "".join(
        "".join(
            f"{_text(word)} {NER_TAGS[tag]}\n"
            for word, tag in zip(row["tokens"], row["ner"], strict=True)
        )
        + "\n"
        for row in rows
    )


def conllu_file(rows):
    """CoNLL-U of words and UPOS, of a treebank of `universal_dependencies`.

    What has no head there, multiword tokens and empty nodes, is left out.
    """
    sentences = []
    for row in rows:
        words = [
            (_text(word), UPOS[tag])
            for word, tag, head in zip(
                row["tokens"], row["upos"], row["head"], strict=True
            )
            if head != b"None"
        ]
        sentences.append(
            "".join(
                f"{number}\t{word}\t_\t{tag}" + 6 * "\t_" + "\n"
                for number, (word, tag) in enumerate(words, start=1)
            )
        )
    return "".join(f"{sentence}\n" for sentence in sentences)


def _text(value):
    return value.decode("utf-8")


def _letter(class_id):
    return "ABCDE"[int(class_id)]


def _idx_and_label(row):
    return {"idx": int(row["idx"]), "label": int(row["label"])}


def _lines(objects):
    return "".join(json.dumps(one) + "\n" for one in objects)
