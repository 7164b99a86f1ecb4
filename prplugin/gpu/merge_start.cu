// All that the first iteration of merge.cuh needs, in one launch.
//
// Mapping: a thread a vertex, in a loop that strides over the grid. Each block leaves what it measured in `begun`.
// Memory: 8 or 16 bytes read and 20 or 24 written a vertex.
// Wins: always; launches and arrays of their own would take longer than the work.
//
//   real_t  float or double: the type of contributions

#include "totals.cuh"

// Ranks to start from are n, or null: then all are `uniform`. `constants` are w and (1 - alpha) v where each is one number
// that stands for all. Of `measured` the host reads more than steps write.
extern "C" __global__ void merge_start(long long n, int weighted, const double *out_weight, const double *given,
                                       double uniform, double target, double teleport, long long pieces, double *tails,
                                       long long cleared, double *measured, unsigned *arrived, double *constants,
                                       double *ranks, double *inverse_out_weight, real_t *contributions,
                                       Totals *begun) {
    long long first = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    Tally tally = NO_TALLY;
    for (long long i = first; i < n; i += stride) {
        double rank = given == nullptr ? uniform : given[i];
        // 1 / W; 1 where the edge has its share w / W; 0 where the vertex dangles.
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
