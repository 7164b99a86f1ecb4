"""Failure injection: kill a worker of a Dask cluster while it computes."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["worker_killed"]


@contextmanager
def worker_killed(client: Any, address: str, seconds: float) -> Iterator[None]:
    """Kill the process of the worker at this address after so many seconds; it is dead when the context ends."""
    process = client.run(os.getpid)[address]

    def kill() -> None:
        time.sleep(seconds)
        os.kill(process, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        yield
    finally:
        killer.join()
