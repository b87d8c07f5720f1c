"""Questions on passages to answers: Hugging Face's tokenizer, torch, and Python.

The windows and the search for spans are those of `run_qa.py` and `utils_qa.py`, the
examples that Hugging Face's documentation names for SQuAD; a library function for them
went with the pipeline of transformers 4.
"""

import numpy as np
from worker_protocol import serve

LENGTH, OVERLAP = 384, 128
NUM_BEST, LONGEST = 20, 30


def load():
    import torch  # noqa: F401
    import transformers  # noqa: F401

    return ["torch", "transformers"]


def prepare(job):
    import torch
    import transformers

    torch.manual_seed(0)
    tokenizer = transformers.AutoTokenizer.from_pretrained(job["weights"])
    model = transformers.AutoModelForQuestionAnswering.from_pretrained(job["weights"])
    if job["precision"] == "bfloat16":
        model.to(torch.bfloat16)
    model.eval()
    size = job["batch_size"]
    questions, contexts = (job["columns"][name] for name in ("question", "context"))
    parts = [slice(start, start + size) for start in range(0, len(questions), size)]

    def step():
        answers = []
        for part in parts:
            batch = questions[part], contexts[part]
            answers.extend(answer(tokenizer, model, *batch))
        return answers

    parameters = sum(parameter.numel() for parameter in model.parameters())
    return step, {"parameters": parameters, "items": len(questions)}


def answer(tokenizer, model, questions, contexts):
    """Lists of the best answers of each question: dicts of text, score, start, end."""
    import torch

    rows = tokenizer(
        questions,
        contexts,
        truncation="only_second",
        max_length=LENGTH,
        stride=OVERLAP,
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
        padding="longest",
        return_tensors="pt",
    )
    example_of = rows.pop("overflow_to_sample_mapping").tolist()
    offsets = rows.pop("offset_mapping").tolist()
    with torch.inference_mode():
        outputs = model(**rows)
    starts = outputs.start_logits.float().numpy()
    ends = outputs.end_logits.float().numpy()
    found = [[] for _ in questions]
    for row, example in enumerate(example_of):
        is_context = [one == 1 for one in rows.sequence_ids(row)]
        places = offsets[row]
        spans = spans_of_row(starts[row], ends[row], is_context, places)
        found[example].extend(spans)
    return [
        best_of(spans, context) for spans, context in zip(found, contexts, strict=True)
    ]


def spans_of_row(starts, ends, is_context, places):
    """Spans of the highest starts and ends that are in the context and in order."""
    spans = []
    end_indexes = np.argsort(ends)[-1 : -NUM_BEST - 1 : -1].tolist()
    for start in np.argsort(starts)[-1 : -NUM_BEST - 1 : -1].tolist():
        for end in end_indexes:
            if not (is_context[start] and is_context[end]):
                continue
            if end < start or end - start + 1 > LONGEST:
                continue
            score = starts[start] + ends[end]
            spans.append((score, places[start][0], places[end][1]))
    return spans


def best_of(spans, context):
    """The best spans with their texts and probabilities."""
    best = sorted(spans, reverse=True)[:NUM_BEST]
    if not best:
        return [{"text": "", "score": 0.0, "start": -1, "end": -1}]
    scores = np.array([score for score, _, _ in best])
    scores = np.exp(scores - scores.max())
    return [
        {"text": context[start:end], "score": score, "start": start, "end": end}
        for score, (_, start, end) in zip(scores / scores.sum(), best, strict=True)
    ]


if __name__ == "__main__":
    serve(load, prepare)
