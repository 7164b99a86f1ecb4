"""Communication between ranks on GPUs through NCCL, of arrays in device memory and of small objects.

Creating an NCCL communicator takes some tenths of a second, so a worker caches the last one for the next job of the
same workers. Jobs are serialized by a lock of the first rank, which the other ranks follow, so that all workers run
them in the same order.

An NCCL kernel waits for its peers without a timeout. When Dask cancels the task of a rank, `MessagePlugin` calls
`abort`, which ends the kernel. Its output is then invalid, so each reader of the output checks for an abort.
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
from numpy.typing import NDArray

from prplugin.distributed.communicator import Communicator, T
from prplugin.errors import MethodUnavailableError, WorkerLostError, listed
from prplugin.frames.columns import Frame
from prplugin.gpu import runtime
from prplugin.types.array_module import Scalar
from prplugin.types.arrays import Array, address_of, to_host
from prplugin.types.edges import Integers

SLOT = 4096  # bytes per rank of the first message of `all_gather`. Longer values need a second message

LOCK_SECONDS = 2.0
"""Interval of checks for cancellation while waiting for the lock, and timeout of `abort` for running calls."""

BYTE = 1  # value of NCCL_UINT8; CuPy's constant requires the library

_turn = Lock()
"""Lock that serializes jobs; only the first rank of a job acquires it."""


class _Communicator:
    """An NCCL communicator that can be aborted."""

    def __init__(self, unique: object, rank: int, size: int) -> None:
        from cupy.cuda import nccl  # lazy import; availability was checked by `_facts`

        self.identity, self.aborted = pickle.dumps(unique), False
        self._nccl = nccl
        self._calling = Lock()
        self._handle = nccl.NcclCommunicator(size, unique, rank)

    @contextmanager
    def group(self) -> Iterator[Any]:
        """Yield the NCCL handle within a group of calls, which start at the end of the context."""
        with self._calling:
            self.check()
            try:
                self._nccl.groupStart()
                try:
                    yield self._handle
                finally:
                    self._nccl.groupEnd()
            except self._nccl.NcclError as error:
                self.aborted = True
                raise WorkerLostError(f"NCCL has failed, perhaps because a GPU or a worker is lost: {error}") from error

    def check(self) -> None:
        """Raise if the communicator was aborted, so that received data are invalid."""
        if self.aborted:
            raise WorkerLostError("the computation on the GPUs was aborted, because a worker failed or is lost.")

    def abort(self) -> None:
        """End all kernels of this communicator."""
        self.aborted = True
        called = self._calling.acquire(timeout=LOCK_SECONDS)  # a call that waits for a lost peer never returns
        try:
            self._handle.abort()
        finally:
            if called:
                self._calling.release()


_cached: list[_Communicator] = []
"""Cache of the last communicator of this worker; at most one entry."""


def abort() -> None:
    """Abort the communicator of this worker, and its running operations; the next job creates another."""
    while _cached:
        _cached.pop().abort()


class DeviceRanks(Communicator):
    """Connects several GPUs by NCCL on the current stream; host arrays and large objects use Dask's connections."""

    _communicator: _Communicator
    _handle: Any = None
    _stream = 0

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Wait until earlier jobs have ended, and connect the ranks.

        Raise MethodUnavailableError if a worker has no GPU or no NCCL, or two workers have the same GPU.
        """
        first = self.rank == 0
        if first:
            while not _turn.acquire(timeout=LOCK_SECONDS):
                self.check_active()
        try:
            self._communicator = self._connect()
            yield
        finally:
            if first:
                _turn.release()

    def _connect(self) -> _Communicator:
        """Return the cached communicator if all ranks have the same one, else create one."""
        cached = None if not _cached or _cached[0].aborted else _cached[0].identity
        facts = super().all_gather((cached, *_facts()))
        workers_of: dict[object, list[str]] = {}
        for address, (_, reason, gpu) in zip(self.addresses, facts, strict=True):
            if reason is not None:
                raise MethodUnavailableError(f"worker {address} cannot rank partitions of cuDF: {reason}")
            workers_of.setdefault(gpu, []).append(address)
        if shared := next((workers for workers in workers_of.values() if len(workers) > 1), None):
            raise MethodUnavailableError(
                f"workers {listed(shared)} have the same GPU, but NCCL needs one per worker. Start one worker per GPU, "
                "for instance with dask_cuda.LocalCUDACluster()."
            )
        if cached is None or any(identity != cached for identity, _, _ in facts):
            abort()
            from cupy.cuda import nccl  # lazy import; availability was checked by `_facts`

            unique = super().all_gather(nccl.get_unique_id() if self.rank == 0 else None)[0]
            _cached.append(_Communicator(unique, self.rank, self.size))
        return _cached[0]

    def all_gather(self, value: T) -> list[T]:
        began = time.perf_counter()
        pickled = pickle.dumps(value)
        message = np.frombuffer(len(pickled).to_bytes(8, "little") + pickled, np.uint8)
        received = self._gathered(message[:SLOT], SLOT)
        longest = int(received[:, :8].copy().view(np.int64).max()) + 8
        if longest > SLOT:
            received = np.hstack([received, self._gathered(message[SLOT:], longest - SLOT)])
        self.wait_seconds += time.perf_counter() - began
        return [pickle.loads(row[8:]) for row in received]  # `loads` ignores the padding at the end

    def _gathered(self, message: Array, size: int) -> Integers:
        """Gather messages of all ranks: a size x `size` array of bytes with zero padding, one row per rank."""
        padded = cupy.asarray(np.pad(message, (0, size - message.size)))
        gathered = cupy.empty((self.size, size), np.uint8)
        with self.group() as calls:
            calls.all(padded, gathered)
        return self.to_host_checked(gathered)

    def all_to_all_arrays(self, arrays: Sequence[NDArray[Scalar]]) -> list[NDArray[Scalar]]:
        if isinstance(arrays[0], np.ndarray):
            return self.all_to_all(arrays)
        sizes = [sent[self.rank] for sent in self.all_gather([array.size for array in arrays])]
        began = time.perf_counter()
        out = [cupy.ascontiguousarray(array) for array in arrays]
        received = [
            array if rank == self.rank else cupy.empty(size, array.dtype)
            for rank, (array, size) in enumerate(zip(out, sizes, strict=True))
        ]
        with self.group() as calls:
            for rank in range(self.size):
                if rank != self.rank:
                    calls.send(out[rank], rank)
                    calls.receive(received[rank], rank)
        cupy.cuda.get_current_stream().synchronize()
        self.check()
        self.wait_seconds += time.perf_counter() - began
        return received

    def frames_on_first(self, frames: list[Frame]) -> list[Frame]:
        serialized = [frame.device_serialize() for frame in frames] if self.rank else []
        sent = [cupy.asarray(buffer).view(np.uint8) for _, buffers in serialized for buffer in buffers]
        of_ranks = self.all_gather([(header, [each.nbytes for each in buffers]) for header, buffers in serialized])
        received = []
        with self.group() as calls:
            for rank, of_rank in enumerate(of_ranks if self.rank == 0 else []):
                for header, sizes in of_rank:
                    received.append((header, [cupy.empty(size, np.uint8) for size in sizes]))
                    for array in received[-1][1]:
                        calls.receive(array, rank)
            for array in sent:
                calls.send(array, 0)
        cupy.cuda.get_current_stream().synchronize()
        self.check()
        found = frames if self.rank == 0 else []
        for header, arrays in received:
            pairs = zip(arrays, header["is-cuda"], strict=True)  # cuDF may have spilled a buffer to the host
            buffers = [array if on_device else memoryview(to_host(array)) for array, on_device in pairs]
            found = [*found, type(frames[0]).device_deserialize(header, buffers)]
        return found

    @contextmanager
    def group(self) -> Iterator[DeviceRanks]:
        """Group calls of `send`, `receive` and `all`, which start together at the end, asynchronously."""
        with self._communicator.group() as self._handle:
            self._stream = cupy.cuda.get_current_stream().ptr
            yield self

    def send(self, array: Array, rank: int) -> None:
        if array.nbytes:
            self._handle.send(address_of(array), array.nbytes, BYTE, rank, self._stream)
            self.bytes_sent += array.nbytes

    def receive(self, array: Array, rank: int) -> None:
        """Receive an array from a rank, which must send the same number of bytes."""
        if array.nbytes:
            self._handle.recv(address_of(array), array.nbytes, BYTE, rank, self._stream)

    def all(self, array: Array, gathered: Array) -> None:
        """Gather the arrays of all ranks in `gathered`, on every rank."""
        self._handle.allGather(address_of(array), address_of(gathered), array.nbytes, BYTE, self._stream)
        self.bytes_sent += gathered.nbytes - array.nbytes

    def to_host_checked(self, array: NDArray[Scalar]) -> NDArray[Scalar]:
        """Synchronize the current stream and copy an array to the host; raise if the communicator was aborted."""
        copied = to_host(array)
        self.check()
        return copied

    def check(self) -> None:
        """Raise if the communicator was aborted, so that received data are invalid."""
        self._communicator.check()


def _facts() -> tuple[str | None, object]:
    """Return the reason why this worker cannot use NCCL, or None, and an identifier of its GPU."""
    if reason := runtime.unavailable_reason():
        return reason, None
    try:
        from cupy.cuda import nccl
    except ImportError as error:
        return f"NCCL cannot be loaded ({error}): install nvidia-nccl-cu13 (with CUDA 12, nvidia-nccl-cu12).", None
    if not nccl.available:
        return "CuPy finds no NCCL: install nvidia-nccl-cu13 (with CUDA 12, nvidia-nccl-cu12).", None
    return None, (socket.gethostname(), cupy.cuda.runtime.deviceGetPCIBusId(runtime.device()))
