"""The server as a process, or beside a notebook."""

import contextlib
import json
import logging
import shlex
import socket
import threading

import uvicorn

from keras_recbert.config import ServeConfig
from keras_recbert.server.app import make_app
from keras_recbert.server.models import DEFAULT

LOG = logging.getLogger("keras_recbert.server")


def serve(config):
    """Serves SavedModels until SIGTERM or Ctrl-C; what was accepted is answered.

    Args:
        config: `ServeConfig`, or the path of a folder to serve with its defaults.

    Raises:
        ValueError: if a model, an option or the address cannot be used.
        OSError: if a file cannot be read.
    """
    server = _make_server(config)
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s recbert: %(message)s"))
    LOG.addHandler(handler)
    LOG.setLevel(logging.INFO)
    LOG.propagate = False  # or the root, where it has a handler, says it again
    try:
        # uvicorn answers what it has, and then raises the signal a second time.
        with contextlib.suppress(KeyboardInterrupt):
            server.run(sockets=[server.socket])
    finally:
        server.socket.close()
        LOG.removeHandler(handler)
        LOG.propagate = True
    print("Stopped: what was accepted is answered.", flush=True)


@contextlib.contextmanager
def running(config):
    """Serves SavedModels from a thread, such as beside a notebook.

    Args:
        config: `ServeConfig`, or the path of a folder, which is served at any free
            port.

    Yields:
        str. The address, such as "http://127.0.0.1:40123".

    Raises:
        ValueError, OSError: as `serve`.
    """
    if not isinstance(config, ServeConfig):
        config = ServeConfig([config], port=0)
    server = _make_server(config)
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


def _make_server(config):
    if not isinstance(config, ServeConfig):
        config = ServeConfig([config])
    bound = _bind(config.host, config.port)
    try:
        return _Uvicorn(make_app(config), bound, config)
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
