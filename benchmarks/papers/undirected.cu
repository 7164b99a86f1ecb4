// Edge-centric on undirected edges: Kim 2013, Algorithm 2 with line 6. For benchmarks only: `edge` reads each undirected
// edge in both directions, as all methods do.
//
// Mapping: one thread per undirected edge, in a grid-stride loop; it adds the term of either endpoint to the sum of the
// other, which is initialized to 0. A self-loop counts once.
// Memory: two positions per undirected edge, coalesced; two gathered contributions, and two atomic additions of doubles.
// Wins: over one row per direction by half of the bytes of positions, in memory and in transfers.

extern "C" __global__ void edge_push_both(long long edges, const index_t *ends, const index_t *others,
                                          const real_t *contributions, double *row_sums) {
    long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long edge = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; edge < edges; edge += stride) {
        index_t w = ends[edge], v = others[edge];
        atomicAdd(row_sums + v, static_cast<double>(__ldg(contributions + w)));
        if (w != v) atomicAdd(row_sums + w, static_cast<double>(__ldg(contributions + v)));
    }
}
