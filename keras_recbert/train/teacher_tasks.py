"""Which tasks a trained model fits: by its head, fields and labels."""


def check_task(path, head, fields, task):
    """Raises `ValueError` if head or fields of a teacher are not those of a task.

    Args:
        path: path of the teacher.
        head: str. What its head does, such as `"classifier"`.
        fields: sequence of str, those of its examples.
        task: `keras_recbert.data.TaskSpec`.
    """
    if head != task.head:
        raise ValueError(
            f"The teacher at {path} is a {head}, and {task.name} needs a {task.head}."
        )
    if len(fields) != len(task.fields):
        raise ValueError(
            f"The teacher at {path} reads {len(fields)} text(s) an example, "
            f"{', '.join(fields)}, and {task.name} has {len(task.fields)}."
        )


def class_places(label_names, task):
    """The place among the labels of a model of each class of a task.

    A model may know the classes of a data set by their ids alone. The classes of a
    table are its own words, sorted: what a number stands for there, nobody knows.

    Args:
        label_names: sequence of str, those of the model.
        task: `keras_recbert.data.TaskSpec` of a classifier.

    Returns:
        list of int, or None if the labels differ.
    """
    own, wanted = list(label_names), list(task.label_names)
    numbered = [str(index) for index in range(len(own))]
    if task.folder and own == numbered and len(own) == len(wanted):
        return list(range(len(own)))
    if sorted(own) != sorted(wanted):
        return None
    return [own.index(name) for name in wanted]
