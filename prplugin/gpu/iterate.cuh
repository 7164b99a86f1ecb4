// Many iterations per launch: blocks stay resident, and wait at a grid barrier between iterations. How the blocks share
// the rows, and sum them, is that of the caller: merge.cuh, or propagation_blocking.cu.
//
//   real_t  float or double: the type of contributions

#include "equation.cuh"
#include "grid.cuh"
#include "totals.cuh"
#include "mixing.cuh"

#define ALL_LANES 0xffffffffu

// The actual ranks and contributions of x are `scale` times the stored ones.
struct Vectors {
    double *ranks;
    real_t *from, *to;  // contributions of this iteration and of the next
    float *residuals;  // changes of the ranks, unless null
    const double *scale;  // in shared memory
};

// Why a launch ends: after the given number of iterations (COUNT); after one whose change is at most `goal` (GOAL); at
// least `stall` times the previous change, initially `before`, unless a mix was in between (STALL); or when, at the
// rate of the last iteration, the goal is more than `mixing_from` iterations away (FAR_FROM_GOAL). With memory for a
// history mixing begins then, and the launch continues.
enum Reason { COUNT, GOAL, STALL, FAR_FROM_GOAL };

// Arguments of a launch of at most `count` iterations. `latest` has the measurements of the iteration before the first,
// in `parts` to be added up. `totals` receives the number of iterations, the reason for the end, and whether mixing has
// begun; and in the entries after that one the measurements of each iteration. `partials` has two entries per block.
struct Launch {
    int count, parts;
    double goal, stall, before, mixing_from;
    const Totals *latest;
    Totals *totals, *partials;
    unsigned *arrived;
    double *ranks;
    real_t *contributions, *following;  // of the first iteration and of the next

    __device__ Reason after(double before, double change, bool is_after_mix) const {
        if (change <= goal) return GOAL;
        if (is_after_mix) return COUNT;
        if (change >= stall * before) return STALL;
        // Equivalent to change * (change / before)^mixing_from > goal; the logarithm needs fewer registers.
        bool is_far = change < before && mixing_from * __logf(static_cast<float>(change / before)) >
                                             __logf(static_cast<float>(goal / change));
        return is_far ? FAR_FROM_GOAL : COUNT;
    }
};

// Finishes a row: computes its new rank and contribution. `before` is its actual rank.
template <typename row_t>
__device__ inline void finish_row(row_t row, double before, double inverse_weight, double sum, double mass,
                                  const Equation &equation, const Vectors &vectors, Tally &tally) {
    double target = equation.target[row * equation.target_step];
    double teleport = equation.teleport[row * equation.teleport_step];
    double rank = equation.alpha * (sum * *vectors.scale) + (mass * target + teleport);
    tally.add(before, rank, inverse_weight == 0.0);
    vectors.ranks[row] = rank;
    vectors.to[row] = static_cast<real_t>(rank * inverse_weight);
    if (vectors.residuals != nullptr) vectors.residuals[row] = static_cast<float>(rank - before);
}

// Writes the measurements of a block for the others. All threads must call it.
__device__ inline void write_totals(const Tally &tally, Totals *written) {
    Totals mine = block_totals(tally);
    if (threadIdx.x == 0) written[blockIdx.x] = mine;
}

// Returns the measurements of all blocks, with the same bits in each block. All threads must call it.
__device__ inline Totals grid_totals(const Totals *written) {
    Tally all = ZERO_TALLY;
    for (int block = threadIdx.x; block < gridDim.x; block += blockDim.x) all.add(written[block]);
    return block_totals(all);
}

// Iterates as `launch` says, on a grid launched cooperatively. `rows.step(vectors, mass, tally)` finishes the rows of a
// block, always the same ones; `rows.each_range(use)` calls use(first, last) for ranges of rows that together are all
// of them. All threads of the block must call these.
template <typename Rows>
__device__ void iterate(const Launch &launch, long long n, const Equation &equation, const Store &store, double *smem,
                        Rows &rows) {
    __shared__ History history;
    __shared__ double weights[MOST_WINDOW], scale, before;
    Vectors vectors = {launch.ranks, launch.contributions, launch.following, nullptr, &scale};
    Mixing mixing(store, n);
    bool mixes = mixing.window > 0 && mixing.phase != WAITING;
    if (threadIdx.x == 0) {
        if (mixes && mixing.phase == CONTINUING) {
            history = *mixing.history;
        } else {
            history.begin();
        }
        scale = 1.0;
        before = launch.before;
    }
    Tally last = ZERO_TALLY;
    for (int part = threadIdx.x; part < launch.parts; part += blockDim.x) last.add(launch.latest[part]);
    double dangling = block_totals(last).dangling;
    int step = 0;
    Reason reason = COUNT;
    while (step < launch.count) {
        double mass = equation.alpha * dangling;
        if (mixes) vectors.residuals = mixing.residuals + history.next * n;
        Tally tally = ZERO_TALLY;
        rows.step(vectors, mass, tally);
        Totals *written = launch.partials + step % 2 * gridDim.x;  // double-buffered: other blocks may still read
        write_totals(tally, written);
        // Early enough that the launch ends with a plain step after the first of the mix.
        bool is_due = mixes && history.rest <= 1 && step + 3 <= launch.count;
        int differences = history.held;
        if (is_due) {  // a block reads only residuals of its own rows
            __syncthreads();
            Products products(differences);
            rows.each_range([&](long long first, long long last) {
                products.add(first, last, n, differences, history.next, mixing, smem);
            });
            products.write(mixing, smem);
        }
        grid_barrier(launch.arrived);
        Totals all = grid_totals(written);
        ++step;
        if (blockIdx.x == 0 && threadIdx.x == 0) launch.totals[step] = all;
        reason = launch.after(before, all.change, mixes && history.mixed & 1);
        bool begins = reason == FAR_FROM_GOAL && mixing.window > 0 && !mixes;
        if (reason == FAR_FROM_GOAL && mixing.window > 0) reason = COUNT;
        __syncthreads();  // no thread reads the old values any more
        if (threadIdx.x == 0) {
            scale = 1.0;
            before = all.change;
            if (begins) {
                history.begin();
            } else {
                history.keep(mixing.window);
            }
        }
        __syncthreads();
        mixes = mixes || begins;
        if (reason != COUNT) break;
        real_t *swap = vectors.from;
        vectors.from = vectors.to;
        vectors.to = swap;
        dangling = all.dangling;
        if (is_due) {
            if (blockIdx.x == 0) solve(differences, mixing, smem);
            grid_barrier(launch.arrived);  // also ends all reads of `written`
            if (threadIdx.x < differences) weights[threadIdx.x] = mixing.weights[threadIdx.x];
            __syncthreads();
            tally = mix(differences, n, mixing, history, weights, equation.inverse_out_weight,
                        vectors.ranks, vectors.from);
            write_totals(tally, written);
            grid_barrier(launch.arrived);
            Totals totals = grid_totals(written);
            double inverse = 1.0 / totals.change;
            dangling = totals.dangling * inverse;
            if (threadIdx.x == 0) {
                scale = inverse;
                history.add_mix(mixing.window / mixing.period, mixing.period, totals.change);
            }
            __syncthreads();
        }
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        launch.totals[0] = {static_cast<double>(step), static_cast<double>(reason), static_cast<double>(mixes)};
        if (mixes) *mixing.history = history;
    }
}
