"""Bodies of requests are read strictly, answers are written as TF Serving does."""

import base64
import json
import types

import numpy as np
import pytest
import tensorflow as tf
from starlette.exceptions import HTTPException

from keras_recbert.server.payload import read_request, write_answer


def signature(**inputs):
    specs = {
        name: tf.TensorSpec(shape, dtype) for name, (shape, dtype) in inputs.items()
    }
    return types.SimpleNamespace(inputs=specs)


SIGNATURES = {
    "serving_default": signature(text=([None], tf.string)),
    "pair": signature(text=([None], tf.string), text_pair=([None], tf.string)),
    "choices": signature(text=([None], tf.string), choices=([None, None], tf.string)),
    "ids": signature(ids=([None, None], tf.int32)),
    "numbers": signature(x=([None, 2], tf.float32), on=([None], tf.bool)),
    "one": signature(x=([], tf.float32)),
}


def read(max_texts=5, **request):
    name = request.get("signature", "serving_default")
    request = {
        ("signature_name" if k == "signature" else k): request[k] for k in request
    }
    found = read_request(json.dumps(request).encode(), SIGNATURES, max_texts)
    assert found.signature is SIGNATURES[name]
    return found


def listed(found):
    return {name: values.tolist() for name, values in found.columns.items()}


def test_rows_and_columns_become_the_same_arrays():
    texts = ["a", "\u00fc", ""]
    expected = {"text": [b"a", "\u00fc".encode(), b""]}
    for request in (
        {"instances": texts},
        {"instances": [{"text": text} for text in texts]},
        {"inputs": texts},
        {"inputs": {"text": texts}, "signature": "serving_default"},
        {"instances": ["a", {"b64": base64.b64encode(b"\xc3\xbc").decode()}, ""]},
    ):
        found = read(**request)
        assert listed(found) == expected and found.rows == 3
        assert found.by_row == ("instances" in request)
    assert listed(read(instances=[{"b64": "YQD/"}])) == {"text": [b"a\0\xff"]}

    rows = [{"text": "a", "choices": ["b", ""]}, {"choices": ["c", "d"], "text": "e"}]
    columns = {"text": ["a", "e"], "choices": [["b", ""], ["c", "d"]]}
    by_row = read(instances=rows, signature="choices")
    assert listed(by_row) == listed(read(inputs=columns, signature="choices"))
    assert listed(by_row)["choices"] == [[b"b", b""], [b"c", b"d"]]

    found = read(instances=[{"x": [1, 2.5], "on": True}], signature="numbers")
    assert listed(found) == {"x": [[1.0, 2.5]], "on": [True]}
    assert found.columns["x"].dtype == np.float32
    assert read(inputs=2.5, signature="one").rows == 1


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({}, "must have one of `instances`"),
        ({"instances": ["a"], "inputs": ["a"]}, "must have one of `instances`"),
        ({"instance": ["a"]}, "Unknown key 'instance'.*instances"),
        ({"instances": []}, "with an example or more"),
        ({"instances": "a"}, "with an example or more. Received: 'a'"),
        ({"inputs": []}, "nothing to ask"),
        ({"instances": [1]}, "`text` must hold strings.* Received: 1"),
        ({"instances": [None]}, "`text` must hold strings.* Received: None"),
        ({"instances": [["a"]]}, r"`text` must hold strings.* Received: \['a'\]"),
        ({"inputs": {"texts": ["a"]}}, "must have the columns text. Received: texts"),
        ({"instances": [{"texts": "a"}]}, "Example 0.* object of text.*texts"),
        ({"instances": [{"text": "a"}, "b"]}, "Example 1.* object of text. Rec.*'b'"),
        ({"instances": ["a", {"text": "b"}]}, "values or objects, not both"),
        ({"instances": ["a"], "signature": "pair"}, "several inputs: text, text_pair"),
        ({"inputs": ["a"], "signature": "pair"}, "object of the columns text, text_p"),
        (
            {"inputs": {"text": ["a"], "text_pair": ["b", "c"]}, "signature": "pair"},
            "as many rows as each other. Rows: text 1, text_pair 2",
        ),
        (
            {"inputs": {"text": ["a"] * 2, "choices": [["b"], []]}}
            | {"signature": "choices"},
            "`choices` is uneven: its lists at depth 1 have from 0 to 1",
        ),
        ({"inputs": [1, 2], "signature": "ids"}, "int32 to a depth of 2.* 1 at depth"),
        ({"inputs": [[1.0]], "signature": "ids"}, "values of int32. Received: 1.0"),
        ({"inputs": [[True]], "signature": "ids"}, "values of int32. Received: True"),
        ({"inputs": [[2**31]], "signature": "ids"}, "from -2147483648 to 2147483647"),
        (
            {"inputs": {"x": [[1.0]], "on": [True]}, "signature": "numbers"},
            r"shape \(any, 2\). Received: \(1, 1\)",
        ),
        ({"instances": ["\ud83d"]}, "half a surrogate pair"),
        ({"instances": [{"b64": "a"}]}, "invalid base64"),
        ({"instances": [{"b64": "YQ==\u00fc"}]}, "invalid base64"),
        ({"instances": [{"b64": 1}]}, "`text` must hold strings"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_reason(request_, message):
    with pytest.raises(ValueError, match=message):
        read(**request_)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "not JSON"),
        (b'{"instances": ["a"]', "not JSON"),
        (b"\xef\xbb\xbf{}", "not JSON"),
        (b'{"instances": ["\xff"]}', "not UTF-8: byte 16 is 0xff"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"instances": ' + b"9" * 5000 + b"}", "not JSON: Exceeds the limit"),
        (b'"a"', "must be an object.* Received: 'a'"),
        (b'{"signature_name": "x", "inputs": []}', "no signature 'x'. Valid: serving"),
        (b'{"signature_name": [], "inputs": []}', r"no signature \[\]"),
    ],
)
def test_bodies_that_are_no_request_are_refused(body, message):
    with pytest.raises(ValueError, match=message):
        read_request(body, SIGNATURES, 5)


def test_too_many_texts_are_refused_by_their_own_status():
    assert read(instances=["a"] * 5).rows == 5
    many = [["b"] * 6]
    for request in (
        {"instances": ["a"] * 6},
        {"inputs": ["a"] * 6},
        {"inputs": {"text": ["a"], "choices": many}, "signature": "choices"},
        {"inputs": [[1]] * 6, "signature": "ids"},
    ):
        with pytest.raises(HTTPException, match="holds a list of 6. At most 5") as told:
            read(**request)
        assert told.value.status_code == 413
    assert read(inputs=[[1] * 600], signature="ids").columns["ids"].shape == (1, 600)


def test_answers_have_the_form_of_tensorflow_serving():
    def written(outputs, by_row=True, rows=2):
        return json.loads(write_answer(outputs, by_row, rows))

    scores = np.array([[0.5, 0.1], [0.25, 3]], np.float32)
    labels = np.array([b"a", "\u00fc".encode()], object)
    assert written({"scores": scores}) == {"predictions": scores.tolist()}
    assert written({"scores": scores}, False) == {"outputs": scores.tolist()}
    both = {"scores": scores, "label": labels}
    assert written(both) == {
        "predictions": [
            {"scores": scores[0].tolist(), "label": "a"},
            {"scores": scores[1].tolist(), "label": "\u00fc"},
        ]
    }
    assert written(both, False) == {
        "outputs": {"scores": scores.tolist(), "label": ["a", "\u00fc"]}
    }
    odd = np.array([[b"\xff\0", b"a"]], object)
    assert written({"tags": odd}, rows=1) == {"predictions": [[{"b64": "/wA="}, "a"]]}
    assert written({"raw_bytes": odd[:, 1]}, rows=1) == {
        "predictions": [{"b64": "YQ=="}]
    }
    narrow = tf.constant([1.5], tf.bfloat16).numpy()
    assert written({"x": narrow}, rows=1) == {"predictions": [1.5]}
    assert written({"n": np.array([3]), "on": np.array([True])}, rows=1) == {
        "predictions": [{"n": 3, "on": True}]
    }
    assert written({"x": np.asarray(np.float32(2))}, False, 1) == {"outputs": 2.0}
    with pytest.raises(ValueError, match=r"`x` has the shape \(\) for 2 examples"):
        written({"x": np.asarray(2.0)})
