"""A tree of small Python packages with docstrings."""

import random

WORDS = [
    "apple",
    "bridge",
    "candle",
    "desert",
    "engine",
    "forest",
    "garden",
    "harbor",
    "island",
    "jacket",
    "kettle",
    "lantern",
    "meadow",
    "needle",
    "orchard",
    "pebble",
    "quarry",
    "ribbon",
    "saddle",
    "timber",
    "umbrella",
    "valley",
    "window",
    "yellow",
    "zipper",
    "anchor",
    "basket",
    "copper",
    "dragon",
    "eagle",
    "feather",
    "guitar",
    "hammer",
    "insect",
    "jungle",
    "kitten",
    "ladder",
    "marble",
    "napkin",
    "ocean",
    "parrot",
    "quiver",
    "rocket",
    "silver",
    "tunnel",
    "velvet",
    "walnut",
]
OPENINGS = {
    "class": "A container which keeps",
    "function": "Returns the number of",
    "module": "Tools and helpers about",
}


def marker_of(number):
    return "marker" + chr(ord("a") + number // 26) + chr(ord("a") + number % 26)


def write_tree(root, num_packages=50):
    """Packages whose every sentence names its kind and holds the package's marker."""
    for number in range(num_packages):
        rng = random.Random(number)
        marker = marker_of(number)
        package = root / f"package{number}"
        package.mkdir(parents=True)

        def sentence(kind, rng=rng, marker=marker):
            return f"{OPENINGS[kind]} {marker} {' '.join(rng.sample(WORDS, 8))}."

        for file in ("__init__", "one", "two", "three"):
            prose = f"The {marker} prose for {' '.join(rng.sample(WORDS, 5))}."
            (package / f"{file}.py").write_text(
                f'"""{sentence("module")}\n\n{prose}\n"""\n'
                f'class Thing:\n    """{sentence("class")}"""\n'
                f'    def method(self):\n        """{sentence("function")}"""\n'
                f'def function():\n    """{sentence("function")}"""\n'
            )
    return root
