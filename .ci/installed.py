"""Check the installed package against the checkout whose folder is given, and use it."""

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import networkx as nx
import pandas as pd

import prplugin
from prplugin.cpu.library import unavailable_reason

EXTRAS = {"gpu", "dask", "networkx", "plot", "docs", "test"}

root = Path(sys.argv[1])
installed = Path(prplugin.__file__).parent
assert installed.is_relative_to(sys.prefix), f"{installed} is not what was installed"

# Every file of the package: kernels, their headers and py.typed as much as modules.
tracked = subprocess.run(["git", "ls-files", "prplugin"], cwd=root, capture_output=True, text=True, check=True)
files = tracked.stdout.split()
assert {".cpp", ".cu", ".cuh", ".hpp", ".py", ".typed"} <= {Path(file).suffix for file in files}
differing = [file for file in files if (root / file).read_bytes() != (installed.parent / file).read_bytes()]
assert not differing, differing

assert unavailable_reason() is None, unavailable_reason()

about = metadata.distribution("prplugin")
assert about.version == prplugin.__version__
assert set(about.metadata.get_all("Provides-Extra")) >= EXTRAS
assert about.metadata["License-Expression"] == "Apache-2.0"
assert any(file.name == "LICENSE" for file in about.files)
assert not [file for file in about.files if file.parts[0] in ("tests", "benchmarks", "conformance", "docs")]

edges = pd.DataFrame({"src": ["ann", "bob", "cat", "ann"], "dst": ["bob", "cat", "bob", "cat"]})
before = edges.copy()
for method in ("auto", "numpy", "native"):
    ranks = edges.pagerank(method=method)
    assert ranks["vertex"].tolist() == ["ann", "bob", "cat"]
    assert abs(ranks["pagerank"].sum() - 1) < 1e-12
pd.testing.assert_frame_equal(edges, before)

graph = nx.from_pandas_edgelist(edges, "src", "dst", create_using=nx.DiGraph)
assert nx.pagerank(graph, backend="prplugin").keys() == {"ann", "bob", "cat"}
versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("numpy", "pandas", "dask"))
print(f"prplugin {about.version} is installed whole: {len(files)} files, with {versions}")
