"""PageRank of scikit-network by the solver "RH", a polynomial evaluated by Horner's rule.

It is the only one of six solvers that computes the same ranks: "piteration", "lanczos" and "bicgstab" treat dangling
vertices differently; "diteration" and "push" do not attain the required errors. Its parameter is the number of passes
k, for an error of about alpha ** k.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
from sknetwork.ranking import PageRank

from benchmarks.peers._factorize import by_arrow

THREADS = 1


def build(edges: pd.DataFrame) -> tuple[Any, Any]:
    """Factorize the ids and compress the edges by source, without summing parallel edges (see `scipy_loop_tuned`)."""
    source, target, ids = by_arrow(edges)
    n = len(ids)
    pairs = scipy.sparse.coo_matrix((np.ones(len(source)), (source, target)), shape=(n, n))
    pairs.has_canonical_format = True
    return ids, pairs.tocsr()


def rank(matrix: Any, alpha: float, tol: float) -> tuple[np.ndarray, int]:
    """Evaluate k terms, the least k with alpha ** k <= tol."""
    passes = max(1, math.ceil(math.log(tol) / math.log(alpha)))
    return PageRank(alpha, solver="RH", n_iter=passes).fit_predict(matrix), passes
