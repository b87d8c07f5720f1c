"""The server as a process, or beside a notebook."""

import contextlib
import json
import logging
import shlex
import socket
import threading
import webbrowser

import uvicorn

from keras_recbert.config import ServeConfig
from keras_recbert.server.app import make_app
from keras_recbert.server.models import DEFAULT

LOG = logging.getLogger("keras_recbert.server")
_STOPPED = "Stopped: what was accepted is answered."
# Seconds that a connection may idle. Load balancers keep one for 60 s; where the server
# closes first, a request that is on its way is lost.
KEEP_ALIVE = 75


def serve(config):
    """Serves SavedModels until SIGTERM or Ctrl-C; what was accepted is answered.

    Args:
        config: `ServeConfig`, or the path of a folder to serve with its defaults.

    Raises:
        ValueError: if a model, an option or the address cannot be used.
        OSError: if a file cannot be read.
    """
    server = _make_server(config)
    try:
        # uvicorn answers what it has, and then raises the signal a second time.
        with _logging(), contextlib.suppress(KeyboardInterrupt):
            server.run(sockets=[server.socket])
    finally:
        server.socket.close()
    print(_STOPPED, flush=True)


def play(*models, port=8501, open_browser=False):
    """Serves a page to play with models, until SIGTERM or Ctrl-C.

    It is for this machine alone, at `http://127.0.0.1:PORT/`. In a notebook it ends
    when the cell is interrupted.

    Args:
        *models: str or paths: SavedModels, folders of numbered ones, or of runs that
            wrote `savedmodel/`. Several answer side by side.
        port: int. 0 takes a free one.
        open_browser: bool. Whether the browser shows the page.

    Raises:
        ValueError: if there is no model, they read different fields, or the port is
            taken.
        OSError: if a file cannot be read.
    """
    # One person asks at a time: nobody else would share a call.
    config = ServeConfig([*map(str, models)], port=port, batch_timeout_ms=0)
    stopping = contextlib.suppress(KeyboardInterrupt)
    with _logging(), stopping, running(config, page=True) as url:
        print(f"Play at {url}/ (Ctrl-C ends it)", flush=True)
        if open_browser and not webbrowser.open(f"{url}/"):
            print(f"There is no browser to open. Open {url}/ yourself.", flush=True)
        threading.Event().wait()
    print(_STOPPED, flush=True)


def check_address(host="127.0.0.1", port=8501):
    """Raises `ValueError` if nothing can be served at an address, such as a taken one.

    Args:
        host: str.
        port: int.
    """
    _bind(host, port).close()


@contextlib.contextmanager
def _logging():
    """Writes what the server logs to stderr."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s recbert: %(message)s"))
    LOG.addHandler(handler)
    LOG.setLevel(logging.INFO)
    LOG.propagate = False  # or the root, where it has a handler, says it again
    try:
        yield
    finally:
        LOG.removeHandler(handler)
        LOG.propagate = True


@contextlib.contextmanager
def running(config, page=False):
    """Serves SavedModels from a thread, such as beside a notebook.

    Args:
        config: `ServeConfig`, or the path of a folder, which is served at any free
            port.
        page: bool. Whether the address itself is the page of `play`.

    Yields:
        str. The address, such as "http://127.0.0.1:40123".

    Raises:
        ValueError, OSError: as `serve`.
    """
    if not isinstance(config, ServeConfig):
        config = ServeConfig([config], port=0)
    server = _make_server(config, page)
    thread = threading.Thread(target=server.run, args=([server.socket],), daemon=True)
    thread.start()
    try:
        while not server.ready.wait(0.1):
            if not thread.is_alive():
                raise RuntimeError("The server ended before it listened; see its log.")
        yield server.url
    finally:
        server.should_exit = True
        thread.join()


def _make_server(config, page=False):
    if not isinstance(config, ServeConfig):
        config = ServeConfig([config])
    bound = _bind(config.host, config.port)
    try:
        return _Uvicorn(make_app(config, page), bound, config)
    except BaseException:
        bound.close()
        raise


def _bind(host, port):
    """A socket of an address; it listens once the models are loaded."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, asyncio sends at once (TCP_NODELAY).
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        raise ValueError(
            f"The address {host}:{port} cannot be served: {error.strerror}. Choose "
            "another: --port, --host."
        ) from error
    return bound


class _Uvicorn(uvicorn.Server):
    """uvicorn, which says what it serves once it listens.

    Args:
        app: what `make_app` gives.
        bound: socket.
        config: `ServeConfig`.
    """

    def __init__(self, app, bound, config):
        super().__init__(
            uvicorn.Config(
                app,
                log_config=None,  # its own would close the handlers of a notebook
                log_level="warning",
                access_log=False,
                server_header=False,
                lifespan="on",
                timeout_keep_alive=KEEP_ALIVE,
                timeout_graceful_shutdown=int(config.timeout_s) + 5,
            )
        )
        self.socket = bound
        self.ready = threading.Event()
        host, port = bound.getsockname()[:2]
        self.url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        self._models = app.state.models
        self._token_file = config.token_file

    async def startup(self, sockets=None):
        await super().startup(sockets)
        lines = (self._lines(model) for model in self._models.values())
        print("\n".join(line for own in lines for line in own), flush=True)
        self.ready.set()

    def _lines(self, model):
        inputs = model.version.signatures[DEFAULT].inputs
        examples = {name: _example(spec) for name, spec in inputs.items()}
        if len(examples) == 1:
            examples = next(iter(examples.values()))
        body = json.dumps({"instances": [examples]})
        token = ""
        if self._token_file:
            token = (
                f'-H "Authorization: Bearer $(cat {shlex.quote(self._token_file)})" '
            )
        yield f"Serving {model.name}, version {model.version.number}, at {self.url}"
        yield f"curl {token}-d '{body}' {self.url}/v1/models/{model.name}:predict"


def _example(spec):
    value = "a text" if spec.dtype.name == "string" else 0
    for size in reversed(spec.shape[1:]):
        value = [value] * (size or 2)
    return value
