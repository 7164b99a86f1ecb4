// Initialization for merge.cuh in one launch.
//
// Mapping: one thread per vertex, in a grid-stride loop. Each block writes its measurements to `begun`.
// Memory: per vertex 8 or 16 bytes read and 20 or 24 written.
// Wins: always; separate launches and allocations would take longer than the work.
//
//   real_t  float or double: the type of contributions

#include "totals.cuh"

// The initial ranks: `given`, or if that is null `uniform`, plus `per_edge` for each in-edge unless `in_degrees` is null.
struct Start {
    const double *given;
    double uniform, per_edge;
    const unsigned *in_degrees;
};

// `constants` receives w and (1 - alpha) v for uniform vectors, `target` and `teleport`. `measured` is cleared because
// the host reads more of it than the steps write.
struct Setup {
    long long n, pieces;
    const double *out_weight;
    int weighted;
    double target, teleport;
    double *tails, *constants, *inverse_out_weight;
    unsigned *arrived;
    Totals *begun;
};

extern "C" __global__ void merge_start(const Setup setup, const Start start,
                                       double *ranks, real_t *contributions, long long cleared, double *measured) {
    long long first = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    Tally tally = ZERO_TALLY;
    for (long long i = first; i < setup.n; i += stride) {
        double rank = start.given == nullptr ? start.uniform : start.given[i];
        if (start.in_degrees != nullptr) rank += start.per_edge * start.in_degrees[i];
        // 1 / W; 1 for weighted edges, whose normalized weight includes it; 0 for dangling vertices.
        double out_weight = setup.out_weight[i];
        double inverse_weight = out_weight == 0.0 ? 0.0 : setup.weighted ? 1.0 : 1.0 / out_weight;
        tally.add(rank, rank, inverse_weight == 0.0);
        ranks[i] = rank;
        setup.inverse_out_weight[i] = inverse_weight;
        contributions[i] = static_cast<real_t>(rank * inverse_weight);
    }
    for (long long p = first; p < setup.pieces; p += stride) setup.tails[p] = ABSENT;
    for (long long at = first; at < cleared; at += stride) measured[at] = 0.0;
    if (first == 0) {
        *setup.arrived = 0;
        setup.constants[0] = setup.target;
        setup.constants[1] = setup.teleport;
    }
    Totals totals = block_totals(tally);
    if (threadIdx.x == 0) setup.begun[blockIdx.x] = totals;
}
