// ELL, also called ITPACK: every row padded to the longest (Kincaid, Oppe and Young 1989; Wu and others 2010 find it in
// the samples of the GPU's vendor, and unsuitable for web graphs). A baseline for benchmarks only.
//
// Mapping: one thread per row, in a grid-stride loop; every row takes as many turns as the longest row has edges.
// Memory: n times the length of the longest row in indices, stored column by column, so that reads are coalesced; one
// gathered contribution per edge.
// Wins: where all rows have similar lengths; elsewhere it reads, and stores, padding.

#include "../../prplugin/gpu/edge_term.cuh"

// `columns` holds width x n indices; -1 beyond the end of a row.
extern "C" __global__ void ell_pull(long long n, long long width, const index_t *columns, const real_t *contributions,
                                    double *pulled) {
    long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
        Sum sum = ZERO_SUM;
        for (long long turn = 0; turn < width; ++turn) {
            index_t from = columns[turn * n + i];
            if (from >= 0) sum.add(__ldg(contributions + from));
        }
        pulled[i] = sum.value();
    }
}
