"""Draw the pictures of the methods: ``python docs/pictures/draw.py`` writes one SVG per method to this folder.

All show one graph of eight vertices. A row is a vertex, a cell one of its in-edges, and the colour of a cell shows which
thread, warp or block sums it. Each function below draws one method and returns the height of its picture.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path

IN_DEGREES = [3, 8, 1, 5, 2, 0, 4, 1]
FALLING = sorted(range(8), key=lambda vertex: -IN_DEGREES[vertex])

WORKERS = ["#4c78a8", "#f2a03d", "#59a14f", "#b07aa1", "#e15759", "#76b7b2", "#9c755f", "#bab0ac"]
HOST, IDLE, MEMORY, INK, PALE = "#e15759", "#dfe3e8", "#a9c4e0", "#24292f", "#57606a"

CELL, ROW, WIDTH = 22, 20, 720
LEFT, TOP = 90, 56


class Picture:
    """Lines of SVG on a light background, legible on light and dark pages."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.lines: list[str] = []

    def text(
        self, x: float, y: float, words: str, *, anchor: str = "start", colour: str = PALE, size: int = 12
    ) -> None:
        self.lines.append(
            f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="{colour}" font-size="{size}">{escape(words)}</text>'
        )

    def box(self, x: float, y: float, width: float, height: float, colour: str, words: str = "") -> None:
        self.lines.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="2" fill="{colour}" stroke="#ffffff"/>'
        )
        if words:
            dark = colour in (IDLE, MEMORY, WORKERS[1], WORKERS[5], WORKERS[7])
            self.text(
                x + width / 2, y + height / 2 + 4, words, anchor="middle", colour=INK if dark else "#ffffff", size=11
            )

    def frame(self, x: float, y: float, width: float, height: float) -> None:
        self.lines.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="4" fill="none" stroke="{PALE}" '
            'stroke-dasharray="4 3"/>'
        )

    def line(self, x1: float, y1: float, x2: float, y2: float, *, arrow: bool = True) -> None:
        head = ' marker-end="url(#head)"' if arrow else ""
        self.lines.append(
            f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{PALE}" stroke-width="1.4"{head}/>'
        )

    def cells(self, x: float, y: float, colours: list[str], words: list[str] | None = None) -> None:
        """Draw adjacent cells."""
        for k, colour in enumerate(colours):
            self.box(x + k * CELL, y, CELL, ROW - 2, colour, words[k] if words else "")

    def rows(self, vertices: Sequence[int], who: Callable[[int, int], str], *, x: float = LEFT, y: float = TOP) -> None:
        """Draw the in-edges of vertices, edge k of row r in colour `who(r, k)`."""
        for r, vertex in enumerate(vertices):
            self.text(x - 8, y + r * ROW + 13, f"vertex {vertex}", anchor="end", size=11)
            self.cells(x, y + r * ROW, [who(r, k) for k in range(IN_DEGREES[vertex])])

    def legend(self, x: float, y: float, entries: list[tuple[str, str]]) -> None:
        for k, (colour, words) in enumerate(entries):
            self.box(x, y + k * 20, 14, 14, colour)
            self.text(x + 20, y + k * 20 + 11, words)

    def svg(self, height: int) -> str:
        return "\n".join(
            [
                (
                    f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
                    'role="img" font-family="Helvetica, Arial, sans-serif">'
                ),
                f"<title>{escape(self.title)}</title>",
                (
                    '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
                    f'<path d="M0 0L8 4L0 8z" fill="{PALE}"/></marker></defs>'
                ),
                f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="8" fill="#f6f8fa" stroke="#d0d7de"/>',
                f'<text x="16" y="26" fill="{INK}" font-size="14" font-weight="bold">{escape(self.title)}</text>',
                *self.lines,
                "</svg>\n",
            ]
        )


def draw_numpy(picture: Picture) -> int:
    bounds = [sum(IN_DEGREES[:r]) for r in range(len(IN_DEGREES) + 1)]
    row_of = [r for r, degree in enumerate(IN_DEGREES) for _ in range(degree)]
    for y, words in ((60, "contributions"), (120, "gathered"), (180, "row sums")):
        picture.text(16, y + 13, words)
    picture.cells(130, 60, [MEMORY] * 8)
    picture.line(220, 80, 260, 116)
    picture.text(270, 103, "one gather for all edges: contributions[sources]")
    picture.lines.append('<g transform="translate(130 0) scale(0.86 1)">')
    picture.cells(0, 120, [WORKERS[r] for r in row_of])
    picture.lines.append("</g>")
    picture.line(220, 140, 220, 176)
    picture.text(270, 163, "one sum per target, in groups of groups")
    picture.cells(130, 180, [WORKERS[r] if bounds[r] < bounds[r + 1] else IDLE for r in range(8)])
    picture.text(130, 222, "Each step is one call of NumPy on a whole vector; a colour is a row.")
    return 238


def draw_native(picture: Picture) -> int:
    threads = [0, 1, 1, 2, 2, 2, 0, 0]
    picture.rows(range(8), lambda r, k: WORKERS[threads[r]])
    for y in (TOP + ROW, TOP + 3 * ROW, TOP + 6 * ROW):
        picture.line(LEFT - 60, y - 1, LEFT + 8 * CELL, y - 1, arrow=False)
    picture.legend(
        330,
        TOP,
        [
            (WORKERS[0], "thread 0: its share, then the rest of another"),
            (WORKERS[1], "thread 1"),
            (WORKERS[2], "thread 2"),
        ],
    )
    picture.text(330, TOP + 84, "Shares have as many blocks each. A thread that is done takes")
    picture.text(330, TOP + 100, "blocks of others. Each block has its own sums, so the bits")
    picture.text(330, TOP + 116, "are the same for any number of threads.")
    return TOP + 8 * ROW + 20


def draw_persistent(picture: Picture) -> int:
    # The edges of each row, followed by an end marker, form a sequence that is cut into equal pieces.
    items = [kind for degree in IN_DEGREES for kind in [*("edge",) * degree, "end"]]
    size = 8
    for k, kind in enumerate(items):
        colour = WORKERS[k // size]
        x, y = 40 + (k % 16) * 35, 66 + k // 16 * 50
        picture.box(x, y, 33, 20, colour if kind == "edge" else INK, kind)
    for p in range(4):
        picture.text(40 + p % 2 * 280, 60 + p // 2 * 50, f"block {p}: {size} items", size=11)
    picture.text(40, 172, "The edges of each row, then its end: every block has equally many items.")
    picture.text(40, 190, "A row that crosses a cut has partial sums, added up by the block where it ends.")
    picture.frame(32, 204, 576, 30)
    picture.text(
        44,
        224,
        "iteration 1  |  grid barrier  |  iteration 2  |  barrier  |  iteration 3  |  ...     in one launch",
        colour=INK,
    )
    return 250


def draw_blocked(picture: Picture) -> int:
    for t in range(3):
        picture.text(70, 76 + t * 50, f"tile {t}", anchor="end")
        picture.cells(80, 62 + t * 50, [WORKERS[t]] * 4)
        for p in range(3):
            picture.line(170, 72 + t * 50, 256, 72 + p * 50)
            picture.box(262 + t * 30, 62 + p * 50, 28, 20, WORKERS[t], f"{t}>{p}")
        picture.line(356, 72 + t * 50, 410, 72 + t * 50)
        picture.cells(416, 62 + t * 50, [INK] * 4)
        picture.text(514, 76 + t * 50, f"piece {t} of rows")
    picture.text(124, 54, "contributions", anchor="middle", size=11)
    picture.text(306, 54, "runs, by piece", anchor="middle", size=11)
    picture.text(460, 54, "row sums", anchor="middle", size=11)
    picture.text(
        30,
        216,
        "First a block loads a tile into shared memory and writes it, in whole sectors, to the pieces that read it.",
    )
    picture.text(
        30, 234, "Then a block loads a piece's values into shared memory and sums its rows. No gather from memory."
    )
    return 252


def draw_node(picture: Picture) -> int:
    picture.rows(range(8), lambda r, k: WORKERS[r])
    picture.text(330, TOP + 14, "A colour is a thread, one per vertex.")
    picture.text(330, TOP + 34, "Eight steps here: the warp waits for vertex 1.")
    for k in range(8):
        picture.text(LEFT + k * CELL + 11, TOP - 6, str(k + 1), anchor="middle", size=10)
    picture.text(LEFT + 8 * CELL + 8, TOP - 6, "step", size=10)
    return TOP + 8 * ROW + 16


def draw_edge(picture: Picture) -> int:
    targets = [3, 1, 6, 1, 0, 4, 1, 3, 1, 6]
    for k, target in enumerate(targets):
        x = 60 + k * 54
        picture.box(x, 66, 44, 20, WORKERS[k % 8], f"u > {target}")
        picture.line(x + 22, 88, 114 + target * 54, 142)
    for r in range(8):
        picture.box(92 + r * 54, 146, 44, 20, INK, f"sum {r}")
    picture.text(60, 58, "edges in the order of the frame, one thread each")
    picture.text(60, 192, "Atomic additions in order of arrival: the last bits vary from run to run.")
    return 208


def draw_warp(picture: Picture) -> int:
    picture.rows(range(8), lambda r, k: WORKERS[k % 4])
    picture.legend(330, TOP, [(WORKERS[k], f"lane {k}") for k in range(4)])
    picture.text(330, TOP + 98, "Four lanes per vertex (lanes=4) read its indices")
    picture.text(330, TOP + 114, "coalesced and add up their sums by shuffles. Vertex 1")
    picture.text(330, TOP + 130, "takes two steps; on short rows lanes are idle.")
    return TOP + 8 * ROW + 16


def draw_block(picture: Picture) -> int:
    for r, degree in enumerate(IN_DEGREES[:4]):
        y = TOP + r * 34
        picture.text(LEFT - 8, y + 13, f"vertex {r}", anchor="end", size=11)
        picture.cells(LEFT, y, [WORKERS[k % 8] if k < degree else IDLE for k in range(16)])
        picture.line(LEFT + 16 * CELL + 4, y + 9, LEFT + 16 * CELL + 34, y + 9)
        picture.box(LEFT + 16 * CELL + 40, y, 50, 18, INK, f"sum {r}")
    picture.text(LEFT, TOP + 148, "All threads of a block sum one row, through shared memory: for rows of thousands of")
    picture.text(LEFT, TOP + 164, "in-edges. On short rows most threads are idle (grey).")
    return TOP + 180


def draw_binned(picture: Picture) -> int:
    bins = [
        ("tiny: at most 6", "one thread per row", [1, 1, 2, 3, 4]),
        ("small: at most 96", "16 lanes per row", [9, 11]),
        ("normal: more", "128 threads per row", [20]),
    ]
    y = TOP
    for name, who, degrees in bins:
        picture.text(16, y + 13, name)
        picture.text(16, y + 29, who, size=11)
        for r, degree in enumerate(degrees):
            one = name.startswith("tiny")
            picture.cells(140, y + r * ROW, [WORKERS[r if one else k % 8] for k in range(degree)])
            if name.startswith("normal"):
                picture.text(140 + degree * CELL + 6, y + 13, "... 130")
        y += max(len(degrees) * ROW, 34) + 12
    picture.text(
        16,
        y + 10,
        "Rows are assigned to three bins by in-degree once; edges stay in place. One kernel per bin.",
    )
    return y + 26


def draw_segmented(picture: Picture) -> int:
    spans = [(0, 1, "block"), (1, 3, "warp/8"), (3, 8, "node")]
    segment = [next(k for k, (first, last, _) in enumerate(spans) if first <= r < last) for r in range(8)]
    picture.rows(FALLING, lambda r, k: WORKERS[segment[r]])
    for k, (first, last, kernel) in enumerate(spans):
        y = TOP + first * ROW
        picture.line(LEFT - 60, y - 1, LEFT + 8 * CELL, y - 1, arrow=False)
        edges = sum(IN_DEGREES[vertex] for vertex in FALLING[first:last])
        picture.text(300, y + 14, f"segment {k}: {edges} edges, {kernel} was fastest")
    picture.text(300, TOP + 6 * ROW, "In descending order of in-degree, cut into segments of")
    picture.text(300, TOP + 7 * ROW - 4, "about equally many edges; every kernel is timed on each.")
    return TOP + 8 * ROW + 16


def draw_cpu_split(picture: Picture) -> int:
    picture.rows(FALLING, lambda r, k: WORKERS[0] if k < 3 else HOST)
    x = LEFT + 3 * CELL
    picture.line(x, TOP - 10, x, TOP + 8 * ROW, arrow=False)
    picture.text(x + 4, TOP - 8, "N = 3", size=11)
    picture.legend(330, TOP, [(WORKERS[0], "heads: GPU, one thread per row"), (HOST, "tails: CPU threads")])
    y = TOP + 8 * ROW + 14
    for row, (name, spans) in enumerate(
        [
            ("GPU", [(0, 60, "gather", WORKERS[0]), (60, 330, "heads", WORKERS[0]), (400, 70, "add", WORKERS[0])]),
            ("copy", [(60, 50, "down", WORKERS[3]), (340, 50, "up", WORKERS[3])]),
            ("CPU", [(110, 230, "tails", HOST)]),
        ]
    ):
        picture.text(LEFT - 8, y + row * 22 + 13, name, anchor="end", size=11)
        for start, length, words, colour in spans:
            picture.box(LEFT + start, y + row * 22, length, 18, colour, words)
    picture.line(LEFT, y + 74, LEFT + 480, y + 74)
    picture.text(LEFT + 486, y + 78, "time", size=11)
    return y + 92


def draw_expanded(picture: Picture) -> int:
    row_of = [r for r, degree in enumerate(IN_DEGREES) for _ in range(degree)]
    picture.text(16, 75, "contributions")
    picture.cells(110, 62, [MEMORY] * 8, [str(k) for k in range(8)])
    picture.line(200, 84, 240, 110)
    picture.text(250, 102, "copied into edge order, one thread per edge")
    picture.text(16, 131, "by edge")
    for k, r in enumerate(row_of):
        picture.box(110 + k * 20, 118, 20, 18, MEMORY, str(r))
    for p in range(4):
        picture.frame(110 + p * 120 + 1, 114, 118, 26)
        picture.text(110 + p * 120 + 60, 156, f"block {p}", anchor="middle", size=11)
    picture.text(
        16,
        184,
        "Numbers are rows. Every block loads an equal piece into shared memory and sums the runs in it; a row that",
    )
    picture.text(
        16,
        200,
        "crosses a cut is added up from its partial sums. The Cell's local stores were filled in the same way.",
    )
    return 216


def draw_streamed(picture: Picture) -> int:
    picture.text(16, 75, "host memory or disk")
    for k in range(6):
        picture.box(150 + k * 76, 62, 72, 18, WORKERS[k % 2], f"chunk {k}")
    for row, (name, start) in enumerate(
        [("copy to buffer A", 0), ("sum from A", 1), ("copy to buffer B", 1), ("sum from B", 2)]
    ):
        y = 104 + row * 22
        picture.text(142, y + 13, name, anchor="end", size=11)
        for chunk in range(row // 2, 6, 2):
            at = chunk + start - row // 2
            if at < 6:
                picture.box(150 + at * 76, y, 72, 18, WORKERS[row // 2], str(chunk))
    picture.line(150, 200, 606, 200)
    picture.text(612, 204, "time", anchor="start", size=10)
    picture.text(
        16,
        226,
        "While one chunk is summed the next is copied. The GPU holds only the vectors and two chunks.",
    )
    return 242


def draw_packed(picture: Picture) -> int:
    picture.text(16, 75, "in GPU memory")
    widths = (3, 2, 5, 3, 1, 4, 2, 4)
    for k, width in enumerate(widths):
        x = 120 + 17 * sum(widths[:k])
        picture.box(x, 62, 17 * width - 2, 18, WORKERS[k], f"{width} bits")
        picture.line(x + 8.5 * width - 1, 84, 142 + 52 * k, 106)
        picture.box(120 + 52 * k, 110, 44, 18, WORKERS[k], f"{k}")
    picture.text(16, 124, "threads decode")
    for k in range(len(widths)):
        picture.line(142 + 52 * k, 132, 142 + 52 * k, 150)
    picture.box(120, 154, 148, 18, MEMORY, "sum of row 0")
    picture.box(276, 154, 96, 18, MEMORY, "sum of row 1")
    picture.box(380, 154, 148, 18, MEMORY, "sum of row 2")
    picture.text(16, 168, "scan by rows")
    picture.text(
        16, 200, "Distances between sources have as many bits as the largest of their group. Nothing is copied after"
    )
    picture.text(16, 216, "the first iteration, and the edges are never unpacked in memory.")
    return 232


def draw_dense(picture: Picture) -> int:
    edges = {(r, (r + 3 * k + 1) % 8) for r, degree in enumerate(IN_DEGREES) for k in range(degree)}
    for r in range(8):
        picture.text(LEFT - 8, TOP + r * ROW + 13, f"vertex {r}", anchor="end", size=11)
        picture.cells(LEFT, TOP + r * ROW, [WORKERS[r] if (r, c) in edges else IDLE for c in range(8)])
    picture.line(LEFT + 8 * CELL + 10, TOP + 80, LEFT + 8 * CELL + 50, TOP + 80)
    picture.text(330, TOP + 40, "One block per row of the n x n matrix. Every pair")
    picture.text(330, TOP + 56, "is read, edge or not (grey): no index and no")
    picture.text(330, TOP + 72, "gather, but n * n entries. Useful where a large")
    picture.text(330, TOP + 88, "part of all pairs are edges.")
    return TOP + 8 * ROW + 16


PICTURES: dict[str, tuple[str, Callable[[Picture], int]]] = {
    "native": ("native: shares of rows on all cores", draw_native),
    "numpy": ("numpy: whole-array operations", draw_numpy),
    "persistent": ("persistent: equal pieces of rows and edges, one launch", draw_persistent),
    "propagation-blocking": (
        "propagation-blocking: contributions reach their rows through shared memory",
        draw_blocked,
    ),
    "node": ("node: one thread per vertex", draw_node),
    "edge": ("edge: one thread per edge", draw_edge),
    "warp": ("warp: several lanes per vertex", draw_warp),
    "block": ("block: one block per vertex", draw_block),
    "binned": ("binned: three bins of rows by in-degree", draw_binned),
    "segmented": ("segmented: each segment with the kernel measured fastest", draw_segmented),
    "cpu-split": ("cpu-split: heads on the GPU, tails on the CPU", draw_cpu_split),
    "expanded": ("expanded: contributions in edge order", draw_expanded),
    "streamed": ("streamed: edges pass through two buffers", draw_streamed),
    "packed": ("packed: edges stay compressed in GPU memory", draw_packed),
    "dense": ("dense: matrix of all pairs", draw_dense),
}


def drawn(method: str) -> str:
    """Return the picture of a method as SVG."""
    title, draw = PICTURES[method]
    picture = Picture(title)
    return picture.svg(draw(picture))


if __name__ == "__main__":
    for name in PICTURES:
        (Path(__file__).parent / f"{name}.svg").write_text(drawn(name))
