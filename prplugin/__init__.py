"""PageRank as a method of the dataframe: ``edges.pagerank()``, with a proved error bound."""

from prplugin import accessor
from prplugin.api import Graph, pagerank
from prplugin.errors import (
    ColumnNotFoundError,
    InvalidEdgesError,
    InvalidOptionError,
    MethodUnavailableError,
    MissingLibraryError,
    NotConvergedError,
    OutOfMemoryError,
    PageRankError,
    PageRankWarning,
    VertexNotFoundError,
    WorkerLostError,
)
from prplugin.methods.estimates import Estimate
from prplugin.progress import Progress
from prplugin.result.groups import GroupRankings
from prplugin.result.ranking import Ranking, Rankings
from prplugin.sizing import estimate

__all__ = [
    "ColumnNotFoundError",
    "Estimate",
    "Graph",
    "GroupRankings",
    "InvalidEdgesError",
    "InvalidOptionError",
    "MethodUnavailableError",
    "MissingLibraryError",
    "NotConvergedError",
    "OutOfMemoryError",
    "PageRankError",
    "PageRankWarning",
    "Progress",
    "Ranking",
    "Rankings",
    "VertexNotFoundError",
    "WorkerLostError",
    "estimate",
    "pagerank",
]

__version__ = "0.1.0"


def __dir__() -> list[str]:
    return sorted(__all__)


accessor.register(pagerank)
