"""Checks a SavedModel: asks it in a fresh process that cannot import this package.

    python export/check_savedmodel.py SAVEDMODEL "a text" ["its pair"]

Prints the answer, the signatures, and every op that is neither TensorFlow's nor TF
Text's; the exit status is 1 if there is one, or if it does not answer.
"""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from keras_recbert.serving.clean_process import ask_in_clean_process
from keras_recbert.serving.savedmodel import foreign_ops, read_savedmodel


def main(path, *texts):
    signatures = read_savedmodel(path).loaded.signatures
    for name, signature in signatures.items():
        print(f"{name}: {', '.join(signature.structured_input_signature[1])}")
    names = ("text", "text_pair")[: len(texts)]
    inputs = {name: [text] for name, text in zip(names, texts, strict=True)}
    print(ask_in_clean_process(path, inputs))
    foreign = foreign_ops(path)
    print(f"foreign ops: {', '.join(foreign) or 'none'}")
    return 1 if foreign else 0


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
