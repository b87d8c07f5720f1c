"""Weights of other tools, in and out, and this package's own presets."""
