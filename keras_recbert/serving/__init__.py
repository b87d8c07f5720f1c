"""SavedModels: written here, read by anything that runs TensorFlow."""

from keras_recbert.keras_backend import require_tensorflow

require_tensorflow()
