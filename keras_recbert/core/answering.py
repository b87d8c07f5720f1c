"""How TensorFlow runs in a process that answers, and never trains."""

import os

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

    TensorFlow reads the variables once, so this comes before its first op.

    Args:
        threads_of_an_op: as for `answering_variables`.
    """
    os.environ.update(answering_variables(threads_of_an_op))
