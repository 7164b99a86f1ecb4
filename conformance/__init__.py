"""Every method against independent references, over graph shapes, ids, weights and options: `python -m conformance`.

- `shapes`: the graphs, as pandas frames.
- `options`: the options, and the pairwise cover of options and shapes.
- `equation`: what a frame and options mean, read by plain Python.
- `references`: solutions of the equation found another way; adding one means adding a function there.
- `published`: values that other projects publish for their own tests.
- `compare`: one case to one result.
- `rapids`: cuDF and cuGraph, where they and a GPU are.
- `against_cugraph`: the methods on the GPU beside `cugraph.pagerank`, on shapes and real graphs; `probes`: what it does
  where an answer would be wrong.
- `work`: all of it as units, over processes.
- `report`: the results as Markdown, JSON and a picture; `report_cugraph`: its part on cuGraph; `tables`.
- `sanitize`: every kernel under compute-sanitizer, a command of its own.

Nothing here names a method: they are found as prplugin finds them.
"""
