"""A worker of a Dask cluster that is killed in the middle, by the number of its own process."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["killed"]


@contextmanager
def killed(client: Any, victim: str, seconds: float) -> Iterator[None]:
    """Kill the worker of this address after so many seconds; at the end it is gone."""
    process = client.run(os.getpid)[victim]

    def kill() -> None:
        time.sleep(seconds)
        os.kill(process, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        yield
    finally:
        killer.join()
