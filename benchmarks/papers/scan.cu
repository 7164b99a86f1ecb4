// Segmented scan (Garland 2008; Wu and others 2010 discuss it as load-balanced, but with an additional array of terms). A
// baseline for benchmarks only.
//
// Mapping: one thread per edge gathers the terms. A block of TILE threads scans a tile of TILE edges in shared memory; one
// block scans the carries of the tiles, TILE at a time; and one thread per row reads the row's last entry and adds the
// carry of the previous tile.
// Memory: in addition to indices and gathered contributions, a term and a scanned term per edge, 8 bytes each, written and
// read; one byte per edge that marks the start of a row.
// Wins: never compared with sums that are added where terms are gathered; its work does not depend on row lengths.
//
//   TILE  1024 256

#include "../../prplugin/gpu/edge_term.cuh"

// Sum since the start of a segment; `fresh` is true if a segment starts within the summed range.
struct Run {
    double sum;
    bool fresh;
};

__device__ inline Run joined(const Run &before, const Run &after) {
    return {after.fresh ? after.sum : before.sum + after.sum, before.fresh || after.fresh};
}

// Inclusive scan of a block's runs, in steps of 1, 2, 4, ... All threads must call it.
__device__ inline Run scanned(Run mine, Run *room) {
    for (int distance = 1; distance < TILE; distance *= 2) {
        room[threadIdx.x] = mine;
        __syncthreads();
        if (threadIdx.x >= distance) mine = joined(room[threadIdx.x - distance], mine);
        __syncthreads();
    }
    return mine;
}

extern "C" __global__ void gather_terms(long long m, const index_t *sources, const real_t *contributions,
                                        double *terms) {
    long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long k = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; k < m; k += stride)
        terms[k] = __ldg(contributions + sources[k]);
}

// Scans each tile in place; `left` holds the sum of its last segment, `begins` whether a row starts in the tile.
extern "C" __global__ void scan_tiles(long long m, const unsigned char *heads, double *terms, double *left,
                                      unsigned char *begins) {
    __shared__ Run room[TILE];
    long long k = static_cast<long long>(blockIdx.x) * TILE + threadIdx.x;
    Run mine = {0.0, false};
    if (k < m) mine = {terms[k], heads[k] != 0};
    mine = scanned(mine, room);
    if (k < m) terms[k] = mine.sum;
    if (threadIdx.x == TILE - 1) {
        left[blockIdx.x] = mine.sum;
        begins[blockIdx.x] = mine.fresh;
    }
}

// Scans the carries of all tiles with one block.
extern "C" __global__ void scan_left(long long tiles, double *left, const unsigned char *begins) {
    __shared__ Run room[TILE];
    __shared__ Run carried;
    if (threadIdx.x == 0) carried = {0.0, false};
    for (long long first = 0; first < tiles; first += TILE) {
        long long k = first + threadIdx.x;
        Run mine = {0.0, false};
        if (k < tiles) mine = {left[k], begins[k] != 0};
        mine = scanned(mine, room);
        Run run = joined(carried, mine);
        __syncthreads();
        if (threadIdx.x == TILE - 1) carried = run;
        if (k < tiles) left[k] = run.sum;
        __syncthreads();
    }
}

// A row's sum is its last entry, plus the carry of the previous tiles if the row starts in one of them.
extern "C" __global__ void take_rows(long long n, const offset_t *offsets, const double *terms, const double *left,
                                     double *pulled) {
    long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
        long long first = offsets[i], end = offsets[i + 1];
        double sum = 0.0;
        if (first < end) {
            long long tile = (end - 1) / TILE;
            sum = terms[end - 1];
            if (first < tile * TILE) sum += left[tile - 1];
        }
        pulled[i] = sum;
    }
}
