"""Python files of the user, whose blocks, models and data sets a command then knows."""

import argparse
import importlib.util
import os
import pathlib
import sys

# Absolute paths, for the commands that a command starts.
VARIABLE = "RECBERT_IMPORT"


def import_extensions(argv):
    """Takes `--import FILE` out of the arguments, and runs the files.

    Args:
        argv: list of str, the arguments of `recbert`.

    Returns:
        list of str, the other arguments.

    Raises:
        ValueError: if a file is missing, or has no name ending with .py.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument(
        "--import", dest="files", action="append", nargs="?", default=[]
    )
    known, others = parser.parse_known_args(argv)
    inherited = os.environ.get(VARIABLE, "").split(os.pathsep)
    given = [str(pathlib.Path(file or "").resolve()) for file in known.files or ()]
    files = list(dict.fromkeys([*filter(None, inherited), *given]))
    for file in files:
        if not (file.endswith(".py") and os.path.isfile(file)):
            raise ValueError(
                "--import needs a Python file that is there, such as my_blocks.py. "
                f"Received: {file}."
            )
    for file in files:
        _run(file)
    if files:
        os.environ[VARIABLE] = os.pathsep.join(files)
    return others


def _run(file):
    """Imports a file as the module of its name, once."""
    name = pathlib.Path(file).stem
    found = sys.modules.get(name)
    if getattr(found, "__file__", None) == file:
        return
    if found is not None or importlib.util.find_spec(name) is not None:
        raise ValueError(
            f"--import {file}: there is a module {name!r} already. Rename the file."
        )
    spec = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
