"""Readers of raw text and labels. Plain Python and NumPy; no TensorFlow."""
