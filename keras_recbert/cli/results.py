"""The command that writes the page of results: results."""

import pathlib
from typing import Annotated

from tyro.conf import Positional, arg

from keras_recbert.core.folders import check_file, new_file


def results(
    sources: Annotated[Positional[list[str]], arg(metavar="[FILE ...]")] = ["configs"],  # noqa: B006
    output: str | None = None,
):
    """Collects finished runs and probes beside the published scores, in Markdown.

    Nothing is run. What is stale (made by another version, task or recipe) or partial
    (seeds or stages are missing) is named, and so is a file that is left out.

    With an output file that ends with .json it joins runs instead: of several tables,
    or of single runs, to one file that `recbert table` and this command read.

    Args:
        sources: Files that `recbert table`, `finetune`, `distill` or `probe` wrote
            (results.json), or folders with files *results.json.
        output: File to write, such as docs/results.md or runs.json; by default the
            Markdown is printed.
    """
    from keras_recbert.core.json_files import write_json
    from keras_recbert.train.results_files import join_results
    from keras_recbert.train.results_page import make_results_page

    if output is not None and output.endswith(".json"):
        check_file(output)
        runs = join_results(sources)
        write_json(pathlib.Path(output), runs)
        print(f"Wrote {output}: {len(runs)} runs.")
        return
    if output is None:
        print(make_results_page(sources), end="")
        return
    check_file(output)
    text = make_results_page(sources, pathlib.Path(output).parent)
    with new_file(output) as written:
        written.write_text(text, encoding="utf-8")
    print(f"Wrote {output}.")
