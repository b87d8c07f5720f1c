"""Hubs that hold presets by name: Hugging Face and Kaggle."""
