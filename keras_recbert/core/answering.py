"""How TensorFlow runs in a process that answers, and never trains."""

import os
import sys

KEEPS_PACKED_WEIGHTS = "TF_ONEDNN_ASSUME_FROZEN_WEIGHTS"
THREADS_OF_AN_OP = "TF_NUM_INTRAOP_THREADS"


def answering_variables(threads_of_an_op=None):
    """Variables of the environment of a process that answers, and never trains.

    Before each matrix product oneDNN packs the weights in the order in which the
    processor reads them. With `TF_ONEDNN_ASSUME_FROZEN_WEIGHTS=1` it packs them once
    and keeps that copy, of which training in the same process would change nothing.

    Args:
        threads_of_an_op: int. Threads that share one op. Where several calls run at a
            time, one is quickest; by default TensorFlow takes all cores.

    Returns:
        dict of str to str, without what the environment has already.
    """
    variables = {KEEPS_PACKED_WEIGHTS: "1"}
    if threads_of_an_op is not None:
        variables[THREADS_OF_AN_OP] = str(threads_of_an_op)
    return {name: value for name, value in variables.items() if name not in os.environ}


def only_answer(threads_of_an_op=None):
    """Sets this process up to answer, and never to train.

    TensorFlow reads the variables once. A process in which it is loaded already may
    train, and stays as it is.

    Args:
        threads_of_an_op: as for `answering_variables`.
    """
    if "tensorflow" not in sys.modules:
        os.environ.update(answering_variables(threads_of_an_op))


def check_may_train():
    """Raises `ValueError` in a process that only answers.

    There a product would go on with the weights that it packed first.
    """
    value = os.environ.get(KEEPS_PACKED_WEIGHTS, "")
    if value.lower() in ("1", "true"):
        raise ValueError(
            f"The environment variable {KEEPS_PACKED_WEIGHTS} is {value}: oneDNN keeps "
            "the weights that it saw first, and training would change nothing that it "
            f"computes. Unset it and start again: unset {KEEPS_PACKED_WEIGHTS}."
        )
