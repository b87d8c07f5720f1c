import os
import subprocess
import sys

import pytest

COMPILING = """
import tensorflow as tf
import keras_recbert.ops.implementation
double = tf.function(lambda x: 2 * x, jit_compile=True)
print(double(3).numpy())
"""


@pytest.mark.slow  # TensorFlow starts twice
@pytest.mark.parametrize(("level", "is_shown"), [(None, False), ("0", True)])
def test_notes_of_the_compiler_are_shown_on_request_only(level, is_shown):
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": level}
    if level is None:
        del environment["TF_CPP_MIN_LOG_LEVEL"]
    result = subprocess.run(
        [sys.executable, "-c", COMPILING],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout == "6\n"
    assert ("Compiled cluster using XLA" in result.stderr) == is_shown
    assert ("before absl::InitializeLog() is called" in result.stderr) == is_shown
