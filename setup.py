"""Package metadata of keras_recbert."""

import pathlib

from setuptools import find_packages, setup

HERE = pathlib.Path(__file__).parent

# Lower bounds are the oldest set that tests were run with, upper bounds stop
# before the first release nobody here has tried.
CORE = [
    "tensorflow>=2.20,<2.21",
    "tensorflow-text>=2.20.1,<2.21",  # 2.20.0 breaks FastWordpieceTokenizer
    "keras>=3.15,<3.16",
    "h5py>=3.11,<4",  # what a `.keras` file holds, before it is built
    "numpy>=2.0,<2.5",
    "safetensors>=0.4.5,<1",  # weights without pickles
    "lazy_loader>=0.4,<1",  # imports on first use
    "tyro>=1.0,<2",  # command line
    "PyYAML>=6,<7",  # recipe files
    "tqdm>=4.66,<5",  # progress of predictions
]
TABLES = ["pandas>=2.2,<4", "pyarrow>=17"]  # a user's own CSV, JSON lines, Parquet
TRAIN = [
    *TABLES,
    "scikit-learn>=1.5,<2",  # GLUE scores, the bag-of-words baseline
    "scipy>=1.13,<2",  # Pearson, Spearman
    "matplotlib>=3.9,<4",  # learning curves
]
DATA = [
    "tensorflow-datasets>=4.9.8,<5",
    "importlib_resources>=6",  # which tensorflow-datasets 4.9.10 forgets to name
    "conllu>=5,<7",  # with which it reads Universal Dependencies
]
PREPARE = [
    "apache-beam>=2.77,<3",  # runs the preparation of a corpus, anywhere
    "nupunkt>=0.8,<0.9",  # ends of sentences; brings its own model
]
DISTILL = [*TRAIN, "nltk>=3.9.2,<4"]  # parts of speech, for augmented text
HUB = [
    "huggingface_hub>=2.4,<3",  # presets on hf://
    "kagglehub>=1.0.2,<2",  # presets on kaggle://
]
SEARCH = ["optuna>=5,<6"]  # open search of options
SERVE = [
    "tensorflow-serving-api>=2.20,<2.21",  # requests that warm a server up
    "starlette>=1.0,<2",  # routes and requests
    "uvicorn>=0.40,<1",  # sockets and HTTP
    "prometheus-client>=0.22,<1",  # what `GET /metrics` answers
]
ONNX = [
    "tf2onnx>=1.17,<1.18",  # TensorFlow's ops to those of ONNX, by private parts of it
    "onnx>=1.23,<2",
    "onnxruntime>=1.32,<2",
]
NOTEBOOKS = ["nbclient>=0.10,<1", "nbformat>=5.10,<6", "ipykernel>=6.29,<8"]
DOCS = ["sphinx>=9,<10", "furo>=2025.9", "myst-parser>=5,<6"]
OFFICIAL = ["tf-models-official>=2.20,<2.21"]
# What `recbert benchmark` compares with; the Model Garden is in OFFICIAL, and
# `--install-peers` puts each into an environment of its own.
BENCHMARK = [
    "matplotlib>=3.9,<4",
    "keras-hub==0.32.0",
    "fastapi>=0.130,<1",  # the server that ours is compared with
    "uvicorn>=0.40,<1",
    "transformers>=5,<6",
    "torch==2.13.0",
]
TEST = [
    *TRAIN,
    *DATA,
    *PREPARE,
    *NOTEBOOKS,
    *SEARCH,
    *DISTILL,
    *HUB,
    *SERVE,
    *ONNX,
    *DOCS,
    "ai-edge-litert>=2.3,<3",  # what a device has, without TensorFlow
    "httpx>=0.28,<1",  # asks the server
    "playwright>=1.50,<2",  # plays with the page, where there is a Chromium
    "fastapi>=0.130,<1",  # the server that ours is compared with
    "pytest>=8,<10",
    "pytest-xdist>=3.6,<4",  # two test files side by side
    "ruff==0.17.5",  # a new formatter is a change of its own
    # Outside implementations that outputs and ids are compared with.
    "transformers>=5,<6",
    "torch==2.13.0",
]

setup(
    name="keras_recbert",
    version="0.1.0",
    description="A Keras 3 zoo of small, fast, recurrent BERT encoders.",
    long_description=(HERE / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.11,<3.14",
    packages=find_packages(include=["keras_recbert", "keras_recbert.*"]),
    # An editable install then is a line of `sys.path`. The import hook that setuptools
    # would write comes after folders named keras_recbert, such as a clone in the
    # folder that Python runs in, which Python takes for a package without a file.
    package_dir={"": "."},
    package_data={"keras_recbert.server.page": ["*.html", "*.css", "*.js", "*.svg"]},
    install_requires=CORE,
    extras_require={
        "tables": TABLES,
        "train": TRAIN,
        "data": DATA,
        "prepare": PREPARE,
        "pretrain": [*TRAIN, *PREPARE],
        "official": OFFICIAL,
        "distill": DISTILL,
        "serve": SERVE,
        "onnx": ONNX,
        "hub": HUB,
        "search": [*TRAIN, *SEARCH],
        "docs": [*TRAIN, *DOCS],
        "notebooks": [*TRAIN, *NOTEBOOKS],
        "benchmark": BENCHMARK,
        "test": TEST,
        "all": [
            *TRAIN,
            *DATA,
            *PREPARE,
            *SEARCH,
            *DISTILL,
            *HUB,
            *SERVE,
            *ONNX,
            *NOTEBOOKS,
            *OFFICIAL,
        ],
    },
    entry_points={"console_scripts": ["recbert = keras_recbert.cli:main"]},
    classifiers=[
        "License :: OSI Approved :: Apache Software License",
        "Programming Language :: Python :: 3",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
    ],
)
