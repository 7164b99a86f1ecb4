"""Timings, runnable by anyone: ``python -m benchmarks NAME``. No test depends on one."""
