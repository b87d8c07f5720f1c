"""Float64 NumPy pieces that the other references share, and finite differences."""

import math

import numpy as np


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def gelu(x):
    """`x * P(X <= x)` for a standard normal X (Hendrycks and Gimpel 2016)."""
    return x * 0.5 * (1.0 + np.vectorize(math.erf)(x / math.sqrt(2.0)))


def softmax(x):
    """Of one vector; entries of minus infinity get no weight."""
    powers = np.exp(x - np.max(x))
    return powers / np.sum(powers)


def layer_norm(x, gamma, beta, epsilon=1e-12):
    """Ba et al. 2016, over the last axis, with the epsilon of BERT's release."""
    mean = np.mean(x, axis=-1, keepdims=True)
    variance = np.mean((x - mean) ** 2, axis=-1, keepdims=True)
    return gamma * (x - mean) / np.sqrt(variance + epsilon) + beta


def finite_differences(function, arguments, index, step=1e-6):
    """Gradient of a scalar `function(*arguments)` by `arguments[index]`.

    Central differences: the error is of order `step ** 2`, plus rounding of order
    `1e-16 / step`; in float64 about 1e-9 at the default step.
    """
    at = [np.array(argument, "float64") for argument in arguments]
    gradient = np.zeros_like(at[index])
    for place in np.ndindex(gradient.shape):
        value = at[index][place]
        at[index][place] = value + step
        above = function(*at)
        at[index][place] = value - step
        below = function(*at)
        at[index][place] = value
        gradient[place] = (above - below) / (2.0 * step)
    return gradient
