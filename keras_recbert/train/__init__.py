"""Training runs: strategy, callbacks, scores, curves, results."""
