// Anderson mixing within a launch of many iterations (D. G. Anderson 1965; in the form of H. F. Walker and P. Ni,
// "Anderson acceleration for fixed-point iterations", SIAM J. Numer. Anal. 49, 2011).
//
// Iteration k maps x_k to y_k = G x_k; r_k = y_k - x_k is its residual. At every p-th iteration the weights g minimise
//
//     || r_k - sum_i g_i (r_(k-i+1) - r_(k-i)) ||_2,   i = 1 .. m,                                               (1)
//
// by normal equations with a ridge of RIDGE times their trace; the next iterate is
//
//     z = max(0, y_k - sum_i g_i (y_(k-i+1) - y_(k-i))),   x_(k+1) = z / s,   s = sum(z).                        (2)
//
// In the other iterations x_(k+1) = y_k. The last m + 1 residuals are stored as float32, and so is c = z - y_k of the
// last m / p mixes, which give the differences of the y_j in (2): x_(j+1) is y_j, or (y_j + c) / s after a mix, and
//
//     y_(j+1) - y_j = r_(j+1) + x_(j+1) - y_j = r_(j+1),   or   r_(j+1) + c - (s - 1) x_(j+1).                   (3)
//
// A residual may grow after a mix. The host ends all mixing after as many iterations as plain ones would take.
//
// z is not divided by s at once: the next iteration multiplies what it reads by `scale` = 1 / s.
//
// Mapping: before the barrier that ends an iteration, each block multiplies the residuals of its own rows, in chunks
// that fit in shared memory, one thread per pair; then one block solves the system in shared memory; then one thread
// per vertex mixes, in a grid-stride loop. It takes two more barriers.
// Memory: per iteration one residual written, 4 bytes per vertex; at each p-th, m + 1 residuals read twice and m / p
// corrections once, and per vertex 20 bytes read and 16 written.
// Wins: wherever many iterations are left, since a pass over the edges moves more.

#define MOST_WINDOW 16       // m, at most
#define MOST_CORRECTIONS 2   // m / p, at most
#define FIRST 3              // residuals before the first mix
#define RIDGE 1e-12

// State of the history; the same in all blocks.
struct History {
    int held;  // number of residual differences available
    int next;  // row of the next residual
    int latest;  // row of the last correction
    int rest;         // iterations until the next mix, this one included
    unsigned mixed;  // bit i: the i-th residual before the next follows a mix
    double excess[MOST_CORRECTIONS];  // s - 1

    __device__ void begin() {
        held = next = latest = 0;
        rest = FIRST;
        mixed = 0;
    }

    __device__ void keep(int window) {
        held = min(held + 1, window);
        next = next == window ? 0 : next + 1;
        rest = max(rest - 1, 0);
        mixed <<= 1;
    }

    __device__ void add_mix(int corrections, int period, double sum) {
        latest = latest + 1 == corrections ? 0 : latest + 1;
        excess[latest] = sum - 1.0;
        mixed |= 1;
        rest = period;
    }
};

#define HISTORY_STATE 16  // doubles
static_assert(sizeof(History) <= 8 * HISTORY_STATE, "as much room as the host has for it");

enum Phase { WAITING, BEGINNING, CONTINUING };

// What a launch gets for it. `vectors`: room for residuals, then corrections; `state`: HISTORY_STATE for the history, m for
// the weights, then the products.
struct Store {
    int window, period, phase, width;  // as in `Mixing`
    float *vectors;
    double *state;
};

struct Mixing {
    int window, period;  // m and p; m = 0: plain iterations only
    int phase;   // whether mixing begins when the goal is far, begins with this launch, or continues from the last one
    int width;   // rows whose residuals shared memory holds at a time
    float *residuals, *corrections;  // (m + 1) x n and (m / p) x n
    History *history;                // from launch to launch
    double *weights, *partials;      // g; and one product per pair of (1) and block of the grid

    __device__ Mixing(const Store &store, long long n)
        : window(store.window), period(store.period), phase(store.phase), width(store.width), residuals(store.vectors),
          corrections(store.vectors + (store.window + 1) * n), history(reinterpret_cast<History *>(store.state)),
          weights(store.state + HISTORY_STATE), partials(store.state + HISTORY_STATE + store.window) {}

    // The row `count` before another in the ring buffer of residuals.
    __device__ int before(int place, int count) const {
        return place < count ? place + window + 1 - count : place - count;
    }
};

// Products of all pairs that the normal equations of (1) need, over some rows: one pair per thread, possibly over a
// part of the rows. Vector 0 is r_k, and vector i is r_(k-i+1) - r_(k-i).
struct Products {
    int i, j, pair, pairs, portion, portions;
    double product;

    __device__ Products(int differences) : i(1), product(0.0) {
        pairs = differences * (differences + 3) / 2;
        pair = threadIdx.x % pairs;
        portion = threadIdx.x / pairs;
        portions = blockDim.x / pairs;
        for (j = pair; j > i; ++i) j -= i + 1;
    }

    // Adds rows first..last, which this block has written; `tile` is in shared memory. All threads must call it.
    __device__ void add(long long first, long long last, long long n, int differences, int newest, const Mixing &mixing,
                        double *tile) {
        int width = mixing.width;
        int stride = width + 1;  // one column of padding avoids bank conflicts
        for (long long begin = first; begin < last; begin += width) {
            int rows = static_cast<int>(min(static_cast<long long>(width), last - begin));
            for (int vector = threadIdx.x / WARP; vector <= differences; vector += blockDim.x / WARP) {
                const float *left = mixing.residuals + mixing.before(newest, max(vector - 1, 0)) * n + begin;
                const float *right = mixing.residuals + mixing.before(newest, vector) * n + begin;
#pragma unroll 4
                for (int row = threadIdx.x % WARP; row < rows; row += WARP) {
                    double value = left[row];
                    tile[vector * stride + row] = vector == 0 ? value : value - right[row];
                }
            }
            __syncthreads();
            if (portion < portions) {
                for (int row = portion; row < rows; row += portions) {
                    product += tile[i * stride + row] * tile[j * stride + row];
                }
            }
            __syncthreads();
        }
    }

    // Writes the sums of the block. All threads must call it.
    __device__ void write(const Mixing &mixing, double *tile) {
        tile[threadIdx.x] = product;
        __syncthreads();
        if (portion > 0) return;
        double sum = 0.0;
        for (int other = 0; other < portions; ++other) sum += tile[other * pairs + pair];
        mixing.partials[static_cast<long long>(pair) * gridDim.x + blockIdx.x] = sum;
    }
};

// Solves (1) in one block: adds up the sums of all blocks, in order, and eliminates in shared memory. All threads of
// the block must call it.
__device__ inline void solve(int count, const Mixing &mixing, double *system) {
    int lane = threadIdx.x % WARP, columns = count + 1;
    for (int pair = threadIdx.x / WARP; pair < count * (count + 3) / 2; pair += blockDim.x / WARP) {
        const double *partials = mixing.partials + static_cast<long long>(pair) * gridDim.x;
        double sum = 0.0;
#pragma unroll 16
        for (int block = lane; block < gridDim.x; block += WARP) sum += partials[block];
        for (int distance = WARP / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, distance);
        int i = 1, j = pair;
        for (; j > i; ++i) j -= i + 1;
        if (lane == 0) {
            system[(i - 1) * columns + (j == 0 ? count : j - 1)] = sum;
            if (j > 0) system[(j - 1) * columns + i - 1] = sum;
        }
    }
    __syncthreads();
    if (threadIdx.x >= WARP) return;
    double trace = 0.0;
    for (int i = 0; i < count; ++i) trace += system[i * columns + i];
    __syncwarp();
    if (lane < count) system[lane * columns + lane] += RIDGE * trace;
    __syncwarp();
    // Gauss-Jordan elimination in place; no pivoting, since the system is symmetric and positive definite.
    for (int k = 0; k < count; ++k) {
        double inverse = 1.0 / system[k * columns + k];
        for (int at = lane; at < count * columns; at += WARP) {
            int i = at / columns, j = at % columns;
            if (i != k && j > k) system[at] -= system[i * columns + k] * inverse * system[k * columns + j];
        }
        __syncwarp();
    }
    double weight = lane < count ? system[lane * columns + count] / system[lane * columns + lane] : 0.0;
    bool is_solved = __all_sync(0xffffffffu, isfinite(weight));
    if (lane < count) mixing.weights[lane] = is_solved ? weight : 0.0;
}

// Replaces ranks by z of (2), and writes their contributions, not divided by s. The sum of z is
// returned as `change` of the tally. All threads of the grid must call it.
template <typename contribution_t>
__device__ inline Tally mix(int differences, long long n, const Mixing &mixing, const History &history,
                            const double *weights, const double *inverse_out_weight, double *ranks,
                            contribution_t *contributions) {
    const int loads_in_flight = 4;
    int newest = mixing.before(history.next, 1), corrections = mixing.window / mixing.period;
    int upcoming = history.latest + 1 == corrections ? 0 : history.latest + 1;
    Tally tally = ZERO_TALLY;
    long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long v = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; v < n; v += stride) {
        double rank = ranks[v], earlier = rank, mixed = rank;  // `earlier`: y_j, from j = k back
        int correction = history.latest;
        for (int first = 0; first < differences; first += loads_in_flight) {
            float loaded[loads_in_flight];
#pragma unroll
            for (int k = 0; k < loads_in_flight; ++k) {
                int age = min(first + k, differences - 1);
                loaded[k] = mixing.residuals[mixing.before(newest, age) * n + v];
            }
#pragma unroll
            for (int k = 0; k < loads_in_flight; ++k) {
                int age = first + k;
                if (age < differences) {
                    double residual = loaded[k], difference = residual;
                    if (history.mixed >> (age + 1) & 1) {
                        difference += mixing.corrections[correction * n + v];
                        difference -= history.excess[correction] * (earlier - residual);
                        correction = correction == 0 ? corrections - 1 : correction - 1;
                    }
                    mixed -= weights[age] * difference;
                    earlier -= difference;
                }
            }
        }
        mixed = fmax(mixed, 0.0);
        mixing.corrections[upcoming * n + v] = static_cast<float>(mixed - rank);
        double inverse_weight = inverse_out_weight[v];
        tally.change.add(mixed);
        if (inverse_weight == 0.0) tally.dangling.add(mixed);
        ranks[v] = mixed;
        contributions[v] = static_cast<contribution_t>(mixed * inverse_weight);
    }
    return tally;
}
