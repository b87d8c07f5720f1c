"""A process that works for a pipeline of this package; Beam starts it."""

import logging
import sys

if __name__ == "__main__":
    # Every worker would greet; what goes wrong is raised in the main process.
    logging.disable(logging.ERROR)
    from apache_beam.runners.worker import sdk_worker_main

    sdk_worker_main.main(sys.argv)
