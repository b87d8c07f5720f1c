"""Scores of finished predictions, computed by scikit-learn and SciPy."""
