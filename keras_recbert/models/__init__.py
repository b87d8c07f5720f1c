"""Encoders: the registry of named sizes and the encoder they build."""
