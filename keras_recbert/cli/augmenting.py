"""The command that makes synthetic examples of a table's texts: augment."""

from typing import Annotated

from tyro.conf import arg

from keras_recbert.config import AugmentConfig


def augment(config: Annotated[AugmentConfig, arg(name="")]):
    """Writes the texts of a table, and synthetic ones: masked and replaced words.

    They are what a teacher scores and a student learns from (Liu 2020, section 3.3).
    `--recipe FILE` takes the options from a YAML file; options beside it replace the
    file's.
    """
    from keras_recbert.data.augmented_file import augment_file

    written = augment_file(
        config.input,
        config.output,
        config.augmentation(),
        config.text_column,
        num_workers=config.num_workers,
        encoding=config.encoding,
        overwrite=config.overwrite,
    )
    number = written.num_originals + written.num_augmented
    print(
        f"Wrote {config.output}: {written.num_originals:,} originals, "
        f"{written.num_augmented:,} synthetic examples; {written.seconds:.1f} s, "
        f"{written.tagging_seconds:.1f} s of it for parts of speech, "
        f"{number / max(written.seconds, 1e-9):,.0f} examples/s."
    )
