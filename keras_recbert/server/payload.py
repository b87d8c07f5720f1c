"""JSON of requests as arrays, and arrays as JSON of answers.

The form is that of TensorFlow Serving's REST API
(https://www.tensorflow.org/tfx/serving/api_rest): rows under `instances`, answered by
`predictions`; columns under `inputs`, answered by `outputs`.
"""

import base64
import binascii
import dataclasses
import json
import reprlib

import numpy as np
from starlette.exceptions import HTTPException

from keras_recbert.core.names import nearest
from keras_recbert.server.models import DEFAULT

_KEYS = ("signature_name", "instances", "inputs")


@dataclasses.dataclass(frozen=True)
class Request:
    """What a body asks: a signature, its columns, and how the answer is written."""

    signature: object
    columns: dict
    rows: int
    by_row: bool


def read_request(body, signatures, max_texts):
    """Reads the body of a request.

    Args:
        body: bytes.
        signatures: dict of name to `Signature`.
        max_texts: int. Examples of a request, and strings in a list of one.

    Returns:
        `Request`.

    Raises:
        ValueError: if the body is no request, or does not fit the signature.
        HTTPException: with status 413, if there are too many texts.
    """
    request = _parsed(body)
    if not isinstance(request, dict):
        raise ValueError(
            'The body must be an object, such as {"instances": ["a text"]}. Received: '
            f"{_shown(request)}."
        )
    for key in request:
        if key not in _KEYS:
            raise ValueError(
                f"Unknown key {_shown(key)}. {nearest(key, _KEYS)}Valid: "
                f"{', '.join(_KEYS)}."
            )
    if ("instances" in request) == ("inputs" in request):
        raise ValueError(
            "The body must have one of `instances`, a list of examples, and `inputs`, "
            f"columns by their names. Received: {', '.join(request) or 'none'}."
        )
    name = request.get("signature_name", DEFAULT)
    name = DEFAULT if name == "" else name
    if not isinstance(name, str) or name not in signatures:
        raise ValueError(
            f"There is no signature {_shown(name)}. Valid: {', '.join(signatures)}."
        )
    signature = signatures[name]
    by_row = "instances" in request
    if by_row:
        values = _columns_of_rows(request["instances"], signature.inputs, max_texts)
    else:
        values = _columns_by_name(request["inputs"], signature.inputs)
    columns = {
        name: to_array(values[name], spec, name, max_texts)
        for name, spec in signature.inputs.items()
    }
    return Request(signature, columns, _num_rows(columns), by_row)


def _parsed(body):
    """The value of a JSON document in UTF-8."""
    try:
        return json.loads(body.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError(
            f"The body is not UTF-8: byte {error.start} is {body[error.start]:#04x}. "
            'Send other bytes in base64: {"b64": "..."}.'
        ) from error
    except RecursionError as error:
        raise ValueError("The body is nested too deeply.") from error
    except ValueError as error:
        raise ValueError(f"The body is not JSON: {error}.") from error


def _columns_of_rows(rows, inputs, max_texts):
    """Columns of a list of examples: values, or objects of values by name."""
    if not isinstance(rows, list) or not rows:
        raise ValueError(
            "`instances` must be a list with an example or more. Received: "
            f"{_shown(rows)}."
        )
    _check_count(len(rows), "instances", max_texts)
    if not _is_object(rows[0]):
        if len(inputs) > 1:
            raise ValueError(
                f"An example has several inputs: {', '.join(inputs)}. Give each as an "
                f"object of them. Received: {_shown(rows[0])}."
            )
        if any(_is_object(row) for row in rows):
            raise ValueError("`instances` must hold values or objects, not both.")
        return {next(iter(inputs)): rows}
    for index, row in enumerate(rows):
        if not _is_object(row) or set(row) != set(inputs):
            keys = ", ".join(row) if _is_object(row) else _shown(row)
            raise ValueError(
                f"Example {index} of `instances` must be an object of "
                f"{', '.join(inputs)}. Received: {keys or 'none'}."
            )
    return {name: [row[name] for row in rows] for name in inputs}


def _columns_by_name(columns, inputs):
    """Columns of an object of them, or the one column there is."""
    if _is_object(columns):
        if set(columns) != set(inputs):
            raise ValueError(
                f"`inputs` must have the columns {', '.join(inputs)}. Received: "
                f"{', '.join(columns) or 'none'}."
            )
        return columns
    if len(inputs) > 1:
        raise ValueError(
            f"`inputs` must be an object of the columns {', '.join(inputs)}. Received: "
            f"{_shown(columns)}."
        )
    return {next(iter(inputs)): columns}


def _is_object(value):
    return isinstance(value, dict) and set(value) != {"b64"}


def _check_count(number, name, most):
    if number > most:
        raise HTTPException(
            413,
            f"`{name}` holds a list of {number}. At most {most} texts fit into a "
            "request, and into a list of an example. Send several requests.",
        )


def to_array(value, spec, name, max_texts):
    """Turns a value of JSON into the array that an input takes.

    Args:
        value: what JSON holds.
        spec: `tf.TensorSpec`.
        name: str. The input, for errors.
        max_texts: int. Examples, and strings in a list of one.

    Returns:
        Array; of objects, which are bytes, for strings.

    Raises:
        ValueError: if the value is of another type or shape, or uneven.
        HTTPException: with status 413, if there are too many.
    """
    if spec.shape.rank is None:
        raise ValueError(f"`{name}` is an input of any rank, which is not served.")
    flat, shape = [value], []
    for axis in range(spec.shape.rank):
        if not all(isinstance(one, list) for one in flat):
            wrong = next(one for one in flat if not isinstance(one, list))
            raise ValueError(
                f"`{name}` must be lists of {spec.dtype.name} to a depth of "
                f"{spec.shape.rank}, with the batch. Received: {_shown(wrong)} at "
                f"depth {axis}."
            )
        sizes = {len(one) for one in flat}
        if len(sizes) > 1:
            raise ValueError(
                f"`{name}` is uneven: its lists at depth {axis} have from "
                f"{min(sizes)} to {max(sizes)} values. Pad them to one size, strings "
                'with "".'
            )
        shape.append(sizes.pop() if sizes else 0)
        if axis == 0 or spec.dtype.name == "string":
            _check_count(shape[-1], name, max_texts)
        flat = [item for one in flat for item in one]
    if not spec.shape.is_compatible_with(shape):
        raise ValueError(
            f"`{name}` must have the shape {_dims(spec)}. Received: {tuple(shape)}."
        )
    if spec.dtype.name == "string":
        values = np.empty(len(flat), object)
        values[:] = [_to_bytes(one, name) for one in flat]
    else:
        values = _to_numbers(flat, spec, name)
    return values.reshape(shape)


def _dims(spec):
    return f"({', '.join('any' if n is None else str(n) for n in spec.shape)})"


def _to_bytes(value, name):
    if isinstance(value, str):
        try:
            return value.encode("utf-8")
        except UnicodeEncodeError as error:
            raise ValueError(
                f"A string of `{name}` has half a surrogate pair, "
                f"\\u{ord(value[error.start]):04x} at {error.start}, which is no text."
            ) from error
    if isinstance(value, dict) and isinstance(value.get("b64"), str):
        try:
            return base64.b64decode(value["b64"], validate=True)
        except (binascii.Error, ValueError) as error:
            raise ValueError(
                f"A value of `{name}` is invalid base64: {error}."
            ) from error
    raise ValueError(
        f'`{name}` must hold strings, or {{"b64": "..."}}. Received: {_shown(value)}.'
    )


def _to_numbers(flat, spec, name):
    dtype = spec.dtype
    kinds = (bool,) if dtype.is_bool else (int,) if dtype.is_integer else (int, float)
    if not (dtype.is_bool or dtype.is_integer or dtype.is_floating):
        raise ValueError(f"`{name}` is of {dtype.name}, which JSON has no values of.")
    for value in flat:
        if type(value) not in kinds:
            raise ValueError(
                f"`{name}` must hold values of {dtype.name}. Received: {_shown(value)}."
            )
        if dtype.is_integer and not dtype.min <= value <= dtype.max:
            raise ValueError(
                f"`{name}` must hold values of {dtype.name}, from {dtype.min} to "
                f"{dtype.max}. Received: {_shown(value)}."
            )
    try:
        return np.array(flat, dtype.as_numpy_dtype)
    except OverflowError as error:
        raise ValueError(f"`{name}` holds a number that is too large.") from error


def _num_rows(columns):
    """Examples in columns; those without an axis of examples are one."""
    rows = {name: x.shape[0] if x.ndim else 1 for name, x in columns.items()}
    if len(set(rows.values())) > 1:
        told = ", ".join(f"{name} {number}" for name, number in rows.items())
        raise ValueError(f"Columns must have as many rows as each other. Rows: {told}.")
    number = next(iter(rows.values()))
    if number == 0:
        raise ValueError("There is nothing to ask: give one example or more.")
    return number


def write_answer(outputs, by_row, rows):
    """Writes the outputs of a signature as TensorFlow Serving does.

    Args:
        outputs: dict of arrays by name. One output is written without its name.
        by_row: bool. Whether rows were asked, or columns.
        rows: int. Examples that were asked.

    Returns:
        bytes of JSON. Strings are text; where they are not UTF-8, and in outputs whose
        name ends with `_bytes`, `{"b64": "..."}`. NaN and infinities are written so.

    Raises:
        ValueError: if rows were asked and an output has no row an example.
    """
    values = {name: _plain(array, name) for name, array in outputs.items()}
    if not by_row:
        whole = values if len(values) > 1 else next(iter(values.values()))
        return _dump({"outputs": whole})
    for name, array in outputs.items():
        if array.ndim == 0 or len(array) != rows:
            raise ValueError(
                f"The output `{name}` has the shape {array.shape} for {rows} examples. "
                "Ask this signature with `inputs` in place of `instances`."
            )
    if len(values) == 1:
        return _dump({"predictions": next(iter(values.values()))})
    named = (
        dict(zip(values, row, strict=True))
        for row in zip(*values.values(), strict=True)
    )
    return _dump({"predictions": list(named)})


def _plain(array, name):
    if array.dtype != object and array.dtype.kind != "S":
        return array.tolist() if array.dtype.kind in "biuf" else _as_floats(array)
    flat = [_to_text(value, name.endswith("_bytes")) for value in array.ravel()]
    texts = np.empty(len(flat), object)
    texts[:] = flat
    return texts.reshape(array.shape).tolist()


def _as_floats(array):
    return array.astype("float32").tolist()  # bfloat16, which NumPy knows by TensorFlow


def _to_text(value, is_bytes):
    if not is_bytes:
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            pass
    return {"b64": base64.b64encode(value).decode("ascii")}


def _dump(value):
    return json.dumps(value, ensure_ascii=False).encode("utf-8")


def _shown(value):
    """The beginning of a value of a request."""
    return reprlib.repr(value)
