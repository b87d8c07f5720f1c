"""Packages that only some of the work needs, and how to install them."""

import importlib.util

# Names of distributions where they differ from those of modules.
_DISTRIBUTIONS = {
    "apache_beam": "apache-beam",
    "prometheus_client": "prometheus-client",
    "sklearn": "scikit-learn",
    "tensorflow_datasets": "tensorflow-datasets",
    "tensorflow_serving": "tensorflow-serving-api",
}


def check_installed(what, extra, *modules):
    """Checks, before work starts, that packages of an extra are installed.

    Args:
        what: str. What needs them; the error begins with it.
        extra: str. Extra of `setup.py` that installs them.
        *modules: str. Names of modules at the top level; none is imported.

    Raises:
        ImportError: if one is not there; says how to install it.
    """
    for module in modules:
        if importlib.util.find_spec(module) is None:
            needed = _DISTRIBUTIONS.get(module, module)
            raise ImportError(
                f'{what} needs {needed}: pip install -e ".[{extra}]" in the folder '
                "that holds this package's setup.py.",
                name=module,
            )
