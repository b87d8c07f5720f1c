"""How Sphinx makes the documentation: `sphinx-build -W docs build/docs`."""

import keras_recbert

project = "keras_recbert"
release = version = keras_recbert.__version__
html_title = f"{project} {version}"
html_theme = "furo"
html_show_copyright = False
html_show_sourcelink = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b6e4f"},
    "dark_css_variables": {"color-brand-primary": "#5fd3a8"},
}
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
myst_heading_anchors = 3
napoleon_use_ivar = True
default_role = "code"  # docstrings have names in single backquotes
autodoc_member_order = "alphabetical"
autodoc_inherit_docstrings = False
autodoc_class_signature = "separated"
napoleon_custom_sections = [
    ("Call arguments", "params_style"),
    ("Signatures", "params_style"),
]
# Links to files beside this folder, which tests/test_readme.py follows.
suppress_warnings = ["myst.xref_missing"]


def setup(app):
    """What classes have of Keras is documented there."""
    app.connect("autodoc-skip-member", _of_keras)


def _of_keras(app, what, name, member, skip, options):
    module = getattr(getattr(member, "fget", member), "__module__", None) or ""
    return True if module.startswith("keras.src") else skip
