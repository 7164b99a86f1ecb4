// Edges in blocks, from tiles of sources to pieces of rows: propagation blocking, after S. Beamer, K. Asanovic and
// D. Patterson, "Reducing PageRank communication via propagation blocking", IPDPS 2017.
//
// A vertex has a place: its id less the least id, or its position if every place has a vertex. `marks` tells which have.
// Places of sources are partitioned into tiles of TILE, whose contributions fit in shared memory; those of rows into
// pieces of PIECE, whose sums fit. The edges from one tile to one piece are a cell. Edges are stored in two orders; those
// of a cell are contiguous in both, in the same order:
//
//   by tile    tile 0: pieces 0, 1, 2 ...    tile 1: pieces 0, 1, 2 ...    in which contributions are read
//   by piece   piece 0: tiles 0, 1, 2 ...    piece 1: tiles 0, 1, 2 ...    in which they are added to their rows
//
// so that 16 bits suffice for each index. Cells are padded to chunks of CHUNK edges, a memory sector of floats. A padding
// edge is from place TILE of the tile to place PIECE of the piece. Chunks are moved as a whole:
//
//   tile_sources[e]    by tile: place of the source in the tile
//   chunk_by_piece[c]  of a chunk by tile: its index by piece
//   piece_rows[e]      by piece: place of the row in the piece
//
// The order of the edges of a cell depends on the order of threads, but no result does: sums are of integers.

#define CHUNK 8
