"""Routes of the server: what TensorFlow Serving's REST API has, health and metrics."""

import asyncio
import contextlib
import http
import logging
import time

import tensorflow as tf
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from keras_recbert.core.names import nearest
from keras_recbert.server import page as play_page
from keras_recbert.server.batching import Batcher, QueueFull
from keras_recbert.server.card import model_card
from keras_recbert.server.limits import (
    TokenGate,
    error_response,
    read_body,
    read_token,
)
from keras_recbert.server.memory import return_memory
from keras_recbert.server.metrics import Metrics
from keras_recbert.server.models import open_models, reason
from keras_recbert.server.payload import read_request, write_answer

LOG = logging.getLogger("keras_recbert.server")
MODEL = "/v1/models/{model}"
VERSION = MODEL + "/versions/{version}"
LARGE = 64 * 1024  # bytes of a body that keeps no neighbour waiting while it is read
ROUTES = (
    "GET /v1/models, GET /v1/models/NAME[/versions/N][/metadata], "
    "GET /v1/models/NAME/card, POST /v1/models/NAME[/versions/N]:predict, "
    "GET /healthz, GET /metrics"
)


def make_app(config, page=False):
    """Loads models and makes the ASGI application that answers for them.

    Args:
        config: `keras_recbert.config.ServeConfig`.
        page: bool. Whether `GET /` is the page to play with the models.

    Returns:
        `starlette.applications.Starlette`, with the dict of models in `state.models`;
        any ASGI server runs it, in one process.

    Raises:
        ValueError, OSError: as `open_models` and `read_token`.
        ValueError: for a page, if a token is needed, or models read other fields.
    """
    if page and config.token_file:
        raise ValueError(
            "A browser shows no token, so the page is for this machine alone. Leave "
            f"`token_file` out. Received: token_file={config.token_file}."
        )
    token = read_token(config.token_file) if config.token_file else None
    server = _Server(config, open_models(config.folders))
    if page:
        play_page.check_fields(server.models)
    routes = [
        *(play_page.routes() if page else ()),
        Route("/v1/models", server.names),
        Route(f"{MODEL}/card", server.card),
        Route("/healthz", _health),
        Route("/metrics", server.metrics_page),
        *(Route(path, server.status) for path in (MODEL, VERSION)),
        *(Route(f"{path}/metadata", server.metadata) for path in (MODEL, VERSION)),
        *(
            Route(f"{path}:predict", server.predict, methods=["POST"])
            for path in (VERSION, MODEL)
        ),
    ]
    app = Starlette(
        routes=sorted(routes, key=lambda route: ":predict" not in route.path),
        lifespan=server.lifespan,
        exception_handlers={HTTPException: _http_error, Exception: _own_error},
    )
    app.router.redirect_slashes = False
    app.state.models = server.models
    if token is not None:
        app.add_middleware(TokenGate, token=token)
    return app


async def _health(request):
    return JSONResponse({"status": "ok"})


async def _http_error(request, error):
    message = error.detail
    if message == http.HTTPStatus(error.status_code).phrase:  # the router's
        message = f"{message}: {request.method} {request.url.path}. Valid: {ROUTES}."
    return error_response(error.status_code, message, error.headers)


async def _own_error(request, error):
    return error_response(500, "The server failed. Its log says why.")


class _Server:
    """What the routes share: models, the queue, and counts."""

    def __init__(self, config, models):
        self.models = models
        self._config = config
        self._batcher = None
        self._metrics = Metrics(models, lambda: self._batcher.waiting)

    @contextlib.asynccontextmanager
    async def lifespan(self, app):
        """Answers and reloads while the application runs."""
        config = self._config
        self._batcher = Batcher(
            config.max_batch_size,
            config.batch_timeout_ms / 1000,
            config.max_waiting,
            config.num_batch_threads,
            self._metrics.call,
        )
        tasks = [
            asyncio.create_task(self._batcher.run()),
            asyncio.create_task(self._reload()),
            asyncio.create_task(return_memory()),
        ]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._batcher.close()

    async def _reload(self):
        while True:
            await asyncio.sleep(self._config.poll_seconds)
            for model in self.models.values():
                try:
                    await asyncio.to_thread(model.refresh)
                except Exception:  # the next look may find the folder whole
                    LOG.exception("%s: looking for versions failed.", model.name)

    def _model(self, request):
        """The model and the version that a path names."""
        if ":" in request.url.path and request.method != "POST":  # GET ...:predict
            raise HTTPException(405)
        name = request.path_params["model"]
        if name not in self.models:
            raise HTTPException(
                404,
                f"There is no model {name!r}. {nearest(name, self.models)}Valid: "
                f"{', '.join(self.models)}.",
            )
        model = self.models[name]
        version = model.version  # one, whatever is loaded meanwhile
        number = request.path_params.get("version", str(version.number))
        if number != str(version.number):
            raise HTTPException(
                404,
                f"Version {number} of {name} is not served. Valid: {version.number}.",
            )
        return model, version

    async def status(self, request):
        model, version = self._model(request)
        states = [_state(version.number, "AVAILABLE", "OK", "")]
        if "version" not in request.path_params:
            states += [
                _state(number, "END", "UNKNOWN", message)
                for number, message in model.damaged.items()
            ]
        return JSONResponse({"model_version_status": states})

    async def metadata(self, request):
        model, version = self._model(request)
        return JSONResponse(
            {
                "model_spec": {
                    "name": model.name,
                    "signature_name": "",
                    "version": str(version.number),
                },
                "metadata": {"signature_def": {"signature_def": version.signature_def}},
            }
        )

    async def names(self, request):
        return JSONResponse({"models": [*self.models]})

    async def card(self, request):
        model, _ = self._model(request)
        return JSONResponse(model_card(model))

    async def metrics_page(self, request):
        return Response(self._metrics.page(), media_type=self._metrics.content_type)

    async def predict(self, request):
        begin = time.perf_counter()
        status, texts = 500, 0
        try:
            body, texts = await self._answer(request)
            status = 200
            milliseconds = 1000 * (time.perf_counter() - begin)
            headers = {"Server-Timing": f"predict;dur={milliseconds:.2f}"}
            return Response(body, media_type="application/json", headers=headers)
        except HTTPException as error:
            status = error.status_code
            raise
        finally:
            seconds = time.perf_counter() - begin
            name = request.path_params["model"]
            self._metrics.request(name, status, seconds, texts)

    async def _answer(self, request):
        """The body of an answer, and how many examples it has."""
        config = self._config
        model, version = self._model(request)
        try:
            async with asyncio.timeout(config.timeout_s):
                body = await read_body(request, int(config.max_body_mb * 1e6))
        except TimeoutError as error:
            raise HTTPException(
                408,
                f"The body did not arrive in {config.timeout_s} s.",
                {"Connection": "close"},
            ) from error
        with _refusing():
            arguments = body, version.signatures, config.max_texts
            if len(body) > LARGE:
                asked = await asyncio.to_thread(read_request, *arguments)
            else:
                asked = read_request(*arguments)
        outputs = await self._outputs(model, asked)
        with _refusing():
            return write_answer(outputs, asked.by_row, asked.rows), asked.rows

    async def _outputs(self, model, asked):
        try:
            async with asyncio.timeout(self._config.timeout_s):
                return await self._batcher.ask(
                    model.name, asked.signature, asked.columns, asked.rows
                )
        except QueueFull as error:
            raise HTTPException(
                429,
                f"{self._batcher.waiting} texts wait, {self._config.max_waiting} may. "
                "Try again in a second.",
                {"Retry-After": "1"},
            ) from error
        except TimeoutError as error:
            raise HTTPException(
                504, f"There was no answer in {self._config.timeout_s} s."
            ) from error
        except tf.errors.InvalidArgumentError as error:
            raise HTTPException(
                400, f"The model refuses this: {reason(error)}"
            ) from error


@contextlib.contextmanager
def _refusing():
    """Answers what a request has wrong, a `ValueError`, by status 400."""
    try:
        yield
    except ValueError as error:
        raise HTTPException(400, str(error)) from error


def _state(number, state, code, message):
    return {
        "version": str(number),
        "state": state,
        "status": {"error_code": code, "error_message": message},
    }
