"""The way of the tails of `cpu-split` between GPU and processor: buffers, copies, and what waits for what."""

from __future__ import annotations

import weakref
from typing import Any

from prplugin.gpu import runtime
from prplugin.methods.papers._split_kernels import FILE, launch
from prplugin.methods.papers._tails import Tails, TailSums
from prplugin.methods.papers._timeline import Recorder

__all__ = ["TailLane"]


class TailLane:
    """The way of the tails: contributions down, sums up, on a stream of their own, and the processor between.

    Four buffers are used again in every iteration, and no copy or kernel meets one that is still in use. In turn:

    - `_gathered`, written by the next gather: the copy down is over, since the host has waited for it;
    - `_contributions`, written by the next copy down: the host has summed the tails before it goes on;
    - `_sums`, written by the host: the copy up came before this copy down on the stream, and the host waited for that;
    - `_tails`, written by the next copy up: it comes after the next gather, which comes after the addition.
    """

    def __init__(self, tails: Tails, threads: int, macros: dict[str, str | int]) -> None:
        import cupy
        import cupyx

        self._rows, self._sources, self._exact_shares = tails.rows, tails.sources, tails.shares
        self._sum = TailSums(tails.bounds, tails.places, threads)
        self._macros = macros
        self._stream = cupy.cuda.Stream(non_blocking=True)
        self._gather_done, self._down_done, self._up_done = (cupy.cuda.Event(disable_timing=True) for _ in range(3))
        self._sums = cupyx.empty_pinned(tails.rows.size)
        self._tails = cupy.empty(tails.rows.size)
        self._add = runtime.kernel(FILE, "add_tails", **macros, real_t="double")
        self._runtime = cupy.cuda.runtime
        self._dtype: Any = None
        # No memory may go while a copy, of an iteration that was interrupted, is under way.
        weakref.finalize(self, self._stream.synchronize)

    def _hold(self, dtype: Any) -> None:
        """Make buffers, shares and kernel for contributions of this type."""
        import cupy
        import cupyx

        self._dtype = dtype
        self._gathered = cupy.empty(self._sources.size, dtype)
        self._contributions = cupyx.empty_pinned(self._sources.size, dtype)
        self._shares = None if self._exact_shares is None else self._exact_shares.astype(dtype, copy=False)
        self._gather = runtime.kernel(FILE, "gather", **self._macros, real_t=runtime.ctype(dtype))

    def send_down(self, contributions: Any, main: Any, span: Recorder) -> None:
        """Have the contributions that tails read gathered, and copied as soon as they are: returns at once."""
        if self._dtype is None or self._dtype != contributions.dtype:  # NumPy takes None for float64
            self._hold(contributions.dtype)
        with span("gather", "GPU", main):
            launch(self._gather, self._sources.size, self._sources, contributions, self._gathered)
        self._gather_done.record(main)
        self._stream.wait_event(self._gather_done)
        down = self._contributions
        with span("down", "copy", self._stream):
            self._runtime.memcpyAsync(
                down.ctypes.data, self._gathered.data.ptr, down.nbytes, self._runtime.memcpyDeviceToHost,
                self._stream.ptr,
            )  # fmt: skip
        self._down_done.record(self._stream)

    def add_to(self, pulled: Any, main: Any, span: Recorder) -> None:
        """Sum the tails here, once the contributions are; have the sums copied and added to what `main` has summed."""
        self._down_done.synchronize()
        with span("tails", "host", None):
            self._sum(self._contributions, self._shares, self._sums)
        up = self._sums
        with span("up", "copy", self._stream):
            self._runtime.memcpyAsync(
                self._tails.data.ptr, up.ctypes.data, up.nbytes, self._runtime.memcpyHostToDevice, self._stream.ptr
            )
        self._up_done.record(self._stream)
        main.wait_event(self._up_done)
        with span("add", "GPU", main):
            launch(self._add, self._rows.size, self._rows, self._tails, pulled)
