"""Hugging Face's BERT on torch, and torch's own LSTM."""

import contextlib

import numpy as np
from worker_protocol import serve


def load():
    import torch  # noqa: F401
    import transformers  # noqa: F401

    return ["torch", "transformers"]


def prepare(job):
    import torch

    torch.manual_seed(0)
    if job["kind"] == "layer":
        return lstm_step(job)
    if job["kind"] == "serving":
        return serving_step(job)
    return model_step(job)


def precision_of(module, precision):
    """The module in that precision, and a function that makes its context."""
    import torch

    if precision == "bfloat16":
        module.to(torch.bfloat16)
    if precision == "mixed_bfloat16":
        return lambda: torch.autocast("cpu", torch.bfloat16)
    return contextlib.nullcontext


def count(module):
    return sum(parameter.numel() for parameter in module.parameters())


def lstm_step(job):
    import torch

    module = torch.nn.LSTM(
        job["hidden_dim"],
        job["arguments"]["units"],
        batch_first=True,
        bidirectional=True,
    )
    context = precision_of(module, job["precision"])
    shape = (job["batch_size"], job["sequence_length"], job["hidden_dim"])
    random = np.random.default_rng(0)
    # As inside a model of this precision.
    dtype = torch.float32 if job["precision"] == "float32" else torch.bfloat16
    inputs = torch.tensor(random.standard_normal(shape, np.float32), dtype=dtype)
    with context(), torch.no_grad():
        outputs, _ = module(inputs)
    seed = torch.tensor(random.standard_normal(outputs.shape, np.float32))
    seed = seed.to(outputs.dtype)

    def forward():
        with torch.inference_mode(), context():
            return module(inputs)

    def train():
        with context():
            outputs, _ = module(inputs)
            loss = (outputs * seed).sum()
        loss.backward()
        inputs.grad = None
        module.zero_grad()

    module.train(job["pass"] == "train")
    if job["pass"] == "train":
        inputs.requires_grad_()
    step = forward if job["pass"] == "forward" else train
    return step, {"parameters": count(module), "items": shape[0] * shape[1]}


def model_step(job):
    import torch
    import transformers

    sizes = job["sizes"]
    config = transformers.BertConfig(
        vocab_size=sizes["vocabulary_size"],
        num_hidden_layers=sizes["num_layers"],
        num_attention_heads=sizes["num_heads"],
        hidden_size=sizes["hidden_dim"],
        intermediate_size=sizes["intermediate_dim"],
        hidden_dropout_prob=sizes["dropout"],
        attention_probs_dropout_prob=sizes["dropout"],
        max_position_embeddings=sizes["max_sequence_length"],
        type_vocab_size=sizes["num_segments"],
        num_labels=2,
    )
    model = transformers.BertForSequenceClassification(config)
    context = precision_of(model, job["precision"])
    shape = (job["batch_size"], job["sequence_length"])
    random = np.random.default_rng(0)
    ids = random.integers(1, job["vocabulary_size"], shape, dtype=np.int64)
    labels = torch.tensor(random.integers(0, 2, shape[0], dtype=np.int64))
    inputs = {
        "input_ids": torch.tensor(ids),
        "token_type_ids": torch.zeros(shape, dtype=torch.int64),
        "attention_mask": torch.ones(shape, dtype=torch.int64),
    }
    facts = {"parameters": count(model), "items": shape[0] * shape[1]}
    if job["pass"] == "forward":
        model.eval()

        def forward():
            with torch.inference_mode(), context():
                return model(**inputs).logits.float().numpy()

        return forward, facts

    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-5, weight_decay=0.01)

    def train():
        with context():
            logits = model(**inputs).logits
        loss = torch.nn.functional.cross_entropy(logits.float(), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    return train, facts


def serving_step(job):
    """Texts to scores: tokenizer and classifier, batches in the order of the file."""
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(job["weights"])
    model = transformers.AutoModelForSequenceClassification.from_pretrained(
        job["weights"], num_labels=2
    )
    context = precision_of(model, job["precision"])
    model.eval()
    size = job["batch_size"]
    texts = job["columns"]["text"]
    batches = [texts[start : start + size] for start in range(0, len(texts), size)]

    def step():
        scores = []
        for batch in batches:
            inputs = tokenizer(
                batch, padding="longest", truncation=True, return_tensors="pt"
            )
            with torch.inference_mode(), context():
                logits = model(**inputs).logits.float()
            scores.append(torch.softmax(logits, dim=-1).numpy())
        return scores

    return step, {"parameters": count(model), "items": len(texts)}


if __name__ == "__main__":
    serve(load, prepare)
