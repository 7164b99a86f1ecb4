"""Benchmarks: ``python -m benchmarks NAME``. No test depends on a measured time."""
