"""An HTTP server of SavedModels, in the REST form of TensorFlow Serving."""

import lazy_loader

from keras_recbert.core.extras import check_installed

check_installed("Serving", "serve", "starlette", "uvicorn", "prometheus_client")

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={"app": ["make_app"], "run": ["play", "running", "serve"]},
)
