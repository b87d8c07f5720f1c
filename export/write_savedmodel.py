"""Writes a SavedModel of a trained model: a thin front of `recbert export`.

python export/write_savedmodel.py runs/sst2-swish_small-seed0/model.keras OUT
"""

import sys

from keras_recbert.cli import main

if __name__ == "__main__":
    sys.exit(main(["export", *sys.argv[1:]]))
