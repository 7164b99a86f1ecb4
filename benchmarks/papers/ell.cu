// ELL, also called ITPACK: every row padded to the longest (Kincaid, Oppe and Young 1989; what Wu and others 2010 find
// in the examples of their GPU's maker, and unsuitable for the web). A baseline of benchmarks alone.
//
// Mapping: one thread a row, in a loop that strides over the grid; all rows take as many turns as the longest has edges.
// Memory: n times the longest row of indices, stored turn by turn, so that neighbouring threads read neighbouring ones;
// a gathered contribution an edge.
// Wins: where all rows are about as long; elsewhere it reads padding, and needs memory for it.

#include "../../prplugin/gpu/edge_term.cuh"

// `columns` holds width x n indices: turn by turn, -1 where the row has no more edges.
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
