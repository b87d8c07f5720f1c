"""SentEval's ten probing tasks (Conneau et al. 2018), which `recbert probe` reads.

Labels are those of the training split, as SentEval takes them, so that files of other
languages and makers, such as X-Probe's, are read too.
"""

from keras_recbert.data.senteval import PARTITIONS, read_senteval
from keras_recbert.data.task_spec import TaskSpec, register_task

# In the order of Aksoy et al. 2020, table 4: surface, syntax, meaning.
PROBING_TASKS = (
    "sentence_length",
    "word_content",
    "tree_depth",
    "bigram_shift",
    "top_constituents",
    "past_present",
    "subj_number",
    "obj_number",
    "odd_man_out",
    "coordination_inversion",
)

for _name in PROBING_TASKS:
    register_task(
        TaskSpec(
            name=_name,
            fields=("text",),
            metrics=("accuracy",),
            labels_of_train=True,
            folder="probing",
            files=dict.fromkeys(PARTITIONS, f"{_name}.txt"),
            read=read_senteval,
            source="SentEval probing (Conneau et al. 2018)",
        )
    )
