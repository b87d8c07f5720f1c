"""Long load on a server: does it fail, slow down, or take more and more memory?"""

from keras_recbert.benchmark.load import percentiles, run_load

SHARE = 0.8  # of the rate that it answers at most
WINDOW = 60.0  # seconds of a row
SETTLED = 5  # windows after which memory is to stay
MOST_RISE = 0.01


def soak(label, server, job, highest, config, say):
    """Loads a server with random arrivals.

    Args:
        label: str. Its name.
        server: `ServerProcess`.
        job: dict of `url` and `bodies`, see `workers/load_generator.py`.
        highest: float. Requests a second that it answers at most.
        config: `keras_recbert.config.ServingBenchmarkConfig`.
        say: function of str, told each row.

    Returns:
        dict: `system`, `requests_per_second`, `windows` (list of dict: `minute`, at
        which it ends, `requests`, `failed`, `milliseconds` by percentile and
        `rss_bytes`), and `memory_rise`, see `rise_of`.

    Raises:
        WorkerError: if the load generator ends. Of a server that ends, the requests
            after that have failed.
    """
    seconds = 60 * config.soak_minutes
    rate = SHARE * highest
    say(f"Soak of {label}: {rate:.1f} requests a second, {config.soak_minutes:g} min")
    windows = []

    def note(window):
        last = windows[-1]["minute"] if windows else 0.0
        row = {
            "minute": last + window["seconds"] / 60,
            "requests": len(window["latencies"]),
            "failed": window["failed"],
            "milliseconds": percentiles(window["latencies"]),
            "rss_bytes": server.rss_bytes(),
        }
        windows.append(row)
        say(describe(row))

    load = {**job, "rate": rate, "seconds": seconds, "window": WINDOW}
    run_load(load, seconds + config.timeout, note)
    return {
        "system": label,
        "requests_per_second": rate,
        "windows": windows,
        "memory_rise": rise_of([row["rss_bytes"] for row in windows]),
    }


def rise_of(memory):
    """Part by which memory rose after the first five windows.

    Args:
        memory: list of int, bytes at the end of each window; or of None.

    Returns:
        float: the most of later windows over that of the fifth, less 1. None without
        later windows, or where nobody says.
    """
    later = memory[SETTLED:]
    if not later or None in memory:
        return None
    return max(later) / memory[SETTLED - 1] - 1


def describe(row):
    """A window in a line."""
    memory = row["rss_bytes"]
    megabytes = "–" if memory is None else f"{memory / 1e6:.1f}"
    slowest = row["milliseconds"].get(99)
    p99 = "–" if slowest is None else f"{slowest:.1f}"
    return (
        f"minute {row['minute']:.1f}: {row['requests']} answers, "
        f"{sum(row['failed'].values())} failed, p99 {p99} ms, {megabytes} MB"
    )
