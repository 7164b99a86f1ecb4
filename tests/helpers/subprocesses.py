"""Python code that needs a process of its own, for instance to check which modules it imports."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

__all__ = ["run_python"]


def run_python(*arguments: str, **options: Any) -> str:
    """Run the interpreter with these arguments, check that it succeeds, and return its standard output."""
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()
