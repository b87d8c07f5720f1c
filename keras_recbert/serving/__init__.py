"""SavedModels: written here, read by anything that runs TensorFlow."""
