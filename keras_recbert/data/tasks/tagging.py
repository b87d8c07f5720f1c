"""CoNLL-2003 and WNUT-2017, named entities; English EWT of Universal Dependencies."""

import functools

from keras_recbert.data.conll import read_conll, read_conllu, write_conll
from keras_recbert.data.task_spec import (
    TaskSpec,
    TfdsSource,
    dev_files,
    register_task,
)
from keras_recbert.data.tfds_files import conll2003_file, conllu_file

_ENTITIES = {
    "conll2003": ("LOC", "MISC", "ORG", "PER"),
    "wnut17": (
        *("corporation", "creative-work", "group", "location", "person", "product"),
    ),
}
_BIO = {
    task: ("O", *(f"{prefix}-{name}" for name in names for prefix in "BI"))
    for task, names in _ENTITIES.items()
}
_ENTITY_SCORES = ("entity_f1", "entity_precision", "entity_recall", "accuracy")
# https://universaldependencies.org/u/pos
_UPOS = (
    *("ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM"),
    *("PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM", "VERB", "X"),
)

_TFDS_SPLITS = {"validation": "dev"}

register_task(
    TaskSpec(
        name="conll2003",
        fields=("words",),
        targets=("tags",),
        head="token_classifier",
        head_arguments={"label_names": _BIO["conll2003"]},
        metrics=_ENTITY_SCORES,
        folder="conll2003",
        files={"train": "eng.train", "validation": "eng.testa", "test": "eng.testb"},
        read=functools.partial(read_conll, label_names=_BIO["conll2003"]),
        write=write_conll,
        source="CoNLL-2003, English (Tjong Kim Sang and De Meulder 2003), entities",
        tfds=TfdsSource("conll2003", as_file=conll2003_file, splits=_TFDS_SPLITS),
    )
)
register_task(
    TaskSpec(
        name="wnut17",
        fields=("words",),
        targets=("tags",),
        head="token_classifier",
        head_arguments={"label_names": _BIO["wnut17"]},
        metrics=_ENTITY_SCORES,
        folder="wnut17",
        files=dev_files("{}.conll"),
        read=functools.partial(read_conll, label_names=_BIO["wnut17"]),
        write=write_conll,
        source="WNUT-2017 (Derczynski et al. 2017), emerging entities",
        licence="CC BY 4.0",
    )
)
register_task(
    TaskSpec(
        name="ud_ewt_pos",
        fields=("words",),
        targets=("tags",),
        head="token_classifier",
        head_arguments={"label_names": _UPOS},
        metrics=("accuracy",),
        folder="ud_ewt",
        files=dev_files("en_ewt-ud-{}.conllu"),
        read=functools.partial(read_conllu, label_names=_UPOS),
        write=write_conll,
        source="Universal Dependencies English EWT (Silveira et al. 2014), UPOS",
        licence="CC BY-SA 4.0",
        tfds=TfdsSource(
            "universal_dependencies/en_ewt", as_file=conllu_file, splits=_TFDS_SPLITS
        ),
    )
)
