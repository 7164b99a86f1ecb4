// Layout of edges in blocks, computed once per graph from endpoints in any order: see blocks.cuh. Two partitions, by
// piece of the target and then by tile of the source; each needs its counts beforehand.
//
// Mapping: `count_pieces`: all threads of the grid over the targets. `by_piece`: one block per BATCH edges, which it
// partitions in shared memory and writes to room that it reserves in each piece. `count_cells`, `by_tile` and
// `out_degrees`: equally many edges per block, of several pieces or tiles one after another. `cell_chunks`: one block per
// piece, and per tile. `finish_cells`: LANES threads per cell.
// Memory: endpoints read once for the counts and once by `by_piece`, which writes 6 bytes per edge; `count_cells` reads
// 6, `by_tile` reads 6 and writes 4, `out_degrees` reads 2, `finish_cells` writes half a byte. A cell has 16 bytes.
// Wins: always; it moves an edge twice, where sorting by target moves it three or four times.
//
//   id_t    int, unsigned int, long long or unsigned long long
//   real_t  float or double: the type of normalized weights
//   TILE  32 24000
//   PIECE  32 12000
//   ORDER  0 1
// ORDER: whether the edges' positions move along, to arrange weights.

#include "block_scan.cuh"
#include "blocks.cuh"
#include "ids.cuh"
#include "marks.cuh"

#define PARTITIONING 1024       // threads per block of `by_piece` and `by_tile`
#define ITEMS (ORDER ? 8 : 16)  // edges per thread
#define BATCH (PARTITIONING * ITEMS)
#define COPIES 4  // of the counts in shared memory, so that fewer threads wait for one another
#define LANES 8

__device__ inline unsigned place_of(id_t id, wide_t low) { return static_cast<unsigned>(distance(id, low)); }

// Replaces entries 0..count-1 by their exclusive prefix sums, the next entry by their sum. One block must call it.
template <typename T>
__device__ inline void scan_in_place(T *entries, int count) {
    T sum = 0;
    for (int first = 0; first < count; first += blockDim.x) {
        int at = first + threadIdx.x;
        T value = at < count ? entries[at] : 0, all, before = block_scan(value, &all);
        if (at < count) entries[at] = sum + before;
        sum += all;
    }
    if (threadIdx.x == 0) entries[count] = sum;
    __syncthreads();
}

// Whether this block is the last of the grid to get here; what others wrote before is then visible to it.
__device__ inline bool is_last_block(unsigned *done) {
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(done, 1u) == gridDim.x - 1;
    __syncthreads();
    __threadfence();
    return last;
}

// Writes the number of edges before each piece, and m. `begins` must be zeroed, with an entry more that counts blocks.
extern "C" __global__ void __launch_bounds__(1024)
    count_pieces(long long m, const id_t *targets, wide_t low, int pieces, unsigned *begins) {
    extern __shared__ unsigned counts[];
    for (int at = threadIdx.x; at < COPIES * pieces; at += blockDim.x) counts[at] = 0;
    __syncthreads();
    unsigned *mine = counts + threadIdx.x / WARP % COPIES * pieces;
    each(targets, m, [=](id_t id, long long) { atomicAdd(mine + place_of(id, low) / PIECE, 1u); });
    __syncthreads();
    for (int piece = threadIdx.x; piece < pieces; piece += blockDim.x) {
        unsigned count = 0;
        for (int copy = 0; copy < COPIES; ++copy) count += counts[copy * pieces + piece];
        if (count) atomicAdd(begins + piece, count);
    }
    if (is_last_block(begins + pieces + 1)) scan_in_place(begins, pieces);
}

// Counts this thread's item in its bin, and returns the number of items counted there before. Whole warps must call it.
// Where all lanes have the same bin, as in sorted columns, one addition serves all.
__device__ inline unsigned counted(unsigned *counts, bool valid, unsigned bin) {
    unsigned lanes = __ballot_sync(0xffffffffu, valid), lane = threadIdx.x % WARP, before = 0;
    unsigned first = __shfl_sync(0xffffffffu, bin, __ffs(lanes) - 1);
    if (__all_sync(0xffffffffu, !valid || bin == first)) {
        if (lanes && lane == __ffs(lanes) - 1) before = atomicAdd(counts + bin, static_cast<unsigned>(__popc(lanes)));
        return __shfl_sync(0xffffffffu, before, __ffs(lanes) - 1) + __popc(lanes & ((1u << lane) - 1));
    }
    return valid ? atomicAdd(counts + bin, 1u) : 0;
}

// Partitions the edges by piece. `ends` are the numbers of edges before each piece, and are advanced to its end.
extern "C" __global__ void __launch_bounds__(PARTITIONING)
    by_piece(long long m, const id_t *sources, const id_t *targets, wide_t low, int pieces, unsigned *ends,
             unsigned *sources_out, unsigned short *rows_out, unsigned *edges_out) {
    extern __shared__ unsigned smem[];
    unsigned *begins = smem, *shifts = begins + pieces + 1, *held_sources = shifts + pieces;
    unsigned *held_targets = held_sources + BATCH, *held_edges = held_targets + BATCH;
    long long first = static_cast<long long>(blockIdx.x) * BATCH;
    int count = static_cast<int>(min(static_cast<long long>(BATCH), m - first));
    for (int piece = threadIdx.x; piece < pieces; piece += PARTITIONING) begins[piece] = 0;
    __syncthreads();
    unsigned source[ITEMS], target[ITEMS];
    unsigned short rank[ITEMS];
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
        int at = min(k * PARTITIONING + static_cast<int>(threadIdx.x), count - 1);
        source[k] = place_of(sources[first + at], low);
        target[k] = place_of(targets[first + at], low);
    }
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
        rank[k] = counted(begins, k * PARTITIONING + threadIdx.x < count, target[k] / PIECE);
    }
    __syncthreads();
    for (int piece = threadIdx.x; piece < pieces; piece += PARTITIONING) {
        unsigned here = begins[piece];
        shifts[piece] = here ? atomicAdd(ends + piece, here) : 0;
    }
    __syncthreads();
    scan_in_place(begins, pieces);
    for (int piece = threadIdx.x; piece < pieces; piece += PARTITIONING) shifts[piece] -= begins[piece];
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
        if (k * PARTITIONING + threadIdx.x < count) {
            unsigned at = begins[target[k] / PIECE] + rank[k];
            held_sources[at] = source[k];
            held_targets[at] = target[k];
            if (ORDER) held_edges[at] = static_cast<unsigned>(first) + k * PARTITIONING + threadIdx.x;
        }
    }
    __syncthreads();
    for (int at = threadIdx.x; at < count; at += PARTITIONING) {
        unsigned piece = held_targets[at] / PIECE, to = shifts[piece] + at;
        sources_out[to] = held_sources[at];
        rows_out[to] = static_cast<unsigned short>(held_targets[at] - piece * PIECE);
        if (ORDER) edges_out[to] = held_edges[at];
    }
}

// The last group that begins at or before an item.
__device__ inline int group_of(long long item, int groups, const unsigned *begins) {
    int group = 0;
    for (int past = groups; past - group > 1;) {
        int middle = (group + past) / 2;
        if (begins[middle] <= item) group = middle; else past = middle;
    }
    return group;
}

// Calls work(group, begin, end) for the parts of a range of equally many items per block that lie in one group each;
// `begins` are those of the groups, and the end of the last.
template <typename Work>
__device__ inline void each_group(int groups, const unsigned *begins, Work work) {
    long long items = begins[groups], begin = items * blockIdx.x / gridDim.x;
    long long end = items * (blockIdx.x + 1) / gridDim.x;
    for (int group = group_of(begin, groups, begins); begin < end; ++group) {
        long long here = min(end, static_cast<long long>(begins[group + 1]));
        if (begin < here) work(group, begin, here);
        begin = here;
    }
}

// Adds the number of edges of each cell to `cells`, by piece and then by tile, and those into each place to `in_degrees`.
extern "C" __global__ void __launch_bounds__(1024)
    count_cells(int pieces, int tiles, const unsigned *begins, const unsigned *sources, const unsigned short *rows,
                unsigned *cells, unsigned *in_degrees) {
    extern __shared__ unsigned counts[];  // by tile, then by row
    each_group(pieces, begins, [&](int piece, long long begin, long long end) {
        for (int at = threadIdx.x; at < tiles + PIECE; at += blockDim.x) counts[at] = 0;
        __syncthreads();
        for (long long base = begin + threadIdx.x; base < end; base += LOADS_IN_FLIGHT * blockDim.x) {
            unsigned source[LOADS_IN_FLIGHT];
            unsigned short row[LOADS_IN_FLIGHT];
#pragma unroll
            for (int k = 0; k < LOADS_IN_FLIGHT; ++k) {
                long long at = min(base + k * blockDim.x, end - 1);
                source[k] = sources[at];
                row[k] = rows[at];
            }
#pragma unroll
            for (int k = 0; k < LOADS_IN_FLIGHT; ++k) {
                if (base + k * blockDim.x < end) {
                    atomicAdd(counts + source[k] / TILE, 1u);
                    atomicAdd(counts + tiles + row[k], 1u);
                }
            }
        }
        __syncthreads();
        unsigned *to = cells + static_cast<long long>(piece) * tiles;
        for (int tile = threadIdx.x; tile < tiles; tile += blockDim.x) {
            if (counts[tile]) atomicAdd(to + tile, counts[tile]);
        }
        unsigned *degrees = in_degrees + static_cast<long long>(piece) * PIECE;
        for (int row = threadIdx.x; row < PIECE; row += blockDim.x) {
            if (counts[tiles + row]) atomicAdd(degrees + row, counts[tiles + row]);
        }
        __syncthreads();
    });
}

__device__ inline unsigned chunks_of(unsigned edges) { return (edges + CHUNK - 1) / CHUNK; }

// Writes the number of chunks of the piece before each cell, and of its tile; and to `piece_begins` and `tile_begins`
// the number of chunks before each, and of all. `done` must be zeroed.
extern "C" __global__ void __launch_bounds__(1024)
    cell_chunks(int pieces, int tiles, const unsigned *cells, unsigned *in_piece, unsigned *in_tile,
                unsigned *piece_begins, unsigned *tile_begins, unsigned *done) {
    bool is_piece = blockIdx.x < pieces;
    int group = is_piece ? blockIdx.x : blockIdx.x - pieces, count = is_piece ? tiles : pieces;
    long long first = is_piece ? static_cast<long long>(group) * tiles : group, step = is_piece ? 1 : tiles;
    unsigned *to = is_piece ? in_piece : in_tile, sum = 0;
    for (int base = 0; base < count; base += blockDim.x) {
        int at = base + threadIdx.x;
        long long cell = first + at * step;
        unsigned all, before = block_scan(at < count ? chunks_of(cells[cell]) : 0, &all);
        if (at < count) to[cell] = sum + before;
        sum += all;
    }
    if (threadIdx.x == 0) (is_piece ? piece_begins : tile_begins)[group] = sum;
    if (!is_last_block(done)) return;
    scan_in_place(piece_begins, pieces);
    scan_in_place(tile_begins, tiles);
}

// Partitions the edges of each piece by tile, into both orders. `filled` must be zeroed, and counts the edges of cells.
extern "C" __global__ void __launch_bounds__(PARTITIONING)
    by_tile(int pieces, int tiles, const unsigned *begins, const unsigned *sources, const unsigned short *rows,
            const unsigned *edges, const unsigned *in_piece, const unsigned *in_tile, const unsigned *piece_begins,
            const unsigned *tile_begins, unsigned *filled, unsigned short *tile_sources, unsigned short *piece_rows,
            unsigned *piece_edges) {
    extern __shared__ unsigned smem[];
    unsigned *starts = smem, *to_tile = starts + tiles + 1, *to_piece = to_tile + tiles;
    unsigned *held_sources = to_piece + tiles, *held_edges = held_sources + BATCH;
    unsigned short *held_rows = reinterpret_cast<unsigned short *>(held_edges + (ORDER ? BATCH : 0));
    each_group(pieces, begins, [&](int piece, long long group_begin, long long end) {
        for (long long first = group_begin; first < end; first += BATCH) {
            int count = static_cast<int>(min(static_cast<long long>(BATCH), end - first));
            for (int tile = threadIdx.x; tile < tiles; tile += PARTITIONING) starts[tile] = 0;
            __syncthreads();
            unsigned source[ITEMS], edge[ORDER ? ITEMS : 1];
            unsigned short row[ITEMS], rank[ITEMS];
#pragma unroll
            for (int k = 0; k < ITEMS; ++k) {
                long long at = first + min(k * PARTITIONING + static_cast<int>(threadIdx.x), count - 1);
                source[k] = sources[at];
                row[k] = rows[at];
                if (ORDER) edge[k] = edges[at];
            }
#pragma unroll
            for (int k = 0; k < ITEMS; ++k) {
                rank[k] = counted(starts, k * PARTITIONING + threadIdx.x < count, source[k] / TILE);
            }
            __syncthreads();
            for (int tile = threadIdx.x; tile < tiles; tile += PARTITIONING) {
                unsigned here = starts[tile];
                long long cell = static_cast<long long>(piece) * tiles + tile;
                unsigned before = here ? atomicAdd(filled + cell, here) : 0;
                to_tile[tile] = (tile_begins[tile] + in_tile[cell]) * CHUNK + before;
                to_piece[tile] = (piece_begins[piece] + in_piece[cell]) * CHUNK + before;
            }
            __syncthreads();
            scan_in_place(starts, tiles);
#pragma unroll
            for (int k = 0; k < ITEMS; ++k) {
                if (k * PARTITIONING + threadIdx.x < count) {
                    unsigned at = starts[source[k] / TILE] + rank[k];
                    held_sources[at] = source[k];
                    held_rows[at] = row[k];
                    if (ORDER) held_edges[at] = edge[k];
                }
            }
            __syncthreads();
            for (int at = threadIdx.x; at < count; at += PARTITIONING) {
                unsigned tile = held_sources[at] / TILE, place = at - starts[tile];
                tile_sources[to_tile[tile] + place] = static_cast<unsigned short>(held_sources[at] - tile * TILE);
                piece_rows[to_piece[tile] + place] = held_rows[at];
                if (ORDER) piece_edges[to_piece[tile] + place] = held_edges[at];
            }
            __syncthreads();
        }
    });
}

// Pads each cell, and writes where its chunks are in the order by piece. Positions of padding edges are `m`.
extern "C" __global__ void finish_cells(int pieces, int tiles, unsigned m, const unsigned *cells,
                                        const unsigned *in_piece, const unsigned *in_tile, const unsigned *piece_begins,
                                        const unsigned *tile_begins, unsigned *chunk_by_piece,
                                        unsigned short *tile_sources, unsigned short *piece_rows, unsigned *piece_edges) {
    long long cell = this_thread() / LANES;
    if (cell >= static_cast<long long>(pieces) * tiles) return;
    unsigned edges = cells[cell], chunks = chunks_of(edges), lane = this_thread() % LANES;
    unsigned from = tile_begins[cell % tiles] + in_tile[cell], to = piece_begins[cell / tiles] + in_piece[cell];
    for (unsigned chunk = lane; chunk < chunks; chunk += LANES) chunk_by_piece[from + chunk] = to + chunk;
    unsigned pad = edges + lane;
    if (pad >= chunks * CHUNK) return;
    tile_sources[static_cast<long long>(from) * CHUNK + pad] = TILE;
    piece_rows[static_cast<long long>(to) * CHUNK + pad] = PIECE;
    if (ORDER) piece_edges[static_cast<long long>(to) * CHUNK + pad] = m;
}

// Adds the number of edges from each place to `out_degrees`.
extern "C" __global__ void __launch_bounds__(1024)
    out_degrees(int tiles, const unsigned *tile_begins, const unsigned short *tile_sources, unsigned *out_degrees) {
    extern __shared__ unsigned counts[];
    each_group(tiles, tile_begins, [&](int tile, long long begin, long long end) {
        for (int source = threadIdx.x; source <= TILE; source += blockDim.x) counts[source] = 0;
        __syncthreads();
        const uint4 *chunks = reinterpret_cast<const uint4 *>(tile_sources);
        for (long long chunk = begin + threadIdx.x; chunk < end; chunk += 2 * blockDim.x) {
            uint4 some[2] = {chunks[chunk], chunks[min(chunk + blockDim.x, end - 1)]};
#pragma unroll
            for (int k = 0; k < 2; ++k) {
                if (chunk + k * blockDim.x >= end) continue;
                for (unsigned pair : {some[k].x, some[k].y, some[k].z, some[k].w}) {
                    atomicAdd(counts + (pair & 0xffff), 1u);
                    atomicAdd(counts + (pair >> 16), 1u);
                }
            }
        }
        __syncthreads();
        for (int source = threadIdx.x; source < TILE; source += blockDim.x) {
            if (counts[source]) atomicAdd(out_degrees + static_cast<long long>(tile) * TILE + source, counts[source]);
        }
        __syncthreads();
    });
}

// Arranges normalized weights by piece; padding gets 0.
extern "C" __global__ void arrange_normalized_weights(long long count, unsigned m, const unsigned *piece_edges,
                                                      const real_t *normalized_weights, real_t *arranged) {
    each(piece_edges, count, [=](unsigned edge, long long at) {
        arranged[at] = edge == m ? real_t(0) : normalized_weights[edge];
    });
}

// Writes the endpoints of all edges by position, with n as the target of padding.
extern "C" __global__ void endpoints(unsigned chunks, int pieces, int tiles, int n, const Marks *marks,
                                     const unsigned *piece_begins, const unsigned *tile_begins,
                                     const unsigned short *tile_sources, const unsigned *chunk_by_piece,
                                     const unsigned short *piece_rows, int *sources, int *targets) {
    each(chunk_by_piece, chunks, [=](unsigned to, long long chunk) {
        long long tile = group_of(chunk, tiles, tile_begins);
        long long piece = group_of(to, pieces, piece_begins);
        for (int k = 0; k < CHUNK; ++k) {
            long long edge = chunk * CHUNK + k;
            unsigned short row = piece_rows[static_cast<long long>(to) * CHUNK + k];
            long long source = tile * TILE + tile_sources[edge], target = piece * PIECE + row;
            sources[edge] = row == PIECE ? 0 : marks[source / 32].rank(source);
            targets[edge] = row == PIECE ? n : marks[target / 32].rank(target);
        }
    });
}
