"""The pages of the docs, and the code and the shell commands in them."""

import pathlib
import re

ROOT = pathlib.Path(__file__).parents[1]
PAGES = {
    path.name: path.read_text(encoding="utf-8")
    for path in (
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *sorted(ROOT.glob("docs/*.md")),
    )
}
README = PAGES["README.md"]


def blocks(language, text=README):
    """The blocks of code of a language, in their order."""
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def shell_commands(text):
    """The commands of shell blocks in their order, each line cut at `&&`."""
    return [
        command.strip()
        for block in blocks("(?:bash|sh|shell|console)", text)
        for line in block.replace("\\\n", " ").splitlines()
        for command in line.partition("  #")[0].split(" && ")
        if command.strip()
    ]


def inline_commands(text):
    """Commands with arguments in the sentences and tables of a page."""
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    return re.findall(r"`((?:recbert|pytest|pip) [^`]* [^`]+)`", prose)
