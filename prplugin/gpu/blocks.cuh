// Edges in blocks, from tiles of sources to pieces of rows: propagation blocking, after S. Beamer, K. Asanovic and
// D. Patterson, "Reducing PageRank communication via propagation blocking", IPDPS 2017.
//
// A vertex has a place: its id less the least id, or its position if every place has a vertex. `marks` tells which
// have. 2^tile_bits places of sources are a tile, whose contributions fit in shared memory; 2^piece_bits places of rows
// are a piece, whose sums fit. The edges from one tile to one piece are a cell, padded to chunks of CHUNK edges, a
// memory sector of floats. Sources are stored by tile, and those of a tile by piece; rows by piece, and those of a
// piece by tile; within a cell both have the same order:
//
//   tile_sources[e]    place of the source in the tile; 2^tile_bits for padding
//   piece_rows[e]      place of the row in the piece; 2^piece_bits for padding
//   chunk_by_piece[c]  of a chunk by tile: its index by piece
//
// The order of the edges of a cell depends on the order of threads, but no result does: sums are of integers.

#define CHUNK 8
