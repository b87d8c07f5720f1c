"""The blocks of encoders as a picture: SVG, light and dark."""

import html

from keras_recbert.models.block_graph import INPUT

WIDTH, HEIGHT = 168, 46  # of a box
ROW, COLUMN = 80, 190  # from a box to the next
MARGIN, LANE = 52, 14  # beside the boxes, for lines around them
TITLE = 44
STYLE = """
text{font:14px Helvetica,Arial,sans-serif;text-anchor:middle;fill:#1c2430}
.title{font-weight:bold;font-size:16px}.detail{font-size:12px;fill:#5a6475}
rect{fill:#eef1f6;stroke:#8794ab}.recurrent{fill:#ffe3c2;stroke:#d9822b}
.norm,.sum{fill:#fff}path{fill:none;stroke:#5a6475;stroke-width:1.5}
marker path{fill:#5a6475;stroke:none}
@media (prefers-color-scheme:dark){text{fill:#e6e9ef}.detail{fill:#a3adbd}
rect{fill:#2a3140;stroke:#65718a}.recurrent{fill:#5c3d1c;stroke:#d9822b}
.norm,.sum{fill:#1c2230}path{stroke:#a3adbd}marker path{fill:#a3adbd}}
"""


class Picture(str):
    """A str of SVG, which a notebook shows as a picture."""

    def _repr_svg_(self):
        return str(self)


def draw_blocks(graphs):
    """Draws blocks side by side.

    Boxes are the layers that run, arrows what they read. A layer with a recurrence is
    in colour.

    Args:
        graphs: dict of title to what `block_graph` gives.

    Returns:
        `Picture`, the text of an SVG file.
    """
    parts, left, height = [], 0, 0
    placed = [(title, (graph, _place(graph))) for title, graph in graphs.items()]
    rows = max(max(row for _, row in places.values()) for _, (_, places) in placed) + 1
    height = TITLE + rows * ROW
    for title, (graph, places) in placed:
        columns = max(column for column, _ in places.values()) + 1
        width = 2 * MARGIN + WIDTH + (columns - 1) * COLUMN
        parts.append(f'<g transform="translate({left} 0)">')
        middle = MARGIN + WIDTH // 2
        parts.append(f'<text class="title" x="{middle}" y="24">{_text(title)}</text>')
        parts += _Block(graph, places, height).lines()
        parts.append("</g>")
        left += width
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left} {height}" '
        f'width="{left}" height="{height}">\n<style>{STYLE}</style>\n<defs><marker '
        'id="end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0 0 8 4 0 8z"/></marker></defs>'
    )
    return Picture("\n".join([head, *parts, "</svg>\n"]))


def _place(graph):
    """Columns and rows of parts: the longest way through the block is column 0.

    Returns:
        dict of name to `(column, row)`.
    """
    rows = {}
    for name, part in graph.items():
        rows[name] = 1 + max((rows[source] for source in part.sources), default=-1)
    name = list(graph)[-1]
    main = {name}
    while name != INPUT:
        name = max(graph[name].sources, key=rows.get)
        main.add(name)
    columns = dict.fromkeys(main, 0)
    taken = set()
    for name, part in graph.items():
        if name in main:
            continue
        beside = [columns[s] for s in part.sources if columns.get(s)]
        column = beside[0] if beside else 1
        while (column, rows[name]) in taken:
            column += 1
        columns[name] = column
        taken.add((column, rows[name]))
    return {name: (columns[name], rows[name]) for name in graph}


class _Block:
    """The boxes and arrows of one block."""

    def __init__(self, graph, places, height):
        self._graph = graph
        self._places = places
        self._height = height
        self._lanes = 0

    def lines(self):
        """Elements of SVG, arrows first."""
        for name, part in self._graph.items():
            for source in sorted(part.sources, key=list(self._graph).index):
                yield self._arrow(source, name)
        for name, part in self._graph.items():
            yield from self._box(name, part)
        x, y = self._center(list(self._graph)[-1])
        yield f'<path marker-end="url(#end)" d="M{x} {y - HEIGHT // 2}v-18"/>'

    def _center(self, name):
        column, row = self._places[name]
        return (
            MARGIN + WIDTH // 2 + column * COLUMN,
            self._height - ROW // 2 - row * ROW + (12 if name == INPUT else 0),
        )

    def _half(self, name):
        """Half the height of what stands for a part."""
        return {"input": 12, "sum": 13}.get(self._graph[name].kind, HEIGHT // 2)

    def _box(self, name, part):
        x, y = self._center(name)
        if part.kind == "input":
            yield f'<text x="{x}" y="{y + 5}">{_text(part.label)}</text>'
            return
        half = self._half(name)
        width = 2 * half if part.kind == "sum" else WIDTH
        radius = half if part.kind == "sum" else 5
        yield (
            f'<rect class="{part.kind}" x="{x - width // 2}" y="{y - half}" '
            f'width="{width}" height="{2 * half}" rx="{radius}"/>'
        )
        lift = 4 if part.detail else -5
        yield f'<text x="{x}" y="{y - lift}">{_text(part.label)}</text>'
        if part.detail:
            words = _text(part.detail)
            yield f'<text class="detail" x="{x}" y="{y + 14}">{words}</text>'

    def _arrow(self, source, name):
        (from_x, from_y), (x, y) = self._center(source), self._center(name)
        (from_column, from_row), (column, row) = (
            self._places[source],
            self._places[name],
        )
        start = f"M{from_x} {from_y - self._half(source)}"
        side = self._half(name) if self._graph[name].kind == "sum" else WIDTH // 2
        above = from_y - self._half(source) - 12
        if column > from_column:  # out of the main way
            path = f"{start}V{above}H{x}V{y + self._half(name)}"
        elif column < from_column:  # and back
            path = f"{start}V{y}H{x + side}"
        elif row == from_row + 1:
            path = f"{start}V{y + self._half(name)}"
        else:  # around what is between
            lane = MARGIN - LANE - LANE * (self._lanes % 2)
            self._lanes += 1
            path = f"{start}V{above}H{lane}V{y}H{x - side}"
        return f'<path marker-end="url(#end)" d="{path}"/>'


def _text(words):
    return html.escape(words)
