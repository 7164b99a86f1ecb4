// Layout of edges in blocks, computed once per graph from endpoints in any order: see blocks.cuh. Two partitions, by
// tile of the source and then by piece of the target; each needs its counts beforehand.
//
// Mapping: `by_tile` and `by_piece`: one block per BATCH edges, of one tile, which it partitions in shared memory; it
// writes them to room that it reserves in each bin, next to that of the blocks that run beside it, so that the L2 cache
// merges what they write. `count_cells` and `in_degrees`: equally many edges per block, of several tiles or pieces one
// after another. `cell_chunks`: one block per tile, and per piece. `place_cells`: one thread per cell; `finish_cells`:
// at least CHUNK threads, more where cells are few.
// Memory: endpoints read once by `by_tile`, sources once more for the counts; `by_tile` writes 6 bytes per edge;
// `count_cells` reads 6, `by_piece` reads 6 and writes 4, `in_degrees` reads 2, `finish_cells` writes half a byte.
// 12 bytes per cell.
// Wins: always; it moves an edge twice, where sorting by target moves it three or four times.
//
//   id_t    int, unsigned int, long long or unsigned long long
//   real_t  float or double: the type of normalized weights
//   ORDER  0 1
//   ITEMS  16 1
// ORDER: whether the edges' positions move along, to arrange weights. ITEMS: edges per thread of a partition.

#include "block_scan.cuh"
#include "blocks.cuh"
#include "ids.cuh"
#include "last_block.cuh"
#include "marks.cuh"

#define PARTITIONING 1024  // threads per block of `by_tile` and `by_piece`
#define BATCH (PARTITIONING * ITEMS)
#define COPIES 4  // of the counts in shared memory, so that fewer threads wait for one another

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

// Writes the number of edges before each tile, and m, to `begins` and `next`; and to `batches` the number of batches
// before each tile, and of all. `begins` must be zeroed; its last entry counts blocks.
extern "C" __global__ void __launch_bounds__(1024)
    count_tiles(long long m, const id_t *sources, wide_t low, int tile_bits, int tiles, unsigned *begins,
                unsigned *next, unsigned *batches) {
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
    if (!is_last_block(begins + tiles + 1)) return;
    for (int tile = threadIdx.x; tile < tiles; tile += blockDim.x) batches[tile] = (begins[tile] + BATCH - 1) / BATCH;
    __syncthreads();
    scan_in_place(begins, tiles);
    scan_in_place(batches, tiles);
    for (int tile = threadIdx.x; tile < tiles; tile += blockDim.x) next[tile] = begins[tile];
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

struct Item {
    unsigned source, target, edge;
};

// Partitions at most BATCH items in shared memory. reserve(bin, count) returns where the items of a bin go, and
// store(bin, to, item) stores one.
template <typename Load, typename BinOf, typename Reserve, typename Store>
__device__ inline void partition(long long first, int count, int bins, unsigned *smem, Load load, BinOf bin_of,
                                 Reserve reserve, Store store) {
    unsigned *starts = smem, *shifts = starts + bins + 1;
    unsigned *sources = shifts + bins, *targets = sources + BATCH, *edges = targets + BATCH;
    for (int bin = threadIdx.x; bin < bins; bin += PARTITIONING) starts[bin] = 0;
    __syncthreads();
    Item items[ITEMS];
    unsigned short ranks[ITEMS];
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
        items[k] = load(first + min(k * PARTITIONING + static_cast<int>(threadIdx.x), count - 1));
    }
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
        ranks[k] = counted(starts, k * PARTITIONING + threadIdx.x < count, bin_of(items[k]));
    }
    __syncthreads();
    for (int bin = threadIdx.x; bin < bins; bin += PARTITIONING) {
        if (starts[bin]) shifts[bin] = reserve(bin, starts[bin]);
    }
    __syncthreads();
    scan_in_place(starts, bins);
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
        if (k * PARTITIONING + threadIdx.x < count) {
            unsigned at = starts[bin_of(items[k])] + ranks[k];
            sources[at] = items[k].source;
            targets[at] = items[k].target;
            if (ORDER) edges[at] = items[k].edge;
        }
    }
    __syncthreads();
    for (int at = threadIdx.x; at < count; at += PARTITIONING) {
        Item item = {sources[at], targets[at], ORDER ? edges[at] : 0};
        unsigned bin = bin_of(item);
        store(bin, shifts[bin] + at - starts[bin], item);
    }
}

// Partitions the edges by tile. `next` is the number of edges before each tile, and is advanced to its end.
extern "C" __global__ void __launch_bounds__(PARTITIONING)
    by_tile(long long m, const id_t *sources, const id_t *targets, wide_t low, int tile_bits, int tiles, unsigned *next,
            unsigned short *sources_out, unsigned *targets_out, unsigned *edges_out) {
    extern __shared__ unsigned smem[];
    long long first = static_cast<long long>(blockIdx.x) * BATCH;
    auto load = [=](long long at) -> Item {
        return {place_of(sources[at], low), place_of(targets[at], low), static_cast<unsigned>(at)};
    };
    auto tile_of = [=](const Item &item) { return item.source >> tile_bits; };
    auto reserve = [=](int tile, unsigned count) { return atomicAdd(next + tile, count); };
    int count = static_cast<int>(min(static_cast<long long>(BATCH), m - first));
    partition(first, count, tiles, smem, load, tile_of, reserve,
              [=](unsigned tile, unsigned to, const Item &item) {
                  sources_out[to] = static_cast<unsigned short>(item.source - (tile << tile_bits));
                  targets_out[to] = item.target;
                  if (ORDER) edges_out[to] = item.edge;
              });
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

// Replaces `in_tile` and `in_piece` by the place of a cell's first edge in the order by tile, and how much later that
// is in the order by piece.
extern "C" __global__ void place_cells(int tiles, int pieces, const unsigned *tile_begins, const unsigned *piece_begins,
                                       unsigned *in_tile, unsigned *in_piece) {
    long long cell = this_thread();
    if (cell >= static_cast<long long>(tiles) * pieces) return;
    in_tile[cell] = (tile_begins[cell / pieces] + in_tile[cell]) * CHUNK;
    in_piece[cell] = (piece_begins[cell % pieces] + in_piece[cell]) * CHUNK - in_tile[cell];
}

// The edges in both orders: see blocks.cuh.
struct Orders {
    unsigned short *tile_sources, *piece_rows;
    unsigned *piece_edges;
};

// Partitions the edges of each tile by piece, into both orders. `next` is the place of each cell's first edge by tile,
// and is advanced to its end.
extern "C" __global__ void __launch_bounds__(PARTITIONING)
    by_piece(int piece_bits, int tiles, int pieces, const unsigned *begins, const unsigned *batches,
             const unsigned short *sources, const unsigned *targets, const unsigned *edges, unsigned *next,
             const unsigned *later, const __grid_constant__ Orders orders) {
    extern __shared__ unsigned smem[];
    unsigned *shifts_later = smem, batch = blockIdx.x;
    if (batch >= batches[tiles]) return;
    int tile = group_of(batch, tiles, batches);
    unsigned first = begins[tile] + (batch - batches[tile]) * BATCH;
    int count = static_cast<int>(min(static_cast<unsigned>(BATCH), begins[tile + 1] - first));
    auto load = [=](long long at) -> Item { return {sources[at], targets[at], ORDER ? edges[at] : 0}; };
    auto piece_of = [=](const Item &item) { return item.target >> piece_bits; };
    auto reserve = [=](int piece, unsigned count) {
        long long cell = static_cast<long long>(tile) * pieces + piece;
        shifts_later[piece] = later[cell];
        return atomicAdd(next + cell, count);
    };
    partition(first, count, pieces, smem + pieces, load, piece_of, reserve,
              [=](unsigned piece, unsigned to, const Item &item) {
                  orders.tile_sources[to] = static_cast<unsigned short>(item.source);
                  to += shifts_later[piece];
                  orders.piece_rows[to] = static_cast<unsigned short>(item.target - (piece << piece_bits));
                  if (ORDER) orders.piece_edges[to] = item.edge;
              });
}

// Pads each cell, and writes where its chunks are in the order by piece, once its edges are in place. Positions of
// padding edges are `m`. `lanes`: threads per cell, at least CHUNK.
extern "C" __global__ void finish_cells(int tile_bits, int piece_bits, int lanes, long long cells, unsigned m,
                                        const unsigned *counts, const unsigned *next, const unsigned *later,
                                        unsigned *chunk_by_piece, const __grid_constant__ Orders orders) {
    long long cell = this_thread() / lanes;
    if (cell >= cells) return;
    unsigned count = counts[cell], lane = this_thread() % lanes, first = next[cell] - count;
    for (unsigned at = first + lane * CHUNK; at < next[cell]; at += lanes * CHUNK) {
        chunk_by_piece[at / CHUNK] = (at + later[cell]) / CHUNK;
    }
    if (count + lane >= chunks_of(count) * CHUNK) return;
    unsigned pad = next[cell] + lane, pad_by_piece = pad + later[cell];
    orders.tile_sources[pad] = static_cast<unsigned short>(1 << tile_bits);
    orders.piece_rows[pad_by_piece] = static_cast<unsigned short>(1 << piece_bits);
    if (ORDER) orders.piece_edges[pad_by_piece] = m;
}

// Writes the marks of a range of places, each of which has a vertex.
extern "C" __global__ void mark_all(long long places, Marks *marks) {
    long long word = this_thread(), left = places - 32 * word;
    if (left > 0) marks[word] = {static_cast<unsigned>(32 * word), left < 32 ? (1u << left) - 1 : 0xffffffffu};
}

// Adds the number of edges into each place to `in_degrees`.
extern "C" __global__ void __launch_bounds__(1024)
    in_degrees(int piece_bits, int pieces, const unsigned *piece_begins, const unsigned short *piece_rows,
               unsigned *in_degrees) {
    extern __shared__ unsigned counts[];  // by row, and of padding
    each_group(pieces, piece_begins, [&](int piece, long long begin, long long end) {
        int size = 1 << piece_bits;
        for (int row = threadIdx.x; row <= size; row += blockDim.x) counts[row] = 0;
        __syncthreads();
        const uint4 *chunks = reinterpret_cast<const uint4 *>(piece_rows);
        for (long long chunk = begin + threadIdx.x; chunk < end; chunk += 4 * blockDim.x) {
            uint4 some[4];
#pragma unroll
            for (int k = 0; k < 4; ++k) some[k] = chunks[min(chunk + k * blockDim.x, end - 1)];
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

// Arranges normalized weights by piece; padding gets 0.
extern "C" __global__ void arrange_normalized_weights(long long count, unsigned m, const unsigned *piece_edges,
                                                      const real_t *normalized_weights, real_t *arranged) {
    each(piece_edges, count, [=](unsigned edge, long long at) {
        arranged[at] = edge == m ? real_t(0) : normalized_weights[edge];
    });
}

// The tiles and pieces, and the chunks before each, and all.
struct Groups {
    int tile_bits, piece_bits, tiles, pieces;
    const unsigned *tile_begins, *piece_begins;
};

// Writes the endpoints of all edges by position, with n as the target of padding.
extern "C" __global__ void endpoints(unsigned chunks, const __grid_constant__ Groups groups, int n, const Marks *marks,
                                     const unsigned *chunk_by_piece, const unsigned short *tile_sources,
                                     const unsigned short *piece_rows, int *sources, int *targets) {
    each(chunk_by_piece, chunks, [=](unsigned to, long long chunk) {
        long long tile = group_of(chunk, groups.tiles, groups.tile_begins);
        long long piece = group_of(to, groups.pieces, groups.piece_begins);
        for (int k = 0; k < CHUNK; ++k) {
            long long edge = chunk * CHUNK + k;
            unsigned short row = piece_rows[static_cast<long long>(to) * CHUNK + k];
            long long source = (tile << groups.tile_bits) + tile_sources[edge];
            long long target = (piece << groups.piece_bits) + row;
            bool real = row != 1 << groups.piece_bits;
            sources[edge] = real ? marks[source / 32].rank(source) : 0;
            targets[edge] = real ? marks[target / 32].rank(target) : n;
        }
    });
}
