"""Runs commands on one device and on two of this machine. The tests start it.

    python two_devices_script.py FOLDER COMMAND NAME...

COMMAND is `finetune` or `pretrain`; each NAME.yaml in FOLDER is a recipe, whose runs
go to NAME/one_device and NAME/mirrored. With `--only STRATEGY` at the end only one of
them runs.
"""

import pathlib
import sys

import tensorflow as tf

from keras_recbert.cli import main


def run(folder, command, names, strategies):
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


if __name__ == "__main__":
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(2)
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0],
        [tf.config.LogicalDeviceConfiguration()] * 2,
    )
    folder, command, *names = sys.argv[1:]
    strategies = ("one_device", "mirrored")
    if names[-2] == "--only":
        *names, _, strategy = names
        strategies = (strategy,)
    sys.exit(run(pathlib.Path(folder), command, names, strategies))
