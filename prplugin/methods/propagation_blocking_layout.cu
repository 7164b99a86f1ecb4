// Layout of edges in blocks, computed once per graph; see blocks.cuh. A counting sort in which the edges of a run come
// in any order: each term has its own entry, so no sum depends on the order.
//
// Mapping: one block per piece. `count` counts the piece's edges by tile, in shared memory. `arrange` sorts them there,
// and then 8 lanes per tile write the chunks of its run. `add_up`, between them: one block per tile, and one for pieces.
// Memory: both read the sources; `arrange` writes 4 bytes per edge and 4 per chunk, in whole chunks; about 10 bytes per
// tile and piece.
// Wins: always; it reads edges that are already sorted by row, and sorts only in shared memory.
//
//   index_t  int or long long: the type of positions
//   real_t   float or double: the type of normalized weights
//   TILE     32 24576

#include "../gpu/block_scan.cuh"
#include "../gpu/blocks.cuh"

#define LOADS_IN_FLIGHT 8
#define LANES 8  // per tile, writing the chunks of its run

struct Piece {
    long long begin;  // index of its first edge, in the order of the rows
    int edges;
};

__device__ inline Piece piece_of(long long p, long long items, long long size, const index_t *cuts) {
    long long begin = p * size - cuts[p];
    return {begin, static_cast<int>(min((p + 1) * size, items) - cuts[p + 1] - begin)};
}

// Calls use(edge, source) for all edges of a piece.
template <typename Use>
__device__ inline void each_edge(const Piece &piece, const index_t *sources, Use use) {
    int step = blockDim.x;
    sources += piece.begin;
    for (int base = threadIdx.x; base < piece.edges; base += LOADS_IN_FLIGHT * step) {
        unsigned loaded[LOADS_IN_FLIGHT];
#pragma unroll
        for (int k = 0; k < LOADS_IN_FLIGHT; ++k) {
            loaded[k] = static_cast<unsigned>(sources[min(base + k * step, piece.edges - 1)]);
        }
#pragma unroll
        for (int k = 0; k < LOADS_IN_FLIGHT; ++k) {
            if (base + k * step < piece.edges) use(base + k * step, loaded[k]);
        }
    }
}

// Writes the number of chunks of the run from each tile to piece p to column p of `chunks`, and their sum to `sizes`.
extern "C" __global__ void __launch_bounds__(1024)
    count(long long items, long long size, long long pieces, int tiles, const index_t *cuts, const index_t *sources,
          unsigned short *chunks, unsigned *sizes) {
    extern __shared__ uint4 smem[];
    unsigned *counts = reinterpret_cast<unsigned *>(smem);
    long long p = blockIdx.x;
    for (int tile = threadIdx.x; tile < tiles; tile += blockDim.x) counts[tile] = 0;
    __syncthreads();
    each_edge(piece_of(p, items, size, cuts), sources,
              [&](int, unsigned source) { atomicAdd(counts + source / TILE, 1u); });
    __syncthreads();
    unsigned mine = 0, all;
    for (int tile = threadIdx.x; tile < tiles; tile += blockDim.x) {
        unsigned length = (counts[tile] + CHUNK - 1) / CHUNK;
        chunks[tile * pieces + p] = static_cast<unsigned short>(length);
        mine += length;
    }
    block_scan(mine, &all);
    if (threadIdx.x == 0) sizes[p] = all;
}

// Calls store(at, before, value) for all values load(0) .. load(count - 1), with the sum of those before; returns the
// sum of all. All threads of the block must call it.
template <typename Load, typename Store>
__device__ inline unsigned scan_each(long long count, Load load, Store store) {
    unsigned sum = 0;
    for (long long first = 0; first < count; first += blockDim.x) {
        long long at = first + threadIdx.x;
        unsigned value = at < count ? load(at) : 0, all, before = sum + block_scan(value, &all);
        if (at < count) store(at, before, value);
        sum += all;
    }
    return sum;
}

// Writes ends[t, p], the number of chunks of tile t in pieces up to p; replaces the sizes of pieces in `begins` by prefix
// sums; and writes the end of each tile's chunks to `tile_ends`, then the largest size. `tile_ends` must be zeroed; its
// last entry, after the largest size, counts finished blocks.
extern "C" __global__ void __launch_bounds__(1024)
    add_up(long long pieces, int tiles, const unsigned short *chunks, unsigned *ends, unsigned *begins,
           unsigned *tile_ends) {
    __shared__ bool last;
    int tile = blockIdx.x;
    if (tile < tiles) {
        const unsigned short *from = chunks + tile * pieces;
        unsigned *to = ends + tile * pieces;
        unsigned all = scan_each(pieces, [=](long long p) { return from[p]; },
                                 [=](long long p, unsigned before, unsigned length) { to[p] = before + length; });
        if (threadIdx.x == 0) tile_ends[tile] = all;
    } else {
        unsigned largest = 0;
        unsigned all = scan_each(pieces, [=](long long p) { return begins[p]; },
                                 [&](long long p, unsigned before, unsigned size) {
                                     begins[p] = before;
                                     largest = max(largest, size);
                                 });
        atomicMax(tile_ends + tiles, largest);
        if (threadIdx.x == 0) begins[pieces] = all;
    }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(tile_ends + tiles + 1, 1u) == gridDim.x - 1;
    __syncthreads();
    if (!last) return;
    __threadfence();
    scan_each(tiles, [=](long long t) { return __ldcg(tile_ends + t); },
              [=](long long t, unsigned before, unsigned size) { tile_ends[t] = before + size; });
}

// Writes `tile_sources`, `chunk_by_piece` and `piece_edges`.
extern "C" __global__ void __launch_bounds__(1024)
    arrange(long long items, long long size, long long pieces, int tiles, const index_t *cuts, const index_t *sources,
            const unsigned short *chunks, const unsigned *ends, const unsigned *tile_ends, const unsigned *begins,
            unsigned short *tile_sources, unsigned *chunk_by_piece, unsigned short *piece_edges) {
    extern __shared__ uint4 smem[];
    long long p = blockIdx.x;
    unsigned first = begins[p];
    int count = static_cast<int>(begins[p + 1] - first);
    unsigned *arranged = reinterpret_cast<unsigned *>(smem);  // edge, and its source in the upper 16 bits
    unsigned *places = arranged + count * CHUNK;  // of the next edge from each tile

    int start = 0;
    for (int base = 0; base < tiles; base += blockDim.x) {
        int tile = base + threadIdx.x, all;
        int length = tile < tiles ? chunks[tile * pieces + p] : 0;
        int before = start + block_scan(length, &all);
        start += all;
        if (tile < tiles) places[tile] = before * CHUNK;
    }
    for (int at = threadIdx.x; at < count * CHUNK; at += blockDim.x) arranged[at] = static_cast<unsigned>(size);
    __syncthreads();
    each_edge(piece_of(p, items, size, cuts), sources, [&](int edge, unsigned source) {
        arranged[atomicAdd(places + source / TILE, 1u)] = edge | (source % TILE) << 16;
    });
    __syncthreads();

    for (int tile = threadIdx.x / LANES; tile < tiles; tile += blockDim.x / LANES) {
        int length = chunks[tile * pieces + p];
        int past = (places[tile] + CHUNK - 1) / CHUNK;  // end of the run in the piece
        unsigned end = ends[tile * pieces + p] + (tile ? tile_ends[tile - 1] : 0);
        for (int left = length - threadIdx.x % LANES; left > 0; left -= LANES) {
            uint4 low = smem[2 * (past - left)], high = smem[2 * (past - left) + 1];
            unsigned by_tile = end - left, by_piece = first + past - left;
            chunk_by_piece[by_tile] = by_piece;
            reinterpret_cast<uint4 *>(piece_edges)[by_piece] = {
                (low.x & 0xffff) | low.y << 16, (low.z & 0xffff) | low.w << 16,
                (high.x & 0xffff) | high.y << 16, (high.z & 0xffff) | high.w << 16};
            reinterpret_cast<uint4 *>(tile_sources)[by_tile] = {
                low.x >> 16 | (low.y & 0xffff0000), low.z >> 16 | (low.w & 0xffff0000),
                high.x >> 16 | (high.y & 0xffff0000), high.z >> 16 | (high.w & 0xffff0000)};
        }
    }
}

// Permutes normalized weights from the order of the rows to that by piece; padding gets 0.
extern "C" __global__ void arrange_normalized_weights(long long items, long long size, const index_t *cuts,
                                                      const unsigned *begins, const unsigned short *piece_edges,
                                                      const real_t *normalized_weights, real_t *arranged) {
    long long p = blockIdx.x, end = static_cast<long long>(begins[p + 1]) * CHUNK;
    Piece piece = piece_of(p, items, size, cuts);
    for (long long at = static_cast<long long>(begins[p]) * CHUNK + threadIdx.x; at < end; at += blockDim.x) {
        arranged[at] = piece_edges[at] < piece.edges ? normalized_weights[piece.begin + piece_edges[at]] : real_t(0);
    }
}
