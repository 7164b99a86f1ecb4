"""The graphs, and what is asked of each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from benchmarks.generate import grid, rmat, scattered, scattered_ids, uniform
from benchmarks.peers._sides import PEERS
from benchmarks.reference import reference

__all__ = ["ALONE", "ASKED", "FRAME_TO_FRAME", "Case", "Ids", "cases"]

Ids: TypeAlias = Literal["local", "sparse int64", "object strings", "str"]
"""From 0 on and as they come; scattered over 62 bits; and those spelt out, in either of pandas' columns of strings."""

ASKED = 1e-6, 1e-10
"""Errors in L1."""

FRAME_TO_FRAME, ALONE = "frame to frame", "compute alone"


@dataclass(frozen=True, kw_only=True)
class Case:
    """A graph with its ids.

    Attributes
    ----------
    graph : str
    dense : function
        Gives the frame of local ids.
    ids : Ids
    alpha : float
    details : collection of str
        Peers with which numbers of threads and a busy core are compared as well.
    """

    graph: str
    dense: Callable[[], pd.DataFrame]
    ids: Ids = "local"
    alpha: float = 0.85
    details: Collection[str] = ()

    @property
    def name(self) -> str:
        """The graph and what sets the case apart."""
        parts = [self.graph, f"{self.ids} ids", f"alpha {self.alpha}" if self.alpha != 0.85 else ""]
        return ", ".join(filter(None, parts))

    def frame(self, dense: pd.DataFrame) -> pd.DataFrame:
        """Put the graph as the case has it."""
        if self.ids == "local":
            return dense
        if self.ids == "sparse int64":
            return scattered(dense)
        # As a reader of files gives them: one object for each string of a column.
        n = int(dense.to_numpy().max()) + 1
        named = pd.DataFrame({name: self._spelt(n)[dense[name].to_numpy()] for name in dense}, dtype=object)
        return named if self.ids == "object strings" else named.astype("str")

    def exact(self, dense: pd.DataFrame) -> pd.Series:
        """Return the ranks by id."""
        ranks = reference(dense, multi=True, weight=None, alpha=self.alpha)
        if self.ids == "local":
            ids: Any = np.arange(ranks.size)
        else:
            ids = scattered_ids(ranks.size) if self.ids == "sparse int64" else self._spelt(ranks.size)
        return pd.Series(ranks, pd.Index(ids))[ranks > 0]

    @staticmethod
    def _spelt(n: int) -> np.ndarray:
        return scattered_ids(n).astype(str).astype(object)


def cases(data: Path | None, quick: bool) -> Iterator[Case]:
    """Name the cases; those of real graphs raise where there is no folder of them."""
    if quick:
        yield Case(graph="R-MAT 10", dense=lambda: rmat(10), ids="sparse int64", details=["SciPy loop, tuned"])
        yield Case(graph="R-MAT 10", dense=lambda: rmat(10), ids="object strings")
        yield Case(graph="R-MAT 10", dense=lambda: rmat(10), ids="str")
        yield Case(graph="grid 30 x 30", dense=lambda: grid(30))
        return
    yield Case(graph="R-MAT 16", dense=lambda: rmat(16), ids="sparse int64")
    yield Case(graph="R-MAT 18", dense=lambda: rmat(18), ids="sparse int64", details=PEERS)
    yield Case(graph="R-MAT 20", dense=lambda: rmat(20), ids="sparse int64")
    yield Case(graph="R-MAT 18", dense=lambda: rmat(18))
    yield Case(graph="R-MAT 18", dense=lambda: rmat(18), ids="object strings")
    yield Case(graph="R-MAT 18", dense=lambda: rmat(18), ids="str")
    yield Case(graph="grid 1000 x 1000", dense=lambda: grid(1000), details=PEERS)
    yield Case(graph="uniform 2M x 10M", dense=lambda: uniform(2_000_000, 10_000_000))
    yield Case(graph="cnr-2000", dense=_real(data, "cnr-2000"))
    yield Case(graph="cnr-2000", dense=_real(data, "cnr-2000"), alpha=0.99)
    yield Case(graph="web-NotreDame", dense=_real(data, "web-NotreDame"))


def _real(data: Path | None, name: str) -> Callable[[], pd.DataFrame]:
    def read() -> pd.DataFrame:
        if data is None:
            raise FileNotFoundError("not here: set PRPLUGIN_DATA to the folder of real graphs")
        return pd.read_parquet(data / "graphs" / f"{name}.parquet")[["src", "dst"]]

    return read
