// Edges in blocks, from tiles of sources to pieces of rows: propagation blocking, after S. Beamer, K. Asanovic and
// D. Patterson, "Reducing PageRank communication via propagation blocking", IPDPS 2017.
//
// Sources are cut into tiles of consecutive vertices, whose contributions fit shared memory; rows into pieces, whose
// terms do (merge.cuh). The edges from one tile to one piece are a run. Edges are numbered in two orders, and the edges
// of a run are neighbours in both, in the same order:
//
//   by tile    tile 0: pieces 0, 1, 2 ...    tile 1: pieces 0, 1, 2 ...    in which contributions are read
//   by piece   piece 0: tiles 0, 1, 2 ...    piece 1: tiles 0, 1, 2 ...    in which terms are brought to their rows
//
// so that no edge needs an index of more than 16 bits: its source is one of the tile's, its row one of the piece's. Runs
// are filled up to chunks of CHUNK edges, a sector of memory of floats, with edges that are none: they leave the first
// vertex of the tile, and no row has the place they go to, one past those of the largest piece. A chunk is moved as a
// whole:
//
//   locals[e]  by tile: which vertex of the tile is the source
//   goals[c]   of a chunk by tile: which it is by piece
//   begins[p]  the first chunk of piece p by piece, and how many there are
//   spots[e]   by piece: which edge of the piece it is, as the rows have them

#define CHUNK 8
