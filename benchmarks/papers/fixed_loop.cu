// Loop of fixed length per row: Kumar, Sondhi and Mittal 2012, CUDA design 2, in the paper's own form. A baseline for
// benchmarks only.
//
// Mapping: one thread per row in the order of the vertices, in a grid-stride loop; every thread of a block of rows takes
// as many turns as the block's limit, those beyond the end of its row idle.
// Memory: one index per edge, which neighbouring threads read a row apart, and a gathered contribution; two offsets and
// a sum per row.
// Wins: where most rows are about as long as the limit; `cpu-split` ends a thread's loop with its row, and sorts rows by
// length.
//
//   index_t   int or long long: the type of positions of vertices
//   offset_t  int or long long: the type of offsets of rows
//   real_t    float or double: the type of contributions
//   UNROLL    1 4 8

// Sums the first limits[row / rows_per_block] in-edges of each row.
extern "C" __global__ void fixed_loop(long long n, long long rows_per_block, const long long *limits,
                                      const offset_t *offsets, const index_t *sources, const real_t *contributions,
                                      double *row_sums) {
    long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long row = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; row < n; row += stride) {
        long long limit = limits[row / rows_per_block];
        long long begin = offsets[row], end = offsets[row + 1];
        double sum = 0;
#pragma unroll UNROLL
        for (long long turn = 0; turn < limit; ++turn) {
            if (begin + turn < end) sum += __ldg(contributions + sources[begin + turn]);
        }
        row_sums[row] = sum;
    }
}
