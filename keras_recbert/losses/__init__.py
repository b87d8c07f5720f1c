"""Public losses, loaded on first use: importing this package costs nothing."""

import lazy_loader

from keras_recbert.keras_backend import require_tensorflow

require_tensorflow()
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={"distillation": ["DistillationLoss", "TeacherAgreement"]},
)
