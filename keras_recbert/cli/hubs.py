"""The command that puts presets on hubs: push."""

from tyro.conf import Positional


def push(
    source: Positional[str],
    target: Positional[str],
    private: bool = False,
    licence: str | None = None,
    data_licence: str | None = None,
    overwrite: bool = False,
):
    """Puts a preset and its model card on Hugging Face, on Kaggle or into a folder.

    Args:
        source: The folder of a finished run of `recbert finetune`, `distill` or
            `pretrain`, or a preset.
        target: hf://user/name, kaggle://owner/model/keras/variation, or a folder.
        private: On Hugging Face: nobody else sees the model.
        licence: Under what terms the weights may be used, such as apache-2.0; by
            default what the preset says.
        data_licence: The terms of the data that it learned from, for the model card; by
            default those that the publishers of its tasks state.
        overwrite: Replace a folder that was pushed before.
    """
    from keras_recbert.publish.push import push

    written = push(source, target, private, licence, data_licence, overwrite)
    print(f"Pushed {written}. Load it: keras_recbert.load({target!r})")
