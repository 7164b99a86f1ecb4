"""Draw the error bound against iterations, plain and accelerated: ``python docs/pictures/convergence.py cnr-2000.parquet``."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

import prplugin


def main(path: str) -> None:
    """Draw the picture of one graph, whose edges are in a Parquet file."""
    graph = prplugin.Graph(pd.read_parquet(path, columns=["src", "dst"]))
    figure, panel = plt.subplots(figsize=(6, 3.4))
    for label, options in {
        "plain steps": {"method": "numpy", "tol": 0, "max_iter": 75},
        "mixed steps (numpy)": {"method": "numpy"},
        "mixed steps (native)": {"method": "native"},
    }.items():
        seen: list[prplugin.Progress] = []
        graph.rank(progress=seen.append, **options)
        steps = [state for state in seen if state.iterations]
        panel.semilogy([state.iterations for state in steps], [state.error_bound for state in steps], label=label)
    panel.axhline(1e-6, color="0.7", linewidth=0.8)
    panel.set_xlabel("iterations")
    panel.set_ylabel("proved error bound")
    panel.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(Path(__file__).with_suffix(".svg"))


if __name__ == "__main__":
    main(sys.argv[1])
