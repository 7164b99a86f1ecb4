"""Labels of the seeds in the frame of many rankings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from prplugin.types.arrays import namespace
from prplugin.types.edges import Integers


@dataclass(frozen=True, slots=True)
class Labels:
    """Labels of the k seeds in the result: the vertices at k positions, or a column or an array of k labels."""

    rows: Integers | None = None
    column: Any = None

    def by_row(self, ranks: Any, rows: Any, take: Callable[[Any, Any], Any]) -> tuple[Any, Any, Labels]:
        """Return the ranks of all seeds as a vector, the position of each, and a label for each.

        `rows`: Positions, of the shape of `ranks`; entries of -1 are left out. None: all vertices.
        `take`: Returns the entries of a column at positions.
        """
        xp, (count, width) = namespace(ranks), ranks.shape
        each = xp.repeat(xp.arange(count), width)
        ranks, rows = ranks.reshape(-1), xp.tile(xp.arange(width), count) if rows is None else rows.reshape(-1)
        if (rows < 0).any():
            kept = xp.flatnonzero(rows >= 0)
            ranks, rows, each = ranks[kept], rows[kept], each[kept]
        if self.rows is None:
            return ranks, rows, Labels(column=take(self.column, each))
        return ranks, rows, Labels(rows=self.rows[each])
