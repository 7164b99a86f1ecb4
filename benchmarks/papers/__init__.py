"""The experiments of five papers, with the papers' figures and today's: ``python -m benchmarks kim`` etc.

One module a paper: what it prints, with the page, table or figure; its graphs and sweeps; what it claims, and what is
found here. "One CPU version" is our method `numba` with one thread, whatever the paper's was. Dangling rank is spread,
as everywhere in prplugin, also where a paper drops it: timings include that. On the GPU contributions are float32 and
sums float64, on the CPU all is float64.
"""
