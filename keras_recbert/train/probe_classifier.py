"""The classifier of a probing task, on features that stay as they are."""

import warnings

import numpy as np


def train_probe(features, labels, num_classes, config):
    """Trains a classifier and scores it at its best epoch.

    As Aksoy et al. 2020, section 4.4, train it: hidden layers of 128 units, learning
    rate 1e-3, no weight decay, batches of 32. They have two hidden layers; the default
    of `recbert probe` is one. What they leave open is as in SentEval's protocol: Adam,
    sigmoid units, no dropout, the epoch with the best accuracy on `va` scored on `te`.
    SentEval looks at `va` each fourth pass and stops after five looks without a better
    one, here it is each pass; and it reads features as they are, which
    `config.standardize` decides here.

    Args:
        features: dict of "train", "validation" and "test" to float32
            `(num_examples, dim)`.
        labels: dict of these to int `(num_examples,)`.
        num_classes: int.
        config: `ProbeConfig`.

    Returns:
        dict of `validation_accuracy`, `test_accuracy`, `best_epoch` and `epochs`.

    Raises:
        ValueError: if features are NaN or infinite.
    """
    from sklearn.neural_network import MLPClassifier
    from sklearn.preprocessing import StandardScaler

    if config.standardize:
        scaler = StandardScaler().fit(features["train"])
        features = {split: scaler.transform(rows) for split, rows in features.items()}
    rng = np.random.RandomState(config.seed)  # goes on from epoch to epoch
    has_hidden = config.hidden_units != [0]
    model = MLPClassifier(
        tuple(config.hidden_units) if has_hidden else (),
        activation="logistic",
        alpha=0.0,
        batch_size=min(config.batch_size, len(labels["train"])),
        learning_rate_init=config.learning_rate,
        random_state=rng,
    )
    best, best_epoch, best_weights, epoch = -1.0, 0, None, 0
    classes = np.arange(num_classes)
    while epoch < config.epochs and epoch - best_epoch < config.early_stopping:
        epoch += 1
        with warnings.catch_warnings():
            # Classes of few examples are no mistake here.
            warnings.filterwarnings("ignore", "The number of unique classes")
            model.partial_fit(features["train"], labels["train"], classes=classes)
        accuracy = _accuracy(model, features, labels, "validation")
        if accuracy > best:
            best, best_epoch = accuracy, epoch
            weights = (*model.coefs_, *model.intercepts_)
            best_weights = [weight.copy() for weight in weights]
    number = len(model.coefs_)
    model.coefs_, model.intercepts_ = best_weights[:number], best_weights[number:]
    return {
        "validation_accuracy": best,
        "test_accuracy": _accuracy(model, features, labels, "test"),
        "best_epoch": best_epoch,
        "epochs": epoch,
    }


def _accuracy(model, features, labels, split):
    return float(np.mean(model.predict(features[split]) == labels[split]))
