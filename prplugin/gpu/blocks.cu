// Layout of edges in blocks, computed once per graph from endpoints in any order: see blocks.cuh. Two partitions, by
// tile of the source and then by piece of the target; each needs its counts beforehand.
//
// Mapping: `count_tiles`: all threads of the grid over the sources. `by_tile`: one block per BATCH edges, which it
// partitions in shared memory and writes to room that it reserves in each tile. `count_cells`, `by_piece` and
// `in_degrees`: equally many edges per block, of several tiles or pieces one after another. `cell_chunks`: one block per
// tile, and per piece. `finish_cells`: LANES threads per cell.
// Memory: endpoints read once by `by_tile`, sources once more for the counts; `by_tile` writes 6 bytes per edge;
// `count_cells` reads 6, `by_piece` reads 6 and writes 4, `in_degrees` reads 2.5, `finish_cells` writes half a byte.
// 16 bytes per cell.
// Wins: always; it moves an edge twice, where sorting by target moves it three or four times.
//
//   id_t    int, unsigned int, long long or unsigned long long
//   real_t  float or double: the type of normalized weights
//   ORDER  0 1
// ORDER: whether the edges' positions move along, to arrange weights.

#include "block_scan.cuh"
#include "blocks.cuh"
#include "ids.cuh"
#include "marks.cuh"

#define PARTITIONING 1024       // threads per block of `by_tile` and `by_piece`
#define ITEMS (ORDER ? 8 : 16)  // edges per thread
#define BATCH (PARTITIONING * ITEMS)
#define COPIES 4  // of the counts in shared memory, so that fewer threads wait for one another
#define LANES 8

__device__ inline unsigned place_of(id_t id, wide_t low) { return static_cast<unsigned>(distance(id, low)); }

__device__ inline unsigned chunks_of(unsigned edges) { return (edges + CHUNK - 1) / CHUNK; }

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

// Writes the number of edges before each tile, and m. `begins` must be zeroed, with an entry more that counts blocks.
extern "C" __global__ void __launch_bounds__(1024)
    count_tiles(long long m, const id_t *sources, wide_t low, int tile_bits, int tiles, unsigned *begins) {
    extern __shared__ unsigned counts[];
    for (int at = threadIdx.x; at < COPIES * tiles; at += blockDim.x) counts[at] = 0;
    __syncthreads();
    unsigned *mine = counts + threadIdx.x / WARP % COPIES * tiles;
    each(sources, m, [=](id_t id, long long) { atomicAdd(mine + (place_of(id, low) >> tile_bits), 1u); });
    __syncthreads();
    for (int tile = threadIdx.x; tile < tiles; tile += blockDim.x) {
        unsigned count = 0;
        for (int copy = 0; copy < COPIES; ++copy) count += counts[copy * tiles + tile];
        if (count) atomicAdd(begins + tile, count);
    }
    if (is_last_block(begins + tiles + 1)) scan_in_place(begins, tiles);
}

// Counts this thread's item in its bin, and returns the number of items counted there before. Whole warps must call it.
// Where all lanes have the same bin, as in sorted columns, one addition serves all.
__device__ inline unsigned counted(unsigned *counts, bool valid, unsigned bin) {
    unsigned lanes = __ballot_sync(0xffffffffu, valid), lane = threadIdx.x % WARP, before = 0;
    int leader = __ffs(lanes) - 1;
    unsigned first = __shfl_sync(0xffffffffu, bin, leader);
    if (!__all_sync(0xffffffffu, !valid || bin == first)) return valid ? atomicAdd(counts + bin, 1u) : 0;
    if (lane == leader) before = atomicAdd(counts + bin, static_cast<unsigned>(__popc(lanes)));
    return __shfl_sync(0xffffffffu, before, leader) + __popc(lanes & ((1u << lane) - 1));
}

// Partitions the edges by tile. `ends` are the numbers of edges before each tile, and are advanced to its end.
extern "C" __global__ void __launch_bounds__(PARTITIONING)
    by_tile(long long m, const id_t *sources, const id_t *targets, wide_t low, int tile_bits, int tiles, unsigned *ends,
            unsigned short *sources_out, unsigned *targets_out, unsigned *edges_out) {
    extern __shared__ unsigned smem[];
    unsigned *begins = smem, *shifts = begins + tiles + 1, *held_sources = shifts + tiles;
    unsigned *held_targets = held_sources + BATCH, *held_edges = held_targets + BATCH;
    long long first = static_cast<long long>(blockIdx.x) * BATCH;
    int count = static_cast<int>(min(static_cast<long long>(BATCH), m - first));
    for (int tile = threadIdx.x; tile < tiles; tile += PARTITIONING) begins[tile] = 0;
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
        rank[k] = counted(begins, k * PARTITIONING + threadIdx.x < count, source[k] >> tile_bits);
    }
    __syncthreads();
    for (int tile = threadIdx.x; tile < tiles; tile += PARTITIONING) {
        unsigned here = begins[tile];
        shifts[tile] = here ? atomicAdd(ends + tile, here) : 0;
    }
    __syncthreads();
    scan_in_place(begins, tiles);
    for (int tile = threadIdx.x; tile < tiles; tile += PARTITIONING) shifts[tile] -= begins[tile];
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
        if (k * PARTITIONING + threadIdx.x < count) {
            unsigned at = begins[source[k] >> tile_bits] + rank[k];
            held_sources[at] = source[k];
            held_targets[at] = target[k];
            if (ORDER) held_edges[at] = static_cast<unsigned>(first) + k * PARTITIONING + threadIdx.x;
        }
    }
    __syncthreads();
    for (int at = threadIdx.x; at < count; at += PARTITIONING) {
        unsigned tile = held_sources[at] >> tile_bits, to = shifts[tile] + at;
        sources_out[to] = static_cast<unsigned short>(held_sources[at] - (tile << tile_bits));
        targets_out[to] = held_targets[at];
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

// Adds the counts of a group that are not 0 to `to`.
__device__ inline void add_counts(const unsigned *counts, int count, unsigned *to) {
    for (int at = threadIdx.x; at < count; at += blockDim.x) {
        if (counts[at]) atomicAdd(to + at, counts[at]);
    }
}

// Adds the number of edges of each cell to `cells`, by tile and then by piece, and those from each place to
// `out_degrees`.
extern "C" __global__ void __launch_bounds__(1024)
    count_cells(int tile_bits, int piece_bits, int tiles, int pieces, const unsigned *begins,
                const unsigned short *sources, const unsigned *targets, unsigned *cells, unsigned *out_degrees) {
    extern __shared__ unsigned counts[];  // by piece, then by source
    each_group(tiles, begins, [&](int tile, long long begin, long long end) {
        int size = 1 << tile_bits;
        for (int at = threadIdx.x; at < pieces + size; at += blockDim.x) counts[at] = 0;
        __syncthreads();
        for (long long base = begin + threadIdx.x; base < end; base += LOADS_IN_FLIGHT * blockDim.x) {
            unsigned target[LOADS_IN_FLIGHT];
            unsigned short source[LOADS_IN_FLIGHT];
#pragma unroll
            for (int k = 0; k < LOADS_IN_FLIGHT; ++k) {
                long long at = min(base + k * blockDim.x, end - 1);
                source[k] = sources[at];
                target[k] = targets[at];
            }
#pragma unroll
            for (int k = 0; k < LOADS_IN_FLIGHT; ++k) {
                if (base + k * blockDim.x < end) {
                    atomicAdd(counts + (target[k] >> piece_bits), 1u);
                    atomicAdd(counts + pieces + source[k], 1u);
                }
            }
        }
        __syncthreads();
        add_counts(counts, pieces, cells + static_cast<long long>(tile) * pieces);
        add_counts(counts + pieces, size, out_degrees + static_cast<long long>(tile) * size);
        __syncthreads();
    });
}

// Writes the number of chunks of the tile before each cell, and of its piece; and to `tile_begins` and `piece_begins`
// the number of chunks before each, and of all. `done` must be zeroed.
extern "C" __global__ void __launch_bounds__(1024)
    cell_chunks(int tiles, int pieces, const unsigned *cells, unsigned *in_tile, unsigned *in_piece,
                unsigned *tile_begins, unsigned *piece_begins, unsigned *done) {
    bool is_tile = blockIdx.x < tiles;
    int group = is_tile ? blockIdx.x : blockIdx.x - tiles, count = is_tile ? pieces : tiles;
    long long first = is_tile ? static_cast<long long>(group) * pieces : group, step = is_tile ? 1 : pieces;
    unsigned *to = is_tile ? in_tile : in_piece, sum = 0;
    for (int base = 0; base < count; base += blockDim.x) {
        int at = base + threadIdx.x;
        long long cell = first + at * step;
        unsigned all, before = block_scan(at < count ? chunks_of(cells[cell]) : 0, &all);
        if (at < count) to[cell] = sum + before;
        sum += all;
    }
    if (threadIdx.x == 0) (is_tile ? tile_begins : piece_begins)[group] = sum;
    if (!is_last_block(done)) return;
    scan_in_place(tile_begins, tiles);
    scan_in_place(piece_begins, pieces);
}

// Partitions the edges of each tile by piece. `filled` must be zeroed, and counts the edges of cells.
extern "C" __global__ void __launch_bounds__(PARTITIONING)
    by_piece(int piece_bits, int tiles, int pieces, const unsigned *begins, const unsigned short *sources,
             const unsigned *targets, const unsigned *edges, const unsigned *in_tile, const unsigned *tile_begins,
             unsigned *filled, unsigned short *tile_sources, unsigned short *piece_rows, unsigned *edges_out) {
    extern __shared__ unsigned smem[];
    unsigned *starts = smem, *shifts = starts + pieces + 1, *held_targets = shifts + pieces;
    unsigned *held_edges = held_targets + BATCH;
    unsigned short *held_sources = reinterpret_cast<unsigned short *>(held_edges + (ORDER ? BATCH : 0));
    each_group(tiles, begins, [&](int tile, long long group_begin, long long end) {
        for (long long first = group_begin; first < end; first += BATCH) {
            int count = static_cast<int>(min(static_cast<long long>(BATCH), end - first));
            for (int piece = threadIdx.x; piece < pieces; piece += PARTITIONING) starts[piece] = 0;
            __syncthreads();
            unsigned target[ITEMS], edge[ORDER ? ITEMS : 1];
            unsigned short source[ITEMS], rank[ITEMS];
#pragma unroll
            for (int k = 0; k < ITEMS; ++k) {
                long long at = first + min(k * PARTITIONING + static_cast<int>(threadIdx.x), count - 1);
                source[k] = sources[at];
                target[k] = targets[at];
                if (ORDER) edge[k] = edges[at];
            }
#pragma unroll
            for (int k = 0; k < ITEMS; ++k) {
                rank[k] = counted(starts, k * PARTITIONING + threadIdx.x < count, target[k] >> piece_bits);
            }
            __syncthreads();
            for (int piece = threadIdx.x; piece < pieces; piece += PARTITIONING) {
                unsigned here = starts[piece];
                long long cell = static_cast<long long>(tile) * pieces + piece;
                if (here) shifts[piece] = (tile_begins[tile] + in_tile[cell]) * CHUNK + atomicAdd(filled + cell, here);
            }
            __syncthreads();
            scan_in_place(starts, pieces);
#pragma unroll
            for (int k = 0; k < ITEMS; ++k) {
                if (k * PARTITIONING + threadIdx.x < count) {
                    unsigned at = starts[target[k] >> piece_bits] + rank[k];
                    held_targets[at] = target[k];
                    held_sources[at] = source[k];
                    if (ORDER) held_edges[at] = edge[k];
                }
            }
            __syncthreads();
            for (int at = threadIdx.x; at < count; at += PARTITIONING) {
                unsigned piece = held_targets[at] >> piece_bits, to = shifts[piece] + at - starts[piece];
                tile_sources[to] = held_sources[at];
                piece_rows[to] = static_cast<unsigned short>(held_targets[at] - (piece << piece_bits));
                if (ORDER) edges_out[to] = held_edges[at];
            }
            __syncthreads();
        }
    });
}

// Pads each cell, and writes where its chunks are in the order by tile. Positions of padding edges are `m`.
extern "C" __global__ void finish_cells(int tile_bits, int piece_bits, int tiles, int pieces, unsigned m,
                                        const unsigned *cells, const unsigned *in_tile, const unsigned *in_piece,
                                        const unsigned *tile_begins, const unsigned *piece_begins,
                                        unsigned *chunk_by_tile, unsigned short *tile_sources,
                                        unsigned short *piece_rows, unsigned *edges) {
    long long cell = this_thread() / LANES;
    if (cell >= static_cast<long long>(tiles) * pieces) return;
    unsigned count = cells[cell], chunks = chunks_of(count), lane = this_thread() % LANES;
    unsigned at = tile_begins[cell / pieces] + in_tile[cell], from = piece_begins[cell % pieces] + in_piece[cell];
    for (unsigned chunk = lane; chunk < chunks; chunk += LANES) chunk_by_tile[from + chunk] = at + chunk;
    if (count + lane >= chunks * CHUNK) return;
    long long pad = static_cast<long long>(at) * CHUNK + count + lane;
    tile_sources[pad] = static_cast<unsigned short>(1 << tile_bits);
    piece_rows[pad] = static_cast<unsigned short>(1 << piece_bits);
    if (ORDER) edges[pad] = m;
}

// Adds the number of edges into each place to `in_degrees`.
extern "C" __global__ void __launch_bounds__(1024)
    in_degrees(int piece_bits, int pieces, const unsigned *piece_begins, const unsigned *chunk_by_tile,
               const unsigned short *piece_rows, unsigned *in_degrees) {
    extern __shared__ unsigned counts[];  // by row, and of padding
    each_group(pieces, piece_begins, [&](int piece, long long begin, long long end) {
        int size = 1 << piece_bits;
        for (int row = threadIdx.x; row <= size; row += blockDim.x) counts[row] = 0;
        __syncthreads();
        const uint4 *chunks = reinterpret_cast<const uint4 *>(piece_rows);
        for (long long chunk = begin + threadIdx.x; chunk < end; chunk += 4 * blockDim.x) {
            uint4 some[4];
#pragma unroll
            for (int k = 0; k < 4; ++k) some[k] = chunks[chunk_by_tile[min(chunk + k * blockDim.x, end - 1)]];
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                if (chunk + k * blockDim.x >= end) continue;
                for (unsigned pair : {some[k].x, some[k].y, some[k].z, some[k].w}) {
                    atomicAdd(counts + (pair & 0xffff), 1u);
                    atomicAdd(counts + (pair >> 16), 1u);
                }
            }
        }
        __syncthreads();
        add_counts(counts, size, in_degrees + static_cast<long long>(piece) * size);
        __syncthreads();
    });
}

// Arranges normalized weights in the order by tile; padding gets 0.
extern "C" __global__ void arrange_normalized_weights(long long count, unsigned m, const unsigned *edges,
                                                      const real_t *normalized_weights, real_t *arranged) {
    each(edges, count, [=](unsigned edge, long long at) {
        arranged[at] = edge == m ? real_t(0) : normalized_weights[edge];
    });
}

// Writes the endpoints of all edges by position, with n as the target of padding.
extern "C" __global__ void endpoints(unsigned chunks, int tile_bits, int piece_bits, int tiles, int pieces, int n,
                                     const Marks *marks, const unsigned *tile_begins, const unsigned *piece_begins,
                                     const unsigned *chunk_by_tile, const unsigned short *tile_sources,
                                     const unsigned short *piece_rows, int *sources, int *targets) {
    each(chunk_by_tile, chunks, [=](unsigned chunk, long long place) {
        long long tile = group_of(chunk, tiles, tile_begins), piece = group_of(place, pieces, piece_begins);
        for (long long edge = static_cast<long long>(chunk) * CHUNK, k = 0; k < CHUNK; ++edge, ++k) {
            bool real = piece_rows[edge] != 1 << piece_bits;
            long long source = (tile << tile_bits) + tile_sources[edge], target = (piece << piece_bits) + piece_rows[edge];
            sources[edge] = real ? marks[source / 32].rank(source) : 0;
            targets[edge] = real ? marks[target / 32].rank(target) : n;
        }
    });
}
