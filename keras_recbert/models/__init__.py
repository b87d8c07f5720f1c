"""Encoders: the registry of named sizes and the backbone they build."""
