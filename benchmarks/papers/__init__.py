"""Experiments of five papers, with the papers' figures next to the measured ones: ``python -m benchmarks kim`` etc.

There is one module per paper with its printed figures and their sections, its graphs and parameter sweeps, and the
tests of its claims. "One CPU thread" is the method `native` with one thread. The dangling mass is redistributed, also
if a paper drops it; times include that. On the GPU contributions are float32 and sums float64; on the CPU both are
float64.
"""
