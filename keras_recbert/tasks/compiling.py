"""Whether a training run is long enough for XLA."""

from keras_recbert.ops.implementation import choose, compiling

# Medians on two x86-64 cores: what XLA takes to compile the kernels of a training
# step for one shape, and what they save of a step, for each block and each number of
# its hidden states.
SECONDS_PER_SHAPE = 1.6
SECONDS_SAVED = 20e-9
MARGIN = 2.0  # of what must be saved over what compiling costs


def compiling_pays(encoder, batch_size, lengths):
    """Whether compiling for every shape of a run saves more time than it takes.

    Args:
        encoder: `RecBertEncoder`.
        batch_size: int. Rows of a batch.
        lengths: sequence of int, the length of the rows of each batch of the run.

    Returns:
        bool; False too where nothing would be compiled.
    """
    config = encoder.config
    sizes = ("hidden_dim", "intermediate_dim", "recurrent_dim")
    width = max(config.get(size, 0) for size in sizes)
    if choose(config.get("implementation", "loop"), width)[0] != "xla":
        return False
    states = batch_size * sum(lengths) * encoder.hidden_dim * len(encoder.blocks)
    saved = SECONDS_SAVED * states
    return saved > MARGIN * SECONDS_PER_SHAPE * len(set(lengths))


def compiling_where_it_pays(encoder, batch_size, lengths, verbose=True):
    """A scope for `fit` in which layers are compiled if that pays; says so before.

    Args:
        encoder, batch_size, lengths: as for `compiling_pays`, of the whole run.
        verbose: whether to print.

    Returns:
        Context manager.
    """
    pays = compiling_pays(encoder, batch_size, lengths)
    if pays and verbose:
        print(
            f"XLA compiles the layers for {len(set(lengths))} lengths of text: the "
            "first step of each takes seconds longer.",
            flush=True,
        )
    return compiling(pays)
