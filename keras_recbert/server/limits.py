"""Who may ask, and how much: tokens and sizes of bodies."""

import hmac
import json
import pathlib

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse

OPEN = ("/healthz",)  # what is asked without a token
MAX_MESSAGE = 600  # characters of an error


def error_response(status, message, headers=None):
    """An answer `{"error": message}`, in ASCII, as a message may quote anything."""
    text = str(message)
    if len(text) > MAX_MESSAGE:
        text = f"{text[:MAX_MESSAGE]}..."
    return AsciiResponse({"error": text}, status, headers)


class AsciiResponse(JSONResponse):
    """JSON in ASCII."""

    def render(self, content):
        return json.dumps(content).encode("ascii")


def read_token(path):
    """Reads the token that requests must show.

    Args:
        path: str or path of a text file.

    Returns:
        bytes.

    Raises:
        ValueError: if it is empty, or no visible ASCII, which a header can hold.
        OSError: if it cannot be read.
    """
    token = pathlib.Path(path).read_bytes().strip()
    if not token or not all(33 <= byte <= 126 for byte in token):
        raise ValueError(
            f"{path} must hold a token in one line of visible ASCII. Received: "
            f"{len(token)} bytes. Write one: openssl rand -hex 32 > {path}."
        )
    return token


class TokenGate:
    """Answers requests without the token by 401, and passes others on.

    Args:
        app: ASGI application.
        token: bytes.
    """

    def __init__(self, app, token):
        self._app = app
        self._expected = b"Bearer " + token

    async def __call__(self, scope, receive, send):
        if scope["type"] == "http" and scope["path"] not in OPEN:
            shown = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(shown, self._expected):
                refuse = error_response(
                    401,
                    "This server needs a token: the header `Authorization: Bearer "
                    "TOKEN`.",
                    {"WWW-Authenticate": "Bearer"},
                )
                await refuse(scope, receive, send)
                return
        await self._app(scope, receive, send)


async def read_body(request, max_bytes):
    """Reads the body of a request, as far as it may be long.

    Args:
        request: `starlette.requests.Request`.
        max_bytes: int.

    Returns:
        bytes.

    Raises:
        HTTPException: with status 413 if it is longer; 400 if the client is gone.
    """
    told = request.headers.get("content-length", "")
    body = bytearray()
    try:
        if not told.isdecimal() or int(told) <= max_bytes:
            async for part in request.stream():
                body += part
                if len(body) > max_bytes:
                    break
            else:
                return bytes(body)
    except ClientDisconnect as error:
        raise HTTPException(400, "The client closed the connection.") from error
    raise HTTPException(
        413,
        f"The body is longer than {max_bytes} bytes. Send several requests.",
    )
