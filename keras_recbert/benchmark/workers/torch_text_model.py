"""A classifier of Hugging Face on torch, tokenizer included: texts to logits."""


def open_text_model(folder, precision="float32"):
    """Opens what `export_worker` wrote in the form `huggingface`.

    Args:
        folder: path.
        precision: str. `"float32"`, or `"bfloat16"` for weights and products.

    Returns:
        Tuple of a function of a list of texts to a float32 tensor of logits, the list
        of the names of the classes, and the number of parameters.
    """
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    has_mean_head = (folder / "mean_head.npz").is_file()
    open_model = _mean_classifier if has_mean_head else _classifier
    logits_of, names, parameters = open_model(folder, getattr(torch, precision))

    def read(texts):
        inputs = tokenizer(
            texts, padding="longest", truncation=True, return_tensors="pt"
        )
        with torch.inference_mode():
            return logits_of(inputs).float()

    return read, names, parameters


def _classifier(folder, dtype):
    """Hugging Face's own: a head on the pooled first token."""
    import transformers

    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder)
    model.eval().to(dtype)
    names = [name for _, name in sorted(model.config.id2label.items())]
    return lambda inputs: model(**inputs).logits, names, _count(model)


def _mean_classifier(folder, dtype):
    """A head on the mean of the last outputs at real positions."""
    import numpy as np
    import torch
    import transformers

    encoder = transformers.AutoModel.from_pretrained(folder)
    encoder.eval().to(dtype)
    head = np.load(folder / "mean_head.npz")
    kernel, bias = torch.tensor(head["kernel"]), torch.tensor(head["bias"])

    def logits_of(inputs):
        hidden = encoder(**inputs).last_hidden_state.float()
        real = inputs["attention_mask"].unsqueeze(-1)
        return (hidden * real).sum(dim=1) / real.sum(dim=1) @ kernel + bias

    return logits_of, head["names"].tolist(), _count(encoder) + head["kernel"].size


def _count(module):
    return sum(parameter.numel() for parameter in module.parameters())
