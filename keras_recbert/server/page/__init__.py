"""The page to play with models: static files of this folder, and their headers."""

import pathlib

from starlette.responses import FileResponse
from starlette.routing import Route

from keras_recbert.server.models import DEFAULT

FOLDER = pathlib.Path(__file__).parent
FILES = (
    *("icon.svg", "page.css", "answers.css"),
    *("page.js", "answers.js", "colours.js", "words.js", "ask.js"),
)
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; "
    "form-action 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


def routes():
    """Routes of the page: `/`, and its files beside it."""
    return [
        _route("/", "index.html"),
        *(_route(f"/{name}", name) for name in FILES),
    ]


def _route(path, name):
    async def file(request):
        return FileResponse(FOLDER / name, headers=HEADERS)

    return Route(path, file)


def check_fields(models):
    """Raises `ValueError` if models that answer side by side read other fields.

    Args:
        models: dict of name to `keras_recbert.server.models.Model`.
    """
    fields = {
        name: sorted(model.version.signatures[DEFAULT].inputs)
        for name, model in models.items()
    }
    if len(set(map(tuple, fields.values()))) > 1:
        told = "; ".join(f"{name} {', '.join(own)}" for name, own in fields.items())
        raise ValueError(
            "Models side by side must read the same fields. Received: "
            f"{told}. Play with each by itself, at another --port."
        )
