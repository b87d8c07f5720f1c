"""Parts of speech of the words of texts, and how often each word is of which."""

import bisect
import concurrent.futures
import itertools
import json
import multiprocessing
import os
import pickle
import pkgutil
import sys
from array import array
from collections import Counter

import numpy as np
from tqdm import tqdm

from keras_recbert.core.extras import check_installed
from keras_recbert.data.word_spans import words_of

MODEL = "averaged_perceptron_tagger_eng"
_CHUNK = 256  # texts that a process is given at a time
# What texts have where the Penn Treebank, which the tagger learned from, has others.
_TREEBANK = {
    **dict.fromkeys(("-lrb-", "-lcb-", "-lsb-", "[", "{"), "("),
    **dict.fromkeys(("-rrb-", "-rcb-", "-rsb-", "]", "}"), ")"),
    "“": "``",
    "”": "''",
    "’": "'",
}


class NltkTagger:
    """NLTK's perceptron tagger of English: tags of the Penn Treebank.

    Its model is read from the folders of the environment variable `NLTK_DATA` and from
    NLTK's own; where it is nowhere, NLTK downloads it, 1.5 MB, once.

    Call arguments:
        words: list of str.

    Returns:
        List of str, a tag for each word.

    Raises:
        ImportError: without NLTK.
        FileNotFoundError: if the model is nowhere and cannot be downloaded.
    """

    def __init__(self):
        check_installed("Replacing words by part of speech", "distill", "nltk")
        from nltk.tag.perceptron import PerceptronTagger

        self._tagger = PerceptronTagger(load=False)
        parts = ("weights", "tagdict", "classes")
        # Not by its own loading, which finds no model inside a ZIP.
        self._tagger.decode_json_params([_read_model(part) for part in parts])

    def __call__(self, words):
        return [tag for _, tag in self._tagger.tag(_as_in_treebank(words))]


def _as_in_treebank(words):
    """Words with brackets and quotes as the Penn Treebank has them."""
    quotes = itertools.cycle(("``", "''"))  # one opens, the next one closes
    return [
        next(quotes) if word == '"' else _TREEBANK.get(word.lower(), word)
        for word in words
    ]


def _read_model(part):
    """A file of the tagger's model; downloads the model if it is not there."""
    import nltk

    # Of the environment as it is now: NLTK read it when it was imported.
    folders = [
        path for path in os.environ.get("NLTK_DATA", "").split(os.pathsep) if path
    ]
    path = f"taggers/{MODEL}/{MODEL}.{part}.json"
    try:
        found = nltk.data.find(path, [*folders, *nltk.data.path])
    except LookupError:
        _download(folders)
        found = nltk.data.find(path, [*folders, *nltk.data.path])
    with found.open() as file:
        return json.load(file)


def _download(folders):
    """Downloads the tagger's model into the first of the folders, or NLTK's own."""
    import nltk

    print(f"Downloading {MODEL} of NLTK.", file=sys.stderr, flush=True)
    folder = folders[0] if folders else None
    if not nltk.download(MODEL, download_dir=folder, quiet=True):
        raise FileNotFoundError(
            f"NLTK's model {MODEL} is not in {', '.join([*folders, *nltk.data.path])}, "
            "and could not be downloaded (is this machine offline?). Where there is a "
            f"network: python -m nltk.downloader -d FOLDER {MODEL}; then set NLTK_DATA "
            "to FOLDER. Or replace no words: pos_probability=0 (--pos-probability 0)."
        )


def find_tagger(name):
    """The tagger that `module:function` names.

    Args:
        name: str.

    Raises:
        ValueError: if Python finds none there, or what it finds takes no call.
    """
    try:
        tagger = pkgutil.resolve_name(name)
        if not callable(tagger):
            raise ValueError(f"it is {tagger!r:.60}")
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(
            "`tagger` must be a function that can be imported, as module:function "
            "(recbert --import tags.py distill --tagger tags:tag). Received: "
            f"tagger={name!r}: {error}."
        ) from error
    return tagger


class TaggedTexts:
    """The tags of the words of texts, and the unigram distribution of each tag.

    Each text is tagged once, however often it comes; in the distributions it counts as
    often as it comes.

    Args:
        texts: list of str.
        tagger: function of a list of words to as many tags, of any kind that can be a
            key of a dict; by default `NltkTagger()`.
        num_workers: int. Processes that tag. More than one need a tagger that can be
            pickled.

    Raises:
        ValueError: if the tagger gives another number of tags than words, naming the
            text; or it cannot be pickled.
        RuntimeError: if a worker process ends.
    """

    def __init__(self, texts, tagger=None, num_workers=1):
        tagger = NltkTagger() if tagger is None else tagger
        counts = Counter(texts)
        ids, words = {}, []  # of tags; of the words of each tag a Counter
        self._tags = {}
        tagged = _tag_all(list(counts), tagger, num_workers)
        options = {"unit": " texts", "leave": False, "disable": None}
        for text, tags in zip(tqdm(counts, "Tagging", **options), tagged, strict=True):
            found = words_of(text)
            _check_tags(text, found, tags)
            numbers = array("H")
            for word, tag in zip(found, tags, strict=True):
                number = ids.setdefault(tag, len(ids))
                if number == len(words):
                    words.append(Counter())
                words[number][word] += counts[text]
                numbers.append(number)
            self._tags[text] = numbers
        self._words = [list(counter) for counter in words]
        self._totals = [np.cumsum([*counter.values()]).tolist() for counter in words]

    def replacement(self, text, place, uniform):
        """A word drawn from the words that are tagged as one of a text.

        Args:
            text: str, one of the texts.
            place: int. Index of the word.
            uniform: float in [0, 1), which decides.

        Returns:
            str.
        """
        tag = self._tags[text][place]
        totals = self._totals[tag]
        return self._words[tag][bisect.bisect(totals, uniform * totals[-1])]


def _check_tags(text, words, tags):
    is_list = hasattr(tags, "__len__") and not isinstance(tags, str)
    if not is_list or len(tags) != len(words):
        raise ValueError(
            f"`tagger` must give a list of {len(words)} tags, one for each word of "
            f"{text!r}: {words}. Received: {tags!r}."
        )


def _tag_all(texts, tagger, num_workers):
    """Yields the tags of the words of each text, in their order."""
    if num_workers == 1:
        for text in texts:
            yield tagger(words_of(text))
        return
    try:
        pickle.dumps(tagger)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ValueError(
            "`tagger` must be one that can be sent to other processes, such as a "
            f"function of a module. Received: {tagger!r}, num_workers={num_workers}. "
            "Use num_workers=1."
        ) from error
    pool = concurrent.futures.ProcessPoolExecutor(
        num_workers,
        # Not forked: TensorFlow's threads may hold locks.
        multiprocessing.get_context("spawn"),
        _keep_tagger,
        (tagger,),
    )
    try:
        with pool:
            yield from pool.map(_tag, texts, chunksize=_CHUNK)
    except concurrent.futures.process.BrokenProcessPool as error:
        raise RuntimeError(
            "A process that tags words ended. In a script, num_workers needs `if "
            '__name__ == "__main__":` around what starts the work; num_workers=1 does '
            "without."
        ) from error


_worker = {}  # the tagger of a worker process


def _keep_tagger(tagger):
    _worker["tagger"] = tagger


def _tag(text):
    return _worker["tagger"](words_of(text))
