"""Kernels that decode WebGraph's BV format: see webgraph.cpp."""

from __future__ import annotations

from prplugin.cpu.library import Kernel

CODES = "UNARY", "GAMMA", "DELTA", "ZETA", "NIBBLE", "GOLOMB"
"""Codes of natural numbers in the order of webgraph.cpp; a kernel gets the position here plus 8 times the parameter."""

PARTS = "OUTDEGREES", "REFERENCES", "BLOCK_COUNT", "BLOCKS", "INTERVALS", "RESIDUALS"
"""Parts of a record, each with its own code, in the order of webgraph.cpp; named as in a property file."""

FAULTS = (
    "",
    "the file ends within its record",
    "its out-degree exceeds the number of vertices, or is another one than before",
    "it refers to a vertex outside the window",
    "it copies more successors than the vertex that it refers to has",
    "it has more successors than its out-degree",
    "it has a successor that is no vertex",
    "it has a successor twice",
    "the length of its record is not the one in the .offsets file",
)
"""Faults of records, by the number that a kernel writes."""

_FILE = "bytes:u1[size] codes:i8[6] window:i8 "

read_positions = Kernel("bv_positions", "bytes:u1[size] code:i8 positions:i8[n+1]!")

read_degrees = Kernel(
    "bv_degrees",
    _FILE + "shortest:i8 known:i8 positions:i8[n+1]! bounds:i8[pieces+1] degrees:I[n]! faults:i8[pieces,3]! threads:i8",
)

move_to_cuts = Kernel("bv_cuts", _FILE + "positions:i8[n+1] bounds:i8[pieces+1]!")

decode = Kernel(
    "bv_decode",
    _FILE + "shortest:i8 positions:i8[n+1] offsets:i8[n+1] bounds:i8[pieces+1] indices:I[m]! scratch:I[parts,width]! "
    "faults:i8[pieces,3]!",
)
