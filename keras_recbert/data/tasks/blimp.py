"""BLiMP (Warstadt et al. 2020) as a task of acceptability, which comes before CoLA."""

from keras_recbert.data.blimp import read_blimp
from keras_recbert.data.task_spec import TaskSpec, register_task

register_task(
    TaskSpec(
        name="blimp",
        fields=("text",),
        metrics=("accuracy",),
        head_arguments={"label_names": ("unacceptable", "acceptable")},
        folder="probing",
        files=dict.fromkeys(("train", "validation"), "blimp.tar.gz"),
        read=read_blimp,
        group_by="text",
        source="BLiMP (Warstadt et al. 2020)",
        licence="CC BY 4.0",
    )
)
