"""Writer of WebGraph's BV format, of which it draws what an encoder may choose: references, blocks and intervals."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

DEFAULT = {
    "OUTDEGREES": "GAMMA", "REFERENCES": "UNARY", "BLOCK_COUNT": "GAMMA", "BLOCKS": "GAMMA", "INTERVALS": "GAMMA",
    "RESIDUALS": "ZETA", "OFFSETS": "GAMMA",
}  # fmt: skip


def unary(x: int) -> str:
    return "0" * x + "1"


def minimal_binary(x: int, bound: int) -> str:
    bits = bound.bit_length() - 1
    few = (2 << bits) - bound
    if x < few:
        return f"{x:0{bits}b}" if bits else ""
    return f"{x + few:0{bits + 1}b}"


def gamma(x: int) -> str:
    binary = f"{x + 1:b}"
    return "0" * (len(binary) - 1) + binary


def delta(x: int) -> str:
    binary = f"{x + 1:b}"
    return gamma(len(binary) - 1) + binary[1:]


def zeta(x: int, k: int) -> str:
    h = ((x + 1).bit_length() - 1) // k
    return unary(h) + minimal_binary(x + 1 - (1 << h * k), (1 << (h + 1) * k) - (1 << h * k))


def nibbles(x: int) -> str:
    digits = f"{x:o}"
    return "".join(
        f"{int(last)}{int(digit):03b}" for digit, last in zip(digits, "0" * (len(digits) - 1) + "1", strict=True)
    )


def golomb(x: int, k: int) -> str:
    return unary(x // k) + minimal_binary(x % k, k)


def number(code: str, x: int, k: int) -> str:
    simple = {"UNARY": unary, "GAMMA": gamma, "DELTA": delta, "NIBBLE": nibbles}
    return simple[code](x) if code in simple else {"ZETA": zeta, "GOLOMB": golomb}[code](x, k)


def natural(x: int) -> int:
    return 2 * x if x >= 0 else -2 * x - 1


def random_graph(random: Any, n: int) -> list[list[int]]:
    """Return successors with runs, repetitions of earlier rows, and empty rows."""
    rows: list[list[int]] = []
    for v in range(n):
        found = set(random.choice(n, int(random.integers(0, min(n, 6) + 1)), replace=False).tolist())
        if rows and random.random() < 0.6:
            row = rows[-int(random.integers(1, min(v, 9) + 1))]
            found |= {x for x in row if random.random() < 0.8}
        if random.random() < 0.4:
            first = int(random.integers(n))
            found |= set(range(first, min(n, first + int(random.integers(1, 12)))))
        rows.append(sorted(found) if random.random() < 0.85 else [])
    return rows


class Writer:
    """The records of a graph; `codes` by part of a record."""

    def __init__(self, codes: dict[str, str] | None = None, k: int = 3, window: int = 7, shortest: int = 4) -> None:
        self.codes, self.k, self.window, self.shortest = DEFAULT | (codes or {}), k, window, shortest

    def put(self, part: str, x: int) -> str:
        return number(self.codes[part], x, self.k)

    def record(self, random: Any, v: int, rows: Sequence[Sequence[int]]) -> str:
        """Return the record of a vertex; what is copied, and which runs are intervals, is drawn."""
        row = list(rows[v])
        text = self.put("OUTDEGREES", len(row))
        if not row:
            return text
        copied: set[int] = set()
        if self.window:
            back = int(random.integers(0, min(v, self.window) + 1))
            text += self.put("REFERENCES", back)
            if back:
                mask = [x in row and random.random() < 0.95 for x in rows[v - back]]
                copied = {x for x, kept in zip(rows[v - back], mask, strict=True) if kept}
                runs = [len(list(run)) for _, run in groupby(mask)]
                runs = runs if mask[:1] == [True] else [0, *runs]
                text += self.put("BLOCK_COUNT", len(runs) - 1)
                text += "".join(self.put("BLOCKS", run - (at > 0)) for at, run in enumerate(runs[:-1]))
        rest = [x for x in row if x not in copied]
        if rest and self.shortest:
            groups = [[x for _, x in run] for _, run in groupby(enumerate(rest), lambda pair: pair[1] - pair[0])]
            intervals = [run for run in groups if len(run) >= self.shortest and random.random() < 0.9]
            text += self.put("INTERVALS", len(intervals))
            end = None
            for run in intervals:
                text += self.put("INTERVALS", natural(run[0] - v) if end is None else run[0] - end - 1)
                text += self.put("INTERVALS", len(run) - self.shortest)
                end = run[-1] + 1
            rest = sorted(set(rest) - {x for run in intervals for x in run})
        last = None
        for x in rest:
            text += self.put("RESIDUALS", natural(x - v) if last is None else x - last - 1)
            last = x
        return text

    def write(self, base: Path, rows: Sequence[Sequence[int]], random: Any, *, offsets: bool = True) -> str:
        """Write the three files; return the path of the graph."""
        records = [self.record(random, v, rows) for v in range(len(rows))]
        Path(f"{base}.graph").write_bytes(packed("".join(records)))
        if offsets:
            gaps = [0, *map(len, records)]
            Path(f"{base}.offsets").write_bytes(packed("".join(self.put("OFFSETS", gap) for gap in gaps)))
        flags = " | ".join(f"{part}_{code}" for part, code in self.codes.items() if code != DEFAULT[part])
        items = {
            "graphclass": "it.unimi.dsi.webgraph.BVGraph", "version": 0, "nodes": len(rows), "zetak": self.k,
            "arcs": sum(map(len, rows)), "windowsize": self.window, "maxrefcount": -1, "compressionflags": flags,
            "minintervallength": self.shortest,
        }  # fmt: skip
        text = "#BVGraph properties\n" + "".join(f"{key}={value}\n" for key, value in items.items())
        Path(f"{base}.properties").write_text(text)
        return f"{base}.graph"


def packed(bits: str) -> bytes:
    """Return bits as bytes, the first one uppermost, with zeros at the end."""
    return np.packbits(np.frombuffer(bits.encode(), np.uint8) - ord("0")).tobytes()
