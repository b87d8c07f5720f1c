"""Texts to logits: Hugging Face's tokenizer and classifier, on torch.

In batches in the order of the data, padded to their longest row, as the pipelines of
`transformers` make them; or, with `sorted`, all texts tokenized first and batches of
similar length cut from them.
"""

import numpy as np
from worker_protocol import serve


def load():
    import torch  # noqa: F401
    import transformers  # noqa: F401

    return ["torch", "transformers"]


def prepare(job):
    import torch
    import transformers

    torch.set_num_threads(job["threads"])
    tokenizer = transformers.AutoTokenizer.from_pretrained(job["weights"])
    model = transformers.AutoModelForSequenceClassification.from_pretrained(
        job["weights"]
    )
    if job["precision"] == "bfloat16":
        model.to(torch.bfloat16)
    model.eval()
    columns, size = list(job["columns"].values()), job["batch_size"]
    most = min(tokenizer.model_max_length, model.config.max_position_embeddings)
    options = {"truncation": True, "max_length": most}

    def logits_of(inputs):
        with torch.inference_mode():
            return model(**inputs).logits.float().numpy()

    def in_order():
        found = []
        for start in range(0, len(columns[0]), size):
            texts = [column[start : start + size] for column in columns]
            options_of_batch = {**options, "padding": True, "return_tensors": "pt"}
            found.append(logits_of(tokenizer(*texts, **options_of_batch)))
        return np.concatenate(found)

    def by_length():
        rows = tokenizer(*columns, **options)
        lengths = [len(row) for row in rows["input_ids"]]
        order = np.argsort(lengths, kind="stable")
        logits = None
        for start in range(0, len(order), size):
            part = order[start : start + size]
            batch = {name: [rows[name][row] for row in part] for name in rows}
            found = logits_of(tokenizer.pad(batch, return_tensors="pt"))
            if logits is None:
                logits = np.empty((len(order), found.shape[1]), np.float32)
            logits[part] = found
        return logits

    step = by_length if job["sorted"] else in_order
    parameters = sum(parameter.numel() for parameter in model.parameters())
    facts = {"parameters": parameters, "items": len(columns[0])}
    return step, {**facts, "logits": step().tolist()}


if __name__ == "__main__":
    serve(load, prepare)
