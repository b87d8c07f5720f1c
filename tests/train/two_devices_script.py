"""Runs commands on one device and on two of this machine. The tests fork it."""

import tensorflow as tf

from keras_recbert.cli import main


def run_recipes(folder, command, names, strategies=("one_device", "mirrored")):
    """Runs NAME.yaml of a folder, to NAME/STRATEGY there; the status of the last.

    Args:
        folder: path.
        command: "finetune" or "pretrain".
        names, strategies: of str.
    """
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(2)
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0],
        [tf.config.LogicalDeviceConfiguration()] * 2,
    )
    for name in names:
        for strategy in strategies:
            print(f"== {name} {strategy}", flush=True)
            status = main(
                [command, "--recipe", str(folder / f"{name}.yaml")]
                + ["--output-dir", str(folder / name / strategy)]
                + ["--strategy", strategy]
            )
            if status:
                return status
    return 0
