"""Questions on small texts, in memory and as files of SQuAD."""

import json

import numpy as np

# The answer is what stands behind the word of the question.
OPINIONS = ("good", "bad", "warm", "cold", "fine", "dull")
THINGS = ("film", "story", "actors", "music")


def quiz(number=40, seed=0):
    """Questions, contexts of 8 to 24 words, answers in SQuAD's form."""
    rng = np.random.default_rng(seed)
    questions, contexts, answers = [], [], []
    for index in range(number):
        words = []
        opinions = rng.choice(OPINIONS, len(THINGS))
        for thing, opinion in zip(rng.permutation(THINGS), opinions, strict=True):
            words += ["é"] * (index % 5) + [thing, opinion]
        asked = rng.choice(THINGS)
        context = " ".join(words)
        start = context.index(asked) + len(asked) + 1
        text = context[start:].split()[0]
        questions.append(f"{asked}!")
        contexts.append(context)
        answers.append({"text": [text], "answer_start": [start]})
    return {"question": questions, "context": contexts}, answers


def write_quiz(folder, number=16):
    """Writes `squad/train-v1.1.json` and the validation file of another `quiz`."""
    (folder / "squad").mkdir(parents=True)
    for split, seed in (("train", 0), ("dev", 1)):
        x, answers = quiz(number, seed)
        rows = zip(x["question"], x["context"], answers, strict=True)
        paragraphs = []
        for index, (question, context, answer) in enumerate(rows):
            qa = _question(f"{split}{index}", question, answer)
            paragraphs.append({"context": context, "qas": [qa]})
        content = {"data": [{"title": "quiz", "paragraphs": paragraphs}]}
        path = folder / "squad" / f"{split}-v1.1.json"
        path.write_text(json.dumps(content), encoding="utf-8")


def _question(id, question, answer):
    (text,), (start,) = answer["text"], answer["answer_start"]
    answers = [{"text": text, "answer_start": start}]
    return {"id": id, "question": question, "answers": answers}
