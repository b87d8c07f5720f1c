"""Hugging Face's tokenizer and BERT on torch: texts to labels."""

from answering import serve_answers


def load():
    import torch
    import transformers  # noqa: F401

    torch.set_num_interop_threads(1)  # once, before anything runs
    return ["torch", "transformers"]


def open_system(folder):
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    has_mean_head = (folder / "mean_head.npz").is_file()
    load_model = _mean_classifier if has_mean_head else _classifier
    logits_of, names, parameters = load_model(folder)

    def answer(texts):
        inputs = tokenizer(
            texts, padding="longest", truncation=True, return_tensors="pt"
        )
        with torch.inference_mode():
            classes = logits_of(inputs).argmax(dim=-1)
        return [names[one] for one in classes.tolist()]

    return answer, parameters


def _classifier(folder):
    """Hugging Face's own: a head on the pooled first token."""
    import transformers

    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder)
    model.eval()
    return lambda inputs: model(**inputs).logits, model.config.id2label, _count(model)


def _mean_classifier(folder):
    """A head on the mean of the last outputs at real positions."""
    import numpy as np
    import torch
    import transformers

    encoder = transformers.AutoModel.from_pretrained(folder)
    encoder.eval()
    head = np.load(folder / "mean_head.npz")
    kernel, bias = torch.tensor(head["kernel"]), torch.tensor(head["bias"])

    def logits_of(inputs):
        hidden = encoder(**inputs).last_hidden_state
        real = inputs["attention_mask"].unsqueeze(-1)
        return (hidden * real).sum(dim=1) / real.sum(dim=1) @ kernel + bias

    return logits_of, head["names"].tolist(), _count(encoder) + head["kernel"].size


def _count(module):
    return sum(parameter.numel() for parameter in module.parameters())


if __name__ == "__main__":
    serve_answers(load, open_system)
