// Exchange between GPU and host, each of which sums a part of the in-edges: Kumar, Sondhi and Mittal 2012, CUDA design
// 2.
//
// Mapping: one thread per entry, in a grid-stride loop. The kernel of node.cu sums the heads, of at most N edges per
// row, in descending order of in-degree, so that the threads of a warp have equally long loops.
// Memory: each contribution that the host reads is copied once (`gather`), and one sum per row comes back (`add_sums`).
// Wins: where a few rows are far longer than the rest: no thread loops over them. On a GPU with fast memory, a kernel
// with several threads per row is faster than both.
//
//   index_t  int or long long: the type of positions of vertices
//   real_t   float or double: the type of contributions

// Gathers the contributions that the host reads.
extern "C" __global__ void gather(long long count, const index_t *sources, const real_t *contributions,
                                  real_t *gathered) {
    long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long k = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; k < count; k += stride) {
        gathered[k] = contributions[sources[k]];
    }
}

// Adds the host's sums to those of the GPU, at most one per row.
extern "C" __global__ void add_sums(long long count, const index_t *rows, const double *sums, double *row_sums) {
    long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long k = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; k < count; k += stride) {
        row_sums[rows[k]] += sums[k];
    }
}
