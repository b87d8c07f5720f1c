"""`python -m keras_recbert.cli` is `recbert`."""

import sys

from keras_recbert.cli import main

sys.exit(main())
