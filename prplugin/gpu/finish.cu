// New ranks from row sums: the second half of every iteration, whatever computes the row sums.
//
//   y_i = alpha * pulled_i + alpha * D * w_i + (1 - alpha) * v_i,    c_i = y_i * inverse_out_weight_i
//
// Mapping: one thread per vertex, in a grid-stride loop. Each block writes the sums of its vertices to `partials`, and
// one block adds those up, in an order that depends only on the grid: the same bits in every run.
// Memory: per vertex 24 bytes read and 12 or 16 written (w and v uniform), each once.
// Wins: always; it runs at nearly the bandwidth of the memory.
//
//   real_t  float or double: the type of contributions

#include "equation.cuh"
#include "totals.cuh"

// Computes 1 / W, or 1 if the edges are weighted; 0 for dangling vertices.
extern "C" __global__ void inverse_out_weight(long long n, int weighted, const double *out_weight,
                                              double *inverse_weight) {
    long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
        inverse_weight[i] = out_weight[i] == 0.0 ? 0.0 : weighted ? 1.0 : 1.0 / out_weight[i];
    }
}

// Computes contributions and D of the initial ranks.
extern "C" __global__ void begin(long long n, const double *ranks, const double *inverse_out_weight,
                                 real_t *contributions, Totals *partials) {
    Tally tally = ZERO_TALLY;
    long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
        tally.add(ranks[i], ranks[i], inverse_out_weight[i] == 0.0);
        contributions[i] = static_cast<real_t>(ranks[i] * inverse_out_weight[i]);
    }
    Totals totals = block_totals(tally);
    if (threadIdx.x == 0) partials[blockIdx.x] = totals;
}

// `moves` receives y - x, unless null.
extern "C" __global__ void finish(long long n, const __grid_constant__ Equation equation, const double *row_sums,
                                  const Totals *totals, double *ranks, real_t *contributions, float *moves,
                                  Totals *partials) {
    Tally tally = ZERO_TALLY;
    double mass = equation.alpha * totals->dangling;
    long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
        double target = equation.target[i * equation.target_step];
        double teleport = equation.teleport[i * equation.teleport_step];
        double rank = equation.alpha * row_sums[i] + (mass * target + teleport);
        double inverse_weight = equation.inverse_out_weight[i];
        tally.add(ranks[i], rank, inverse_weight == 0.0);
        if (moves != nullptr) moves[i] = static_cast<float>(rank - ranks[i]);
        ranks[i] = rank;
        contributions[i] = static_cast<real_t>(rank * inverse_weight);
    }
    Totals measured = block_totals(tally);
    if (threadIdx.x == 0) partials[blockIdx.x] = measured;
}

// One block: adds up the sums of all blocks. It needs at least as many threads as a block can have warps.
extern "C" __global__ void total(long long blocks, const Totals *partials, Totals *totals) {
    Tally tally = ZERO_TALLY;
    for (long long block = threadIdx.x; block < blocks; block += blockDim.x) tally.add(partials[block]);
    Totals measured = block_totals(tally);
    if (threadIdx.x == 0) *totals = measured;
}
