"""Training on several machines, with Keras's own `fit` and `evaluate`."""

import contextlib
import functools
import json
import os
import socket

import tensorflow as tf

JOBS = ("chief", "worker")
EXAMPLE = (
    '{"cluster": {"worker": ["10.0.0.1:2222", "10.0.0.2:2222"]}, '
    '"task": {"type": "worker", "index": 0}}'
)
# What TensorFlow raises in a worker whose peers are gone.
LOST = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
    tf.errors.FailedPreconditionError,
)


# How lines begin that name a place in the graph or the program.
_NO_REASON = ("Graph execution error", "Detected at node", "File ", "{{node", "[[")


class MultiWorkerStrategy(tf.distribute.MultiWorkerMirroredStrategy):
    """`MultiWorkerMirroredStrategy` with which `fit` and `evaluate` of Keras 3 work.

    Keras (keras-team/keras#20585) asks it for the mean of a whole batch, whose shapes
    it builds from, and for the mean over axis 0 of logs that have no axis.
    """

    def reduce(self, reduce_op, value, axis):
        if isinstance(value, (dict, list, tuple)):
            return tf.nest.map_structure(
                lambda one: self.reduce(reduce_op, one, axis), value
            )
        if self.experimental_local_results(value)[0].shape.rank == 0:
            axis = None
        return super().reduce(reduce_op, value, axis)


def make_multi_worker_strategy():
    """The strategy of the cluster in `TF_CONFIG`; waits for its other workers.

    Make it before TensorFlow computes anything. All workers then run the same program:
    `fit`, `evaluate` and reading a metric wait for all of them, so that only what
    writes files may be left to the chief (`is_chief`).

    Returns:
        `MultiWorkerStrategy`.

    Raises:
        ValueError: if `TF_CONFIG` is not valid.
        RuntimeError: if the port of this worker is taken, or TensorFlow has computed.
    """
    addresses, me = read_cluster(os.environ.get("TF_CONFIG"))
    _check_port(addresses[me])
    print(f"Worker {me + 1} of {len(addresses)}, waiting for the others.", flush=True)
    try:
        return MultiWorkerStrategy()
    except RuntimeError as error:
        raise RuntimeError(
            f"{error} Make the strategy 'multi_worker' before TensorFlow computes "
            "anything in this process."
        ) from error


def read_cluster(text):
    """Reads `TF_CONFIG`.

    Args:
        text: str, JSON such as `EXAMPLE`, or None.

    Returns:
        Tuple of the addresses of all workers, the chief first, and the index of this
        one among them.

    Raises:
        ValueError: if it is missing or not valid.
    """
    if not text:
        raise ValueError(
            "Several machines train together when each has its place in the "
            f"environment variable TF_CONFIG, such as {EXAMPLE}, and another index on "
            "each. It is not set. Set it, or use another strategy."
        )
    try:
        config = json.loads(text)
    except json.JSONDecodeError as error:
        raise _invalid("must be JSON", f"{error}: {text}") from error
    cluster = config.get("cluster") if isinstance(config, dict) else None
    if not isinstance(cluster, dict) or not cluster or set(cluster) - set(JOBS):
        raise _invalid(
            f"needs a `cluster`, a mapping of {' and '.join(JOBS)} to addresses",
            f"cluster={cluster!r}",
        )
    for job, addresses in cluster.items():
        if not isinstance(addresses, list) or not addresses:
            raise _invalid(f"needs a list of addresses for {job}", f"{addresses!r}")
        for address in addresses:
            if not _is_address(address):
                raise _invalid(
                    "takes addresses host:port, with ports from 1 to 65535",
                    f"{address!r} in {job}",
                )
    if len(cluster.get("chief", ["one"])) > 1:
        raise _invalid("has one chief at most", f"chief={cluster['chief']!r}")
    addresses = [address for job in JOBS for address in cluster.get(job, ())]
    if len(set(addresses)) < len(addresses):
        raise _invalid("needs another address for each worker", f"{addresses!r}")
    if len(addresses) < 2:
        raise _invalid(
            "needs two workers or more (for one machine use strategy='auto')",
            f"{addresses!r}",
        )
    task = config.get("task")
    job = task.get("type") if isinstance(task, dict) else None
    if job not in cluster:
        raise _invalid(
            f"needs a `task` whose `type` is one of {', '.join(cluster)}",
            f"task={task!r}",
        )
    index = task.get("index")
    if type(index) is not int or not 0 <= index < len(cluster[job]):
        raise _invalid(
            f"needs a `task` whose `index` is from 0 to {len(cluster[job]) - 1}, the "
            f"place of this machine in the list of {job}",
            f"index={index!r}",
        )
    return addresses, addresses.index(cluster[job][index])


def is_chief(strategy):
    """Whether this process is the one that writes files.

    Args:
        strategy: `tf.distribute.Strategy`.

    Returns:
        bool; True for all strategies of one process.
    """
    if not isinstance(strategy, MultiWorkerStrategy):
        return True
    resolver = strategy.cluster_resolver
    if "chief" in resolver.cluster_spec().jobs:
        return resolver.task_type == "chief"
    return resolver.task_id == 0


def shared_batches(batches, strategy):
    """Has each device of a strategy take its rows of every batch, in order.

    Each worker makes the batches whole and takes its rows of them, so they must come
    in the same order on all. (What TensorFlow would do by itself depends on how the
    dataset was made: each worker may get files of its own, or other rows.)

    Args:
        batches: `tf.data.Dataset` of global batches.
        strategy: `tf.distribute.Strategy`.

    Returns:
        A dataset for `fit` and `evaluate`: `batches`, or for several workers a
        `tf.distribute.DistributedDataset`.

    Raises:
        ValueError: if the devices cannot share the batches equally; where the number
            of rows is not known before, `tf.errors.InvalidArgumentError` when read.
    """
    num_devices = strategy.num_replicas_in_sync
    if num_devices == 1:
        return batches
    rows = tf.nest.flatten(batches.element_spec)[0].shape[0]
    rule = f"The {num_devices} devices must share each batch equally"
    if rows is None:
        batches = batches.map(lambda *batch: _check_rows(batch, num_devices, rule))
    elif rows % num_devices:
        near = max(1, rows // num_devices) * num_devices
        raise ValueError(f"{rule}. Received: {rows} rows. Try {near}.")
    if not isinstance(strategy, MultiWorkerStrategy):
        return batches  # Keras splits them, in order

    def of_worker(context):
        number = num_devices // context.num_input_pipelines
        return take_shares(
            batches, num_devices, context.input_pipeline_id * number, number
        )

    return strategy.distribute_datasets_from_function(of_worker)


def check_workers_agree(variables, strategy):
    """Raises `RuntimeError` if workers hold other values, such as of a checkpoint.

    Training would continue and differ on each. Compares sums of the weights, once all
    workers are here.

    Args:
        variables: list of Keras variables.
        strategy: `tf.distribute.Strategy`.
    """
    if not isinstance(strategy, MultiWorkerStrategy):
        return
    sums = [tf.reduce_sum(tf.cast(v, tf.float64)) for v in variables]
    rows = strategy.gather(tf.stack(sums)[None], axis=0).numpy()
    for variable, column in zip(variables, rows.T, strict=True):
        if (column != column[0]).any():
            raise RuntimeError(
                f"Workers begin with different values of {variable.path}, whose sums "
                f"are {column.tolist()}. Each must find the same checkpoint: put it "
                "where all machines see it, or copy it to all."
            )


@contextlib.contextmanager
def report_lost_workers(strategy):
    """Reports, when another worker is gone, what to do, instead of TensorFlow's text.

    TensorFlow's coordination service notices a process that ended, or a machine that
    does not answer, within a minute, and stops what waits for it.

    Args:
        strategy: `tf.distribute.Strategy`.

    Raises:
        RuntimeError: if a worker was lost inside.
    """
    try:
        yield
    except LOST as error:
        if not isinstance(strategy, MultiWorkerStrategy):
            raise
        resolver = strategy.cluster_resolver
        # Of many lines, which quote the graph and list the frames that made it.
        said = _first_reason(error.message)
        raise RuntimeError(
            f"{resolver.task_type} {resolver.task_id} stopped because another worker "
            f"of {resolver.cluster_spec().as_dict()} ended or does not answer. See "
            "the output of the others for the cause, then start all of them again. "
            f"TensorFlow said: {said}"
        ) from error


def _first_reason(message, length=200):
    """The line of a message of TensorFlow that says what happened, shortened."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    reasons = [line for line in lines if not line.startswith(_NO_REASON)] or lines
    reason = reasons[0] if reasons else ""
    return reason if len(reason) <= length else f"{reason[:length]} ..."


def take_shares(batches, num_shares, first, number):
    """Shares `first` to `first + number - 1` of every batch, one after the other."""

    def take(batch, share):
        def rows(values):
            size = (values.shape[0] or tf.shape(values)[0]) // num_shares
            return values[share * size :][:size]

        return tf.nest.map_structure(rows, batch)

    if number == 1:
        return batches.map(lambda *batch: take(batch, first))
    shares = range(first, first + number)
    return batches.flat_map(
        lambda *batch: functools.reduce(
            tf.data.Dataset.concatenate,
            [tf.data.Dataset.from_tensors(take(batch, share)) for share in shares],
        )
    )


def _check_rows(batch, num_devices, rule):
    rows = tf.shape(tf.nest.flatten(batch)[0])[0]
    check = tf.debugging.assert_equal(
        rows % num_devices,
        0,
        f"{rule}, the last one too: take a multiple of {num_devices} examples.",
    )
    with tf.control_dependencies([check]):
        return tf.nest.map_structure(tf.identity, batch)


def _invalid(rule, received):
    return ValueError(
        f"TF_CONFIG {rule}. Received: {received}. A valid one is {EXAMPLE}."
    )


def _is_address(address):
    if not isinstance(address, str):
        return False
    host, _, port = address.rpartition(":")
    return bool(host) and port.isdecimal() and 1 <= int(port) <= 65535


def _check_port(address):
    """Raises `RuntimeError` if another process listens where this worker will.

    TensorFlow would share the port, and wait for ever.
    """
    port = int(address.rpartition(":")[2])
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError as error:
            raise RuntimeError(
                f"Another process of this machine uses port {port} of TF_CONFIG's "
                f"{address} ({error.strerror}). Does a worker run here already, or "
                "have two the same index? End it, or choose another port."
            ) from error
