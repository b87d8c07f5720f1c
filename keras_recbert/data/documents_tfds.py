"""Documents from TensorFlow Datasets."""

from keras_recbert.core.extras import check_installed
from keras_recbert.data.documents import Document, DocumentError


def load_builder(path, reading):
    """Builder of a data set, downloaded and prepared where it is not.

    Args:
        path: str. `tfds:` and a name, such as `tfds:wikipedia/20230601.en`.
        reading: `Reading`.

    Returns:
        `tfds.core.DatasetBuilder`.

    Raises:
        ImportError: where tensorflow-datasets is not installed.
        DocumentError: where it has no such data set, split or field of text.
    """
    check_installed(path, "data", "tensorflow_datasets")
    import tensorflow_datasets as tfds

    name = path.removeprefix("tfds:")
    try:
        builder = tfds.builder(name, data_dir=reading.tfds_data_dir)
    except (tfds.core.DatasetNotFoundError, ValueError) as error:
        raise DocumentError(f"{path}: {str(error).strip().splitlines()[0]}") from None
    builder.download_and_prepare()
    if reading.split not in builder.info.splits:
        raise DocumentError(
            f"{path} has no split {reading.split!r}. --split names one of: "
            f"{', '.join(sorted(builder.info.splits))}."
        )
    text_field(path, builder, reading)
    return builder


def text_field(path, builder, reading):
    """Name of the feature that holds the text: `reading.text_field`, or the only one.

    Raises:
        DocumentError: where there are several, or none.
    """
    features = builder.info.features
    fields = [name for name in features if _is_text(features[name])]
    if reading.text_field in fields:
        return reading.text_field
    if len(fields) == 1:
        return fields[0]
    raise DocumentError(
        f"{path} has no feature {reading.text_field!r} of text. --text-field names one "
        f"of: {', '.join(sorted(fields)) or 'none, it has no text'}."
    )


def _is_text(feature):
    import tensorflow as tf

    return getattr(feature, "shape", None) == () and feature.tf_dtype == tf.string


def read_examples(path, reading, start, end):
    """Yields a `Document` for each example from `start` to `end`."""
    import tensorflow_datasets as tfds

    builder = load_builder(path, reading)
    field = text_field(path, builder, reading)
    end = min(end, builder.info.splits[reading.split].num_examples)
    if start >= end:
        return
    dataset = builder.as_dataset(
        split=f"{reading.split}[{start}:{end}]",
        shuffle_files=False,
        # In the order of the files, or `position` would not be theirs.
        read_config=tfds.ReadConfig(
            interleave_cycle_length=1, try_autocache=False, interleave_block_length=1
        ),
    )
    dataset = dataset.map(lambda example: example[field])
    for index, text in enumerate(dataset.as_numpy_iterator(), start=start):
        bad_lines = 0
        try:
            decoded = text.decode("utf-8")
        except UnicodeDecodeError:
            decoded, bad_lines = text.decode("utf-8", "replace"), 1
        yield Document(index, [line for line in decoded.split("\n") if line], bad_lines)
