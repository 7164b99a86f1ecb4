// CUDA design 2 of Kumar, Sondhi and Mittal 2012 in the paper's form: float32, a division by the out-degree for each
// edge, and a loop of fixed length. `form="paper"` of `cpu-split`.
//
// Mapping: one thread per row in the order of the vertices, in a grid-stride loop (the paper's passes); every thread of a
// block of rows takes as many turns as the block's limit N, those beyond the end of its row idle. One thread of the host
// sums the in-edges from N on meanwhile (cpu/papers.cpp), and all of its partial ranks are added.
// Memory: two offsets per row; per edge a position, a gathered rank and a gathered out-degree; a partial rank per row.
// Wins: where most rows are about as long as the limit. `cpu-split` itself ends a thread's loop with its row.
//
//   index_t   int, or long long past 2^31 rows
//   offset_t  int or long long: the type of offsets of rows
//   UNROLL    1 4 8

// Section 4.2, design 2: "GPU calculates the share of N source nodes which point to a destination node by running loop N
// times for each thread." The first limits[row / rows_per_block] in-edges of each row.
extern "C" __global__ void fixed_loop(long long n, long long rows_per_block, const long long *limits,
                                      const offset_t *offsets, const index_t *sources, const int *out_degrees,
                                      const float *ranks, float *partial_ranks) {
    long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long row = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; row < n; row += stride) {
        long long N = limits[row / rows_per_block], begin = offsets[row], end = offsets[row + 1];
        float sum = 0;
#pragma unroll UNROLL
        for (long long turn = 0; turn < N; ++turn) {
            if (begin + turn < end) {
                index_t source = sources[begin + turn];
                sum += ranks[source] / out_degrees[source];
            }
        }
        partial_ranks[row] = sum;
    }
}

// "These partial ranks are then added and used for next iteration": equation (1), for ranks of sum 1. The host's are null
// if it has none.
extern "C" __global__ void add_partial_ranks(long long n, float d, const float *of_host, float *ranks) {
    long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long row = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; row < n; row += stride) {
        ranks[row] = (1 - d) / n + d * (of_host == nullptr ? ranks[row] : ranks[row] + of_host[row]);
    }
}
