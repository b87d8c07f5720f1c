"""Hugging Face's tokenizer and BERT on torch: texts to labels."""

from answering import serve_answers
from torch_text_model import open_text_model


def load():
    import torch
    import transformers  # noqa: F401

    torch.set_num_interop_threads(1)  # once, before anything runs
    return ["torch", "transformers"]


def open_system(folder, precision="float32"):
    logits_of, names, parameters = open_text_model(folder, precision)

    def answer(texts):
        classes = logits_of(texts).argmax(dim=-1)
        return [names[one] for one in classes.tolist()]

    return answer, parameters


if __name__ == "__main__":
    serve_answers(load, open_system)
