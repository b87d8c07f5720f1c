"""Hugging Face's tokenizer and BERT on torch in bfloat16: texts to labels."""

import functools

from answering import serve_answers
from torch_classifier_worker import load, open_system

if __name__ == "__main__":
    serve_answers(load, functools.partial(open_system, precision="bfloat16"))
