"""PageRank as a method of the dataframe: ``edges.pagerank()``, with a proved error bound."""

from prplugin import accessor
from prplugin.api import Graph, pagerank
from prplugin.errors import (
    ColumnNotFoundError,
    InvalidEdgesError,
    InvalidOptionError,
    MethodUnavailableError,
    NotConvergedError,
    PageRankError,
)
from prplugin.progress import State as Progress
from prplugin.ranking import Ranking, Rankings

__all__ = [
    "ColumnNotFoundError",
    "Graph",
    "InvalidEdgesError",
    "InvalidOptionError",
    "MethodUnavailableError",
    "NotConvergedError",
    "PageRankError",
    "Progress",
    "Ranking",
    "Rankings",
    "pagerank",
]

__version__ = "0.1.0"

accessor.register(pagerank)
