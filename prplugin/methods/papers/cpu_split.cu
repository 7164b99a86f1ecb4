// The GPU's part of summing in-edges together with the processor: Kumar, Sondhi and Mittal 2012, CUDA design 2.
//
// Mapping: one thread a row, in falling in-degree order, in a loop of N turns (fewer where the row has fewer edges),
// that strides over the grid; the in-edges from N on, the tails, are the processor's.
// Memory: rows lie in slices of a warp, each slice index by index ("sliced ELL"), so that a warp reads its rows' next
// indices (and shares) coalesced; and a gathered contribution an edge; a count, a position and a sum a row. For the
// tails, each contribution that they read is copied once, and one sum comes back for each.
// Wins: where a few rows are far longer than the rest: no thread walks along them. On a GPU with fast memory a kernel
// with several threads a row wins over both.
//
//   offset_t  int, or long long past 2^31 edges

#include "../../gpu/sums.cuh"
#include "../../gpu/edge_term.cuh"

// Sums the first counts[k] in-edges of row rows[k]: places slices[s] + lane, + WARP, + 2 WARP ... for k = WARP s + lane.
extern "C" __global__ void GATHERING head_pull(long long count, const index_t *rows, const offset_t *counts,
                                               const long long *slices, const index_t *sources, const real_t *shares,
                                               const real_t *contributions, double *pulled) {
    long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long k = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; k < count; k += stride) {
        Sum sum = NOTHING;
        long long first = slices[k / WARP] + k % WARP, turns = counts[k];
        add_edges(sum, first, first + turns * WARP, WARP, sources, shares, contributions);
        pulled[rows[k]] = sum.value();
    }
}

// Copies just the contributions that tails read.
extern "C" __global__ void gather(long long count, const index_t *sources, const real_t *contributions,
                                  real_t *gathered) {
    long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long k = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; k < count; k += stride) {
        gathered[k] = contributions[sources[k]];
    }
}

// Adds the sums of the tails to those of the heads; each row has one tail at most.
extern "C" __global__ void add_tails(long long count, const index_t *rows, const double *tails, double *pulled) {
    long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long k = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; k < count; k += stride) {
        pulled[rows[k]] += tails[k];
    }
}

// Copies the heads out of the compressed columns into the slices that `head_pull` reads, once. What pads a slice stays.
extern "C" __global__ void lay_heads(long long count, const index_t *rows, const offset_t *counts,
                                     const long long *slices, const offset_t *begins, const index_t *sources,
                                     const double *weights, index_t *laid_sources, double *laid_weights) {
    long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long k = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; k < count; k += stride) {
        long long place = slices[k / WARP] + k % WARP, edge = begins[rows[k]];
        for (offset_t turn = 0, turns = counts[k]; turn < turns; ++turn, ++edge, place += WARP) {
            laid_sources[place] = sources[edge];
#if WEIGHTED
            laid_weights[place] = weights[edge];
#endif
        }
    }
}

// Writes for each source 1 + its greatest place within a row, over all its edges: the tails of a split at N read those
// where that is more than N. A warp a row; `reach` begins as 0.
extern "C" __global__ void find_reach(long long count, const offset_t *begins, const index_t *sources,
                                      long long *reach) {
    long long warps = static_cast<long long>(gridDim.x) * blockDim.x / WARP;
    long long warp = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) / WARP;
    for (long long row = warp; row < count; row += warps) {
        long long begin = begins[row], end = begins[row + 1];
        for (long long edge = begin + threadIdx.x % WARP; edge < end; edge += WARP) {
            atomicMax(reach + sources[edge], edge - begin + 1);
        }
    }
}
