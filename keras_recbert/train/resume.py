"""What every run asks before it resumes, or begins."""

from keras_recbert.train.precision import Precision, choose_precision


def check_same_run(state, config, checksums, folder, way_out):
    """Checks that the run in a folder is one of these options and texts.

    Args:
        state: dict of its latest checkpoint, or None if there is none.
        config: `keras_recbert.config.RunConfig`.
        checksums: JSON. Of the texts; None before they are read.
        folder: path.
        way_out: str. How to start anew instead.

    Raises:
        ValueError: if it is another.
    """
    if state is None:
        return
    changed = config.changes(state["options"])
    if not changed and checksums is not None and checksums != state["sums"]:
        changed = "another text in the files to learn from or to score on"
    if changed:
        raise ValueError(
            f"{folder} holds a run with other options: {changed}. Repeat the options "
            f"to resume it, {way_out} to start anew, or choose another output_dir."
        )


def choose_run_precision(state, config):
    """The precision of a new run, or that of the run that resumes."""
    if state is not None:
        # A busy machine may measure other rates than before the stop.
        return Precision(**state["precision"])
    precision = choose_precision(config.precision)
    if config.precision == "auto":
        print(f"Computing in {precision.chosen}: {precision.reason}.", flush=True)
    return precision


def tell_step(state):
    """Prints where a run resumes."""
    if state["step"]:
        print(f"Resuming after step {state['step']:,}.", flush=True)
