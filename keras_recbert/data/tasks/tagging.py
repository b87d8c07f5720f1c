"""WNUT-2017, named entities, and the English EWT of Universal Dependencies."""

import functools

from keras_recbert.data.conll import read_conll, read_conllu, write_conll
from keras_recbert.data.task_spec import TaskSpec, dev_files, register_task

_ENTITIES = ("corporation", "creative-work", "group", "location", "person", "product")
_BIO = ("O", *(f"{prefix}-{name}" for name in _ENTITIES for prefix in "BI"))
# https://universaldependencies.org/u/pos
_UPOS = (
    *("ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM"),
    *("PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM", "VERB", "X"),
)

register_task(
    TaskSpec(
        name="wnut17",
        fields=("words",),
        targets=("tags",),
        head="token_classifier",
        head_arguments={"label_names": _BIO},
        metrics=("entity_f1", "entity_precision", "entity_recall", "accuracy"),
        folder="wnut17",
        files=dev_files("{}.conll"),
        read=functools.partial(read_conll, label_names=_BIO),
        write=write_conll,
        source="WNUT-2017 (Derczynski et al. 2017), emerging entities",
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
    )
)
