"""The command `recbert`, one file for each group of commands."""

from keras_recbert.cli.command_line import COMMANDS, CONFIGS, main, with_config

__all__ = ["COMMANDS", "CONFIGS", "main", "with_config"]
