"""Cases of the comparison with CPU libraries: graphs, id types and required errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from benchmarks.generate import grid, rmat, scattered, scattered_ids, uniform
from benchmarks.reference import reference

Ids: TypeAlias = Literal["dense", "sparse int64", "object strings", "str"]
"""Dense integers; integers scattered over 62 bits; the same as strings, in an object or a `str` column of pandas."""

ASKED = 1e-6, 1e-10
"""Required L1 errors."""

FRAME_TO_FRAME, ALONE = "frame to frame", "compute alone"


@dataclass(frozen=True, kw_only=True)
class Case:
    """Graph with the type of its ids.

    Attributes
    ----------
    graph : str
    dense : function
        Returns the frame of dense ids.
    ids : Ids
    alpha : float
    """

    graph: str
    dense: Callable[[], pd.DataFrame]
    ids: Ids = "dense"
    alpha: float = 0.85

    @property
    def name(self) -> str:
        """Name of the graph with its id type and alpha."""
        parts = [self.graph, f"{self.ids} ids", f"alpha {self.alpha}" if self.alpha != 0.85 else ""]
        return ", ".join(filter(None, parts))

    def frame(self, dense: pd.DataFrame) -> pd.DataFrame:
        """Return the frame with ids of the type of the case."""
        if self.ids == "dense":
            return dense
        if self.ids == "sparse int64":
            return scattered(dense)
        # As file readers return them: one object per distinct string of a column.
        n = int(dense.to_numpy().max()) + 1
        named = pd.DataFrame({name: self._spelt(n)[dense[name].to_numpy()] for name in dense}, dtype=object)
        return named if self.ids == "object strings" else named.astype("str")

    def exact(self, dense: pd.DataFrame) -> pd.Series:
        """Return the reference ranks, indexed by id."""
        ranks = reference(dense, multi=True, weight=None, alpha=self.alpha)
        if self.ids == "dense":
            ids: Any = np.arange(ranks.size)
        else:
            ids = scattered_ids(ranks.size) if self.ids == "sparse int64" else self._spelt(ranks.size)
        return pd.Series(ranks, pd.Index(ids))[ranks > 0]

    @staticmethod
    def _spelt(n: int) -> np.ndarray:
        return scattered_ids(n).astype(str).astype(object)


def cases(data: Path | None, quick: bool) -> Iterator[Case]:
    """Yield the cases; cases of real graphs raise FileNotFoundError without a data folder."""
    if quick:
        yield Case(graph="R-MAT 10", dense=lambda: rmat(10), ids="sparse int64")
        yield Case(graph="R-MAT 10", dense=lambda: rmat(10), ids="object strings")
        yield Case(graph="R-MAT 10", dense=lambda: rmat(10), ids="str")
        yield Case(graph="grid 30 x 30", dense=lambda: grid(30))
        return
    yield Case(graph="R-MAT 16", dense=lambda: rmat(16), ids="sparse int64")
    yield Case(graph="R-MAT 18", dense=lambda: rmat(18), ids="sparse int64")
    yield Case(graph="R-MAT 20", dense=lambda: rmat(20), ids="sparse int64")
    yield Case(graph="R-MAT 18", dense=lambda: rmat(18))
    yield Case(graph="R-MAT 18", dense=lambda: rmat(18), ids="object strings")
    yield Case(graph="R-MAT 18", dense=lambda: rmat(18), ids="str")
    yield Case(graph="grid 1000 x 1000", dense=lambda: grid(1000))
    yield Case(graph="uniform 2M x 10M", dense=lambda: uniform(2_000_000, 10_000_000))
    yield Case(graph="cnr-2000", dense=_real(data, "cnr-2000"))
    yield Case(graph="cnr-2000", dense=_real(data, "cnr-2000"), alpha=0.99)
    yield Case(graph="web-NotreDame", dense=_real(data, "web-NotreDame"))


def _real(data: Path | None, name: str) -> Callable[[], pd.DataFrame]:
    def read() -> pd.DataFrame:
        if data is None:
            raise FileNotFoundError("no data: set PRPLUGIN_DATA to the folder of real graphs")
        return pd.read_parquet(data / "graphs" / f"{name}.parquet")[["src", "dst"]]

    return read
