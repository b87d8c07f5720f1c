"""Prints as JSON which of the distributions named in its arguments are here."""

import importlib.metadata
import json
import platform
import sys


def main(names):
    found = {"python": platform.python_version()}
    for name in names:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = None
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
