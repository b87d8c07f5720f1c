"""Hugging Face's tokenizer and BERT on torch: texts to labels."""

from answering import serve_answers


def load():
    import torch  # noqa: F401
    import transformers  # noqa: F401

    return ["torch", "transformers"]


def open_system(folder):
    import torch
    import transformers

    torch.set_num_interop_threads(1)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder)
    model.eval()
    names = model.config.id2label

    def answer(texts):
        inputs = tokenizer(
            texts, padding="longest", truncation=True, return_tensors="pt"
        )
        with torch.inference_mode():
            classes = model(**inputs).logits.argmax(dim=-1)
        return [names[one] for one in classes.tolist()]

    return answer, sum(parameter.numel() for parameter in model.parameters())


if __name__ == "__main__":
    serve_answers(load, open_system)
