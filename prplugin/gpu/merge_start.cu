// Initialization for merge.cuh in one launch.
//
// Mapping: one thread per vertex, in a grid-stride loop. Each block writes its measurements to `begun`.
// Memory: per vertex 8 or 16 bytes read and 20 or 24 written.
// Wins: always; separate launches and allocations would take longer than the work.
//
//   real_t  float or double: the type of contributions

#include "totals.cuh"

// `given` has the n initial ranks, or is null: then rank i is `uniform`, plus `per_edge` for each in-edge unless
// `in_degrees` is null. `constants` receives w and (1 - alpha) v for uniform vectors. `measured` is cleared because the host reads
// more of it than the steps write.
extern "C" __global__ void merge_start(long long n, int weighted, const double *out_weight, const double *given,
                                       double uniform, double per_edge, const unsigned *in_degrees,
                                       double target, double teleport, long long pieces, double *tails,
                                       long long cleared, double *measured, unsigned *arrived, double *constants,
                                       double *ranks, double *inverse_out_weight, real_t *contributions,
                                       Totals *begun) {
    long long first = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    Tally tally = ZERO_TALLY;
    for (long long i = first; i < n; i += stride) {
        double rank = given == nullptr ? uniform : given[i];
        if (in_degrees != nullptr) rank += per_edge * in_degrees[i];
        // 1 / W; 1 for weighted edges, whose normalized weight includes it; 0 for dangling vertices.
        double inverse_weight = out_weight[i] == 0.0 ? 0.0 : weighted ? 1.0 : 1.0 / out_weight[i];
        tally.add(rank, rank, inverse_weight == 0.0);
        ranks[i] = rank;
        inverse_out_weight[i] = inverse_weight;
        contributions[i] = static_cast<real_t>(rank * inverse_weight);
    }
    for (long long p = first; p < pieces; p += stride) tails[p] = ABSENT;
    for (long long at = first; at < cleared; at += stride) measured[at] = 0.0;
    if (first == 0) {
        *arrived = 0;
        constants[0] = target;
        constants[1] = teleport;
    }
    Totals totals = block_totals(tally);
    if (threadIdx.x == 0) begun[blockIdx.x] = totals;
}
