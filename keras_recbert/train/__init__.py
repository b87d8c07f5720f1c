"""Training runs: strategy, callbacks, scores, curves, results."""

from keras_recbert.keras_backend import require_tensorflow

require_tensorflow()
