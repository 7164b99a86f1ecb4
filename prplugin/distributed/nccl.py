"""Ranks on GPUs, which reach one another through NCCL; for what lies on the host, through their mailboxes.

A communicator takes NCCL some tenths of a second to make, so a worker keeps the last one, for the next job of the same
workers. Jobs take turns: the first rank waits for its worker's turn and then tells the others, so that all workers see
them in one order.

A kernel of NCCL waits for its peers and for nothing else. If one of these is lost, the driver says so (`run`), and
`abort` ends the kernel: what it left is of no use, and whoever waited for it looks whether that is so.
"""

from __future__ import annotations

import pickle
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any

import cupy
import numpy as np

from prplugin.distributed.mailbox import Mailbox
from prplugin.errors import MethodUnavailableError, WorkerLostError, listed
from prplugin.gpu import runtime

__all__ = ["DeviceRanks", "abort", "connected"]

SLOT = 4096
"""Bytes of what each rank brings to `gather` that travel at once; more takes a second time."""

LOCK_SECONDS = 2.0
"""Waited for its turn, a rank looks whether it is still wanted; waited for a call to end, `abort` goes on without."""

_turn = Lock()
"""Of jobs on this worker; taken by the job's first rank alone."""


class _Communicator:
    """A communicator of NCCL, and whether it has been given up."""

    def __init__(self, identity: bytes, rank: int, size: int, unique: Any) -> None:
        from cupy.cuda import nccl  # needs the library, for which `_facts` has looked

        self.identity, self.given_up = identity, False
        self._nccl = nccl
        self._calling = Lock()
        self._handle = nccl.NcclCommunicator(size, unique, rank)

    @contextmanager
    def group(self) -> Iterator[Any]:
        """Give the communicator for some calls that begin together."""
        with self._calling:
            self.check()
            try:
                self._nccl.groupStart()
                try:
                    yield self._handle
                finally:
                    self._nccl.groupEnd()
            except self._nccl.NcclError as error:
                self.given_up = True
                raise WorkerLostError(f"NCCL has failed, as where a GPU or a worker is lost: {error}") from error

    def check(self) -> None:
        """Raise if what NCCL brought is of no use."""
        if self.given_up:
            raise WorkerLostError("the GPUs' work was given up, for one of the workers failed or is lost.")

    def abort(self) -> None:
        """End all that runs."""
        self.given_up = True
        called = self._calling.acquire(timeout=LOCK_SECONDS)  # one that waits for a lost peer never ends by itself
        try:
            self._handle.abort()
        finally:
            if called:
                self._calling.release()


_kept: list[_Communicator] = []
"""The last one of this worker, if there is one."""

_ranks: set[Any] = set()
"""Jobs of which a rank is at work here."""


def abort() -> None:
    """Give up the communicator of this worker, and end what runs in it, if anything does."""
    if _ranks:
        _drop()


def _drop() -> None:
    while _kept:
        _kept.pop().abort()


class DeviceRanks:
    """A `Communicator` by NCCL on the current stream.

    `mailbox`: Of the same rank.
    `communicator`: _Communicator.
    """

    def __init__(self, mailbox: Mailbox, communicator: _Communicator) -> None:
        self.rank, self.size = mailbox.rank, mailbox.size
        self._mailbox, self._communicator = mailbox, communicator
        self._sent, self._seconds = 0, 0.0

    @property
    def sent(self) -> int:
        return self._sent + self._mailbox.sent

    @property
    def seconds(self) -> float:
        return self._seconds + self._mailbox.seconds

    def exchange(self, pieces: Sequence[Any]) -> list[Any]:
        return self._mailbox.exchange(pieces)

    def gather(self, value: Any) -> list[Any]:
        if self.size == 1:
            return [value]
        began = time.perf_counter()
        letter = pickle.dumps(value)
        whole = np.zeros(SLOT, np.uint8)
        whole[:8] = np.array([len(letter)]).view(np.uint8)
        head = np.frombuffer(letter[: SLOT - 8], np.uint8)
        whole[8 : 8 + head.size] = head
        came = self._all(whole)
        lengths = came[:, :8].copy().view(np.int64)[:, 0].tolist()
        letters = [bytes(row[8 : 8 + length]) for row, length in zip(came, lengths, strict=True)]
        if (rest := max(lengths) - (SLOT - 8)) > 0:
            whole = np.zeros(rest, np.uint8)
            tail = np.frombuffer(letter[SLOT - 8 :], np.uint8)
            whole[: tail.size] = tail
            letters = [
                start + bytes(row[: max(0, length - (SLOT - 8))])
                for start, row, length in zip(letters, self._all(whole), lengths, strict=True)
            ]
        self._seconds += time.perf_counter() - began
        return [pickle.loads(one) for one in letters]

    def _all(self, whole: Any) -> Any:
        """Give the bytes of all ranks, a row each: as many of each."""
        mine, everyone = cupy.asarray(whole), cupy.empty((self.size, whole.size), np.uint8)
        with self.together() as calls:
            calls.all(mine, everyone)
        return self.arrived(everyone)

    def swap(self, arrays: Sequence[Any]) -> list[Any]:
        if self.size == 1:
            return list(arrays)
        sizes = [sent[self.rank] for sent in self.gather([array.size for array in arrays])]
        began = time.perf_counter()
        out = [cupy.ascontiguousarray(array) for array in arrays]
        came = [
            array if rank == self.rank else cupy.empty(size, array.dtype)
            for rank, (array, size) in enumerate(zip(out, sizes, strict=True))
        ]
        with self.together() as calls:
            for rank in range(self.size):
                if rank != self.rank:
                    calls.send(out[rank], rank)
                    calls.receive(came[rank], rank)
        self.wait()
        self._seconds += time.perf_counter() - began
        return came

    @contextmanager
    def together(self) -> Iterator[_Calls]:
        """Give what sends and receives; all of that begins together when the context ends, and nobody waits for it."""
        with self._communicator.group() as handle:
            calls = _Calls(handle, cupy.cuda.get_current_stream().ptr)
            yield calls
        self._sent += calls.sent

    def waited(self, seconds: float) -> None:
        """Count time that this rank's GPU has waited for others outside of `gather` and `swap`."""
        self._seconds += seconds

    def wait(self) -> None:
        """Wait for the current stream; raise if what NCCL brought is of no use."""
        cupy.cuda.get_current_stream().synchronize()
        self._communicator.check()

    def arrived(self, array: Any) -> Any:
        """Copy an array to the host, when it is there; raise if what NCCL brought is of no use."""
        copied = array.get()
        self._communicator.check()
        return copied


class _Calls:
    """Sends and receives bytes."""

    def __init__(self, handle: Any, stream: int) -> None:
        from cupy.cuda import nccl

        self.sent = 0
        self._handle, self._stream, self._byte = handle, stream, nccl.NCCL_UINT8

    def send(self, array: Any, rank: int) -> None:
        """Send an array to a rank."""
        if array.nbytes:
            self._handle.send(array.data.ptr, array.nbytes, self._byte, rank, self._stream)
            self.sent += array.nbytes

    def receive(self, array: Any, rank: int) -> None:
        """Receive an array from a rank, which sends as many bytes."""
        if array.nbytes:
            self._handle.recv(array.data.ptr, array.nbytes, self._byte, rank, self._stream)

    def all(self, array: Any, everyone: Any) -> None:
        """Bring the arrays of all ranks to all of them."""
        self._handle.allGather(array.data.ptr, everyone.data.ptr, array.nbytes, self._byte, self._stream)
        self.sent += everyone.nbytes - array.nbytes


@contextmanager
def connected(mailbox: Mailbox) -> Iterator[DeviceRanks]:
    """Give a rank its communicator, when it is this job's turn.

    Raises MethodUnavailableError: if a worker has no GPU or no NCCL, or two have the same GPU.
    """
    first = mailbox.rank == 0
    if first:
        while not _turn.acquire(timeout=LOCK_SECONDS):
            mailbox.check_wanted()
    _ranks.add(mailbox)
    try:
        yield DeviceRanks(mailbox, _communicator(mailbox))
    finally:
        _ranks.remove(mailbox)
        if first:
            _turn.release()


def _communicator(mailbox: Mailbox) -> _Communicator:
    kept = None if not _kept or _kept[0].given_up else _kept[0].identity
    facts = mailbox.gather((kept, *_facts()))
    addresses = mailbox.addresses
    for address, (_, reason, _) in zip(addresses, facts, strict=True):
        if reason is not None:
            raise MethodUnavailableError(f"worker {address} cannot rank partitions of cuDF: {reason}")
    gpus: dict[Any, list[str]] = {}
    for address, (_, _, gpu) in zip(addresses, facts, strict=True):
        gpus.setdefault(gpu, []).append(address)
    if shared := next((having for having in gpus.values() if len(having) > 1), None):
        raise MethodUnavailableError(
            f"workers {listed(shared)} have the same GPU, and NCCL needs one for each. Start one worker a GPU, for "
            "instance with dask_cuda.LocalCUDACluster()."
        )
    if kept is not None and all(identity == kept for identity, _, _ in facts):
        return _kept[0]
    _drop()
    from cupy.cuda import nccl  # there: every rank has looked

    unique = mailbox.gather(nccl.get_unique_id() if mailbox.rank == 0 else None)[0]
    _kept.append(_Communicator(pickle.dumps(unique), mailbox.rank, mailbox.size, unique))
    return _kept[0]


def _facts() -> tuple[str | None, Any]:
    """Say why this worker cannot take part, or None, and which GPU it has."""
    if reason := runtime.missing():
        return reason, None
    try:
        from cupy.cuda import nccl
    except ImportError as error:
        return f"NCCL cannot be loaded ({error}): install nvidia-nccl-cu13.", None
    if not nccl.available:
        return "CuPy finds no NCCL: install nvidia-nccl-cu13.", None
    return None, (socket.gethostname(), cupy.cuda.runtime.deviceGetPCIBusId(runtime.device()))
