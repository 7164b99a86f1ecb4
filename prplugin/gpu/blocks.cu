// Layout of edges in blocks, computed once per graph from endpoints in any order: see blocks.cuh. Two partitions, by
// tile of the source and then by piece of the target; each needs its counts beforehand.
//
// Mapping: equally many edges per block; of several tiles or pieces one after another in `count_cells`, `by_piece` and
// `in_degrees`. A block counts its edges by tile, or by cell, and reserves room for them. Later the same block partitions
// the same edges in shared memory, BATCH at a time. `cell_chunks`: one block per tile, and per piece. `finish_cells`:
// LANES threads per cell.
// Memory: endpoints read once by `by_tile`, sources once more for the counts; `by_tile` writes 6 bytes per edge;
// `count_cells` reads 6, `by_piece` reads 6 and writes 4, `in_degrees` reads 2, `finish_cells` writes half a byte.
// 12 bytes per cell, and 4 per tile or piece for each block.
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

// The part of a range of items that is this block's.
struct Share {
    long long begin, end;

    __device__ explicit Share(long long items)
        : begin(items * blockIdx.x / gridDim.x), end(items * (blockIdx.x + 1) / gridDim.x) {}
};

// Counts this block's edges by tile. Writes to `reserved` how many edges of each tile other blocks have reserved room
// for before; to `begins` the number of edges before each tile, and m. `begins` must be zeroed, with an entry more that
// counts blocks.
extern "C" __global__ void __launch_bounds__(1024)
    count_tiles(long long m, const id_t *sources, wide_t low, int tile_bits, int tiles, unsigned *begins,
                unsigned *reserved) {
    extern __shared__ unsigned counts[];
    for (int at = threadIdx.x; at < COPIES * tiles; at += blockDim.x) counts[at] = 0;
    __syncthreads();
    unsigned *mine = counts + threadIdx.x / WARP % COPIES * tiles;
    Share share(m);
    for (long long base = share.begin + threadIdx.x; base < share.end; base += LOADS_IN_FLIGHT * blockDim.x) {
        id_t some[LOADS_IN_FLIGHT];
#pragma unroll
        for (int k = 0; k < LOADS_IN_FLIGHT; ++k) some[k] = sources[min(base + k * blockDim.x, share.end - 1)];
#pragma unroll
        for (int k = 0; k < LOADS_IN_FLIGHT; ++k) {
            if (base + k * blockDim.x < share.end) atomicAdd(mine + (place_of(some[k], low) >> tile_bits), 1u);
        }
    }
    __syncthreads();
    for (int tile = threadIdx.x; tile < tiles; tile += blockDim.x) {
        unsigned count = 0;
        for (int copy = 0; copy < COPIES; ++copy) count += counts[copy * tiles + tile];
        if (count) reserved[static_cast<long long>(blockIdx.x) * tiles + tile] = atomicAdd(begins + tile, count);
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

struct Item {
    unsigned source, target, edge;
};

// Partitions the items begin..end, BATCH at a time: calls store(bin, to, item) with consecutive numbers `to` in each bin,
// the first of which is in `next`. Both `next` and `starts`, of an entry more, are in shared memory, as is `held`.
template <typename Load, typename BinOf, typename Store>
__device__ inline void partition(long long begin, long long end, int bins, unsigned *next, unsigned *starts,
                                 unsigned *held, Load load, BinOf bin_of, Store store) {
    unsigned *sources = held, *targets = sources + BATCH, *edges = targets + BATCH;
    for (long long first = begin; first < end; first += BATCH) {
        int count = static_cast<int>(min(static_cast<long long>(BATCH), end - first));
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
            store(bin, next[bin] + at - starts[bin], item);
        }
        __syncthreads();
        for (int bin = threadIdx.x; bin < bins; bin += PARTITIONING) next[bin] += starts[bin + 1] - starts[bin];
        __syncthreads();
    }
}

// Partitions the edges by tile, given what `count_tiles` wrote on the same grid.
extern "C" __global__ void __launch_bounds__(PARTITIONING)
    by_tile(long long m, const id_t *sources, const id_t *targets, wide_t low, int tile_bits, int tiles,
            const unsigned *begins, const unsigned *reserved, unsigned short *sources_out, unsigned *targets_out,
            unsigned *edges_out) {
    extern __shared__ unsigned smem[];
    unsigned *next = smem, *starts = next + tiles, *held = starts + tiles + 1;
    for (int tile = threadIdx.x; tile < tiles; tile += PARTITIONING) {
        next[tile] = begins[tile] + reserved[static_cast<long long>(blockIdx.x) * tiles + tile];
    }
    __syncthreads();
    Share share(m);
    auto load = [=](long long at) -> Item {
        return {place_of(sources[at], low), place_of(targets[at], low), static_cast<unsigned>(at)};
    };
    auto tile_of = [=](const Item &item) { return item.source >> tile_bits; };
    partition(share.begin, share.end, tiles, next, starts, held, load, tile_of,
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

// Calls work(group, begin, end) for the parts of this block's share of items that lie in one group each; `begins` are
// those of the groups, and the end of the last.
template <typename Work>
__device__ inline void each_group(int groups, const unsigned *begins, Work work) {
    Share share(begins[groups]);
    long long begin = share.begin;
    for (int group = group_of(begin, groups, begins); begin < share.end; ++group) {
        long long here = min(share.end, static_cast<long long>(begins[group + 1]));
        if (begin < here) work(group, begin, here);
        begin = here;
    }
}

// Where a block notes what it has reserved for a group: each part of a group in one block has a row of its own.
__device__ inline long long row_of(int group, int bins) { return static_cast<long long>(blockIdx.x + group) * bins; }

// Adds the counts of a group that are not 0 to `to`.
__device__ inline void add_counts(const unsigned *counts, int count, unsigned *to) {
    for (int at = threadIdx.x; at < count; at += blockDim.x) {
        if (counts[at]) atomicAdd(to + at, counts[at]);
    }
}

// Adds the number of edges of each cell to `cells`, by tile and then by piece, and those from each place to
// `out_degrees`. Writes to `reserved` how many edges of a cell other blocks have reserved room for before.
extern "C" __global__ void __launch_bounds__(1024)
    count_cells(int tile_bits, int piece_bits, int tiles, int pieces, const unsigned *begins,
                const unsigned short *sources, const unsigned *targets, unsigned *cells, unsigned *reserved,
                unsigned *out_degrees) {
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
        unsigned *mine = reserved + row_of(tile, pieces), *all = cells + static_cast<long long>(tile) * pieces;
        for (int piece = threadIdx.x; piece < pieces; piece += blockDim.x) {
            if (counts[piece]) mine[piece] = atomicAdd(all + piece, counts[piece]);
        }
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

// Partitions the edges of each tile by piece, into both orders, given what `count_cells` wrote on the same grid.
extern "C" __global__ void __launch_bounds__(PARTITIONING)
    by_piece(int piece_bits, int tiles, int pieces, const unsigned *begins, const unsigned short *sources,
             const unsigned *targets, const unsigned *edges, const unsigned *reserved, const unsigned *in_tile,
             const unsigned *in_piece, const unsigned *tile_begins, const unsigned *piece_begins,
             unsigned short *tile_sources, unsigned short *piece_rows, unsigned *piece_edges) {
    extern __shared__ unsigned smem[];
    // By piece: where the next edge goes by tile, and how much later it comes by piece.
    unsigned *next = smem, *later = next + pieces, *starts = later + pieces, *held = starts + pieces + 1;
    each_group(tiles, begins, [&](int tile, long long begin, long long end) {
        const unsigned *before = reserved + row_of(tile, pieces);
        for (int piece = threadIdx.x; piece < pieces; piece += PARTITIONING) {
            long long cell = static_cast<long long>(tile) * pieces + piece;
            unsigned first = (tile_begins[tile] + in_tile[cell]) * CHUNK;
            next[piece] = first + before[piece];
            later[piece] = (piece_begins[piece] + in_piece[cell]) * CHUNK - first;
        }
        __syncthreads();
        auto load = [=](long long at) -> Item { return {sources[at], targets[at], ORDER ? edges[at] : 0}; };
        auto piece_of = [=](const Item &item) { return item.target >> piece_bits; };
        partition(begin, end, pieces, next, starts, held, load, piece_of,
                  [=](unsigned piece, unsigned to, const Item &item) {
                      tile_sources[to] = static_cast<unsigned short>(item.source);
                      piece_rows[to + later[piece]] = static_cast<unsigned short>(item.target - (piece << piece_bits));
                      if (ORDER) piece_edges[to + later[piece]] = item.edge;
                  });
    });
}

// Pads each cell, and writes where its chunks are in the order by piece. Positions of padding edges are `m`.
extern "C" __global__ void finish_cells(int tile_bits, int piece_bits, int tiles, int pieces, unsigned m,
                                        const unsigned *cells, const unsigned *in_tile, const unsigned *in_piece,
                                        const unsigned *tile_begins, const unsigned *piece_begins,
                                        unsigned *chunk_by_piece, unsigned short *tile_sources,
                                        unsigned short *piece_rows, unsigned *piece_edges) {
    long long cell = this_thread() / LANES;
    if (cell >= static_cast<long long>(tiles) * pieces) return;
    unsigned count = cells[cell], chunks = chunks_of(count), lane = this_thread() % LANES;
    unsigned from = tile_begins[cell / pieces] + in_tile[cell], to = piece_begins[cell % pieces] + in_piece[cell];
    for (unsigned chunk = lane; chunk < chunks; chunk += LANES) chunk_by_piece[from + chunk] = to + chunk;
    unsigned pad = count + lane;
    if (pad >= chunks * CHUNK) return;
    tile_sources[from * CHUNK + pad] = static_cast<unsigned short>(1 << tile_bits);
    piece_rows[to * CHUNK + pad] = static_cast<unsigned short>(1 << piece_bits);
    if (ORDER) piece_edges[to * CHUNK + pad] = m;
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

// Writes the endpoints of all edges by position, with n as the target of padding.
extern "C" __global__ void endpoints(unsigned chunks, int tile_bits, int piece_bits, int tiles, int pieces, int n,
                                     const Marks *marks, const unsigned *tile_begins, const unsigned *piece_begins,
                                     const unsigned *chunk_by_piece, const unsigned short *tile_sources,
                                     const unsigned short *piece_rows, int *sources, int *targets) {
    each(chunk_by_piece, chunks, [=](unsigned to, long long chunk) {
        long long tile = group_of(chunk, tiles, tile_begins), piece = group_of(to, pieces, piece_begins);
        for (int k = 0; k < CHUNK; ++k) {
            long long edge = chunk * CHUNK + k;
            unsigned short row = piece_rows[static_cast<long long>(to) * CHUNK + k];
            long long source = (tile << tile_bits) + tile_sources[edge], target = (piece << piece_bits) + row;
            bool real = row != 1 << piece_bits;
            sources[edge] = real ? marks[source / 32].rank(source) : 0;
            targets[edge] = real ? marks[target / 32].rank(target) : n;
        }
    });
}
