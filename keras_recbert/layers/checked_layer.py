"""Base of the public layers: shapes of a call are checked, Keras's masks are read."""

import keras
import numpy as np
import tensorflow as tf

ROWS = ("batch_size", "sequence_length")


class CheckedLayer(keras.layers.Layer):
    """A layer that checks the shapes of a call and takes masks as Keras passes them.

    Shapes: each call is checked before the layer is built or run, eagerly and with
    symbolic inputs. Axes of one name have one size; unknown sizes (None) fit all.

    Masks: a layer whose `call` has `padding_mask` and `mask` masks the same positions
    for both. `mask` is Keras's: of `keras.layers.Embedding(mask_zero=True)` or
    `keras.layers.Masking`, passed along by the layers between. `padding_mask` counts
    where there is one; a `mask` beside it must be equal. Keras's mask is passed on
    with the output, unless the layer has no output for each position; `padding_mask`
    is not, so it goes to each layer.

    Attributes:
        call_shapes: dict. Names of the axes of each call argument, in their order;
            `...` is one axis or more.
        built_axis: str or None. The axis whose size `build` fixes, the last one of
            the first argument.
    """

    call_shapes = {"inputs": (*ROWS, "hidden_dim"), "padding_mask": ROWS}
    built_axis = "hidden_dim"

    def __call__(self, *args, **kwargs):
        self._check_call(args, kwargs)
        return super().__call__(*args, **kwargs)

    def compute_mask(self, inputs, previous_mask=None):
        return previous_mask

    def add_float32_weight(self, shape, initializer, name):
        """Adds a weight of float32 (float64) that no precision rounds.

        With `"bfloat16"`, whose other weights are stored as `"mixed_bfloat16"` casts
        them in each call, a layer then gives what it gives with that.
        """
        dtype = "float64" if self.variable_dtype == "float64" else "float32"
        return self.add_weight(shape, initializer, dtype, name=name, autocast=False)

    def agreed_mask(self, inputs, padding_mask, mask):
        """The mask of a call, for `call` to use.

        Args:
            inputs, padding_mask, mask: arguments of `call`, the latter two may be None.

        Returns:
            `padding_mask`, else the mask of Keras, else None.

        Raises:
            ValueError: if both masks are there and differ, or if `padding_mask` is of
                floats other than 0 and 1. A graph cannot know while it is built: one
                that runs with masks that differ ends with TensorFlow's
                `InvalidArgumentError`, unless XLA compiled it, which knows no errors;
                then `padding_mask` counts.
        """
        if mask is None:
            mask = _keras_mask(inputs)
        if padding_mask is None:
            return mask
        padding_mask = keras.ops.convert_to_tensor(padding_mask)
        eager = tf.executing_eagerly()
        if eager and keras.backend.is_float_dtype(padding_mask.dtype):
            values = tf.cast(padding_mask, "float32")
            if not tf.reduce_all((values == 0.0) | (values == 1.0)):
                raise ValueError(
                    f"`padding_mask` of {self._title()} must be 1 at tokens and 0 at "
                    f"padding. Received: {padding_mask}."
                )
        if mask is None or mask is padding_mask:
            return padding_mask
        message = (
            f"{self._title()} received two masks that differ: `padding_mask`, and the "
            "mask that Keras passes along with `inputs` or as `mask`. Leave "
            "`padding_mask` out to use Keras's."
        )
        mask, given = tf.cast(mask, "bool"), tf.cast(padding_mask, "bool")
        if not eager:
            tf.debugging.assert_equal(mask, given, message)
        elif not tf.reduce_all(mask == given):
            raise ValueError(message)
        return padding_mask

    def _title(self):
        return f"{type(self).__name__} {self.name!r}"

    def _check_call(self, args, kwargs):
        """Raises `ValueError` for shapes that do not fit `call_shapes`."""
        names = self.call_shapes
        given = dict(zip(names, args, strict=False))
        given |= {name: kwargs[name] for name in names if name in kwargs}
        inputs = next(iter(given.values()), None)
        if isinstance(inputs, (list, tuple, dict)):
            raise ValueError(
                f"{self._title()} takes one tensor an argument: {self._expected()}. "
                f"Received: a {type(inputs).__name__} as the first one."
            )
        if "padding_mask" in names:
            mask = kwargs.get("mask")
            given["mask"] = _keras_mask(inputs) if mask is None else mask
        shapes = {name: _shape(value) for name, value in given.items()}
        shapes = {name: shape for name, shape in shapes.items() if shape is not None}
        wrong = self._misfit(shapes)
        if wrong:
            received = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
            raise ValueError(
                f"{self._title()} expected {self._expected()}; {wrong}. "
                f"Received shapes: {received}."
            )

    def _misfit(self, shapes):
        """What is wrong with the shapes of a call, or None."""
        sizes, built_axis = {}, self.built_axis
        if self.built and built_axis is not None:
            sizes[built_axis] = "the layer as built", self._built_size()
        for name, shape in shapes.items():
            axes = self.call_shapes["padding_mask" if name == "mask" else name]
            wrong = _first_misfit(name, shape, axes, sizes)
            if wrong:
                return wrong
        if not self.built and sizes.get(built_axis, (None, 0))[1] is None:
            return f"{built_axis} must be known, for the shapes of the weights"
        return None

    def _expected(self):
        return ", ".join(
            f"`{name}` ({', '.join('...' if axis is ... else axis for axis in axes)})"
            for name, axes in self.call_shapes.items()
        )

    def _built_size(self):
        config = self.get_build_config() or {}
        shapes = [config.get("input_shape"), *config.get("shapes_dict", {}).values()]
        return next((shape[-1] for shape in shapes if shape is not None), None)


def _first_misfit(name, shape, axes, sizes):
    """What is wrong with a shape, or None; enters its sizes into `sizes`."""
    if ... in axes:
        at = axes.index(...)
        end = len(shape) - (len(axes) - at - 1)
        if end <= at:
            return f"`{name}` has {len(shape)} axes"
        shape = (*shape[:at], tuple(shape[at:end]), *shape[end:])
    elif len(shape) != len(axes):
        return f"`{name}` has {len(shape)} axes instead of {len(axes)}"
    for axis, size in zip(axes, shape, strict=True):
        known_by, known = sizes.get(axis, (None, None))
        if not _compatible(known, size):
            what = "the shape" if axis is ... else axis
            return f"{what} is {known} of {known_by} and {size} of `{name}`"
        if known is None:
            sizes[axis] = f"`{name}`", size
    return None


def _compatible(a, b):
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_compatible, a, b))
    return a is None or b is None or a == b


def _shape(value):
    """Shape of a tensor, or of a mask that is a list; None if it is unknown."""
    if isinstance(value, (list, tuple)):
        return np.shape(value)
    shape = getattr(value, "shape", None)
    if shape is None or getattr(shape, "rank", 0) is None:
        return None
    return tuple(shape)


def _keras_mask(x):
    """The mask that Keras attached to a tensor; it has no public name for it."""
    return getattr(x, "_keras_mask", None)
