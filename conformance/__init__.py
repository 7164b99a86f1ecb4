"""Comparison of every method with independent references, over shapes, ids, weights and options of graphs.

Run it with `python -m conformance`.

- `shapes`: graphs, as pandas frames.
- `options`: options, and the pairwise cover of options and shapes.
- `equation`: the PageRank equation of a frame and options, read without code of prplugin.
- `references`: independent solutions of the equation. To add a reference, add a function there.
- `published`: values that other projects publish for their own tests.
- `forced`: options of the methods that are run on every shape in addition to their defaults.
- `compare`: comparison of one case.
- `bounds`: error bounds in rational arithmetic, from the documentation; `derivation`: those of prplugin beside them.
- `rapids`: access to cuDF and cuGraph, if they are installed and a GPU is available.
- `against_cugraph`: comparison of the GPU methods with `cugraph.pagerank`, on shapes and real graphs.
- `probes`: behaviour of cuGraph and prplugin on invalid or ambiguous input.
- `work`: units of the suite, and their distribution over processes; `parts`: results of parts of the suite.
- `report`: report in Markdown, JSON and SVG; `report_cugraph`: its section on cuGraph; `tables`: Markdown tables.
- `sanitize`: every kernel under compute-sanitizer, a separate command.

The methods to compare come from prplugin's registry; only `forced` refers to methods by name.
"""
