// Edges in blocks, from tiles of sources to pieces of rows: propagation blocking, after S. Beamer, K. Asanovic and
// D. Patterson, "Reducing PageRank communication via propagation blocking", IPDPS 2017.
//
// Sources are partitioned into tiles of consecutive vertices, whose contributions fit in shared memory; rows into
// pieces whose terms fit (merge.cuh). The edges from one tile to one piece are a run. Edges are stored in two orders;
// the edges of a run are contiguous in both, in the same order:
//
//   by tile    tile 0: pieces 0, 1, 2 ...    tile 1: pieces 0, 1, 2 ...    in which contributions are read
//   by piece   piece 0: tiles 0, 1, 2 ...    piece 1: tiles 0, 1, 2 ...    in which terms are scattered to their rows
//
// so that 16 bits suffice for each index: the source is one of the tile's vertices, the target edge one of the piece's.
// Runs are padded to chunks of CHUNK edges, a memory sector of floats. A padding edge reads the first vertex of the
// tile, and writes to an entry after those of the largest piece. Chunks are moved as a whole:
//
//   tile_sources[e]    by tile: index of the source in the tile
//   chunk_by_piece[c]  of a chunk by tile: its index by piece
//   begins[p]          first chunk of piece p, by piece; the last entry is the number of chunks
//   piece_edges[e]     by piece: index of the edge in the piece, in the order of the rows

#define CHUNK 8
