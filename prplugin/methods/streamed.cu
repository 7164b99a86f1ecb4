// Decompression and row sums of packed edges, in equal pieces, for `streamed` and `packed`: Kumar, Sondhi and Mittal
// 2012, whose Cell processors compute in small local stores that the edges pass through.
//
// Edges are ordered by row, then by source, and split into pieces of PIECE edges. Each piece is packed on its own, so
// that an edge takes one or two bytes instead of four. A piece consists of
//
//   edges, runs   their numbers, 2 bytes each; a run is the part of a row in the piece
//   widths        one byte for each group of eight of the following numbers
//   lengths       of each run, less 1
//   gaps          number of empty rows between a run's row and the one before; 0 for the first
//   steps         differences of successive sources, which are less `base`, modulo 2^bits
//
// and eight neighbouring numbers take as many bytes as the widest of them has bits, its width. One thread decodes one
// group: a scan of the widths over the block gives its position, a scan of the steps its sources. Pieces begin at
// multiples of 16 bytes.
//
// The table in device memory has five values per piece: its offset in the chunk, its bytes, its first edge in the
// chunk, the row of that edge, and the piece in which that row begins; a last entry ends the table.
//
// Mapping: `sum_pieces`: one block per piece, one thread per 16 edges. It decodes them, gathers their contributions,
// and adds up those of each run. A run that continues in other threads gets their sums by a segmented scan
// over the block. `collect`: one warp per piece, for the row that ends in it and begins in an earlier piece.
// Memory: 1 to 2.7 bytes per edge (and a normalized weight), coalesced; a gathered contribution; a sum per row; 72 bytes
// per piece.
// Wins: where other layouts do not fit in GPU memory.
//
// With ADDING, rows have edges in several parts, which are summed one after another.
//
//   WEIGHTED  0 or 1
//   ADDING  0 1

#include "../gpu/pieces.cuh"

#define PIECE 2048
#define GROUP 8     // numbers
#define GROUPS 2    // of numbers that a thread decodes
#define NUMBERS (GROUPS * GROUP)
#define THREADS (PIECE / NUMBERS)
#define WARPS (THREADS / WARP)
#define COLUMNS 5
#define BLOCKS 6    // per multiprocessor
#define ALL 0xffffffffu

typedef unsigned long long wide_t;

// Returns the number of `width` bits (at most 31) that begins at bit `bit`.
__device__ inline unsigned number_at(const unsigned *words, unsigned bit, unsigned width) {
    unsigned both = __funnelshift_r(words[bit / 32], words[bit / 32 + 1], bit % 32);
    return both & ((1u << width) - 1);
}

// Returns the exclusive prefix sum of the threads' values, and in `*total` the sum over the block. All threads must
// call it, each time with another array `warps` in shared memory.
template <typename T>
__device__ inline T scan_once(T value, T *warps, T *total) {
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    T sum = value;
#pragma unroll
    for (int distance = 1; distance < WARP; distance *= 2) {
        T other = __shfl_up_sync(ALL, sum, distance);
        if (lane >= distance) sum += other;
    }
    if (lane == WARP - 1) warps[warp] = sum;
    __syncthreads();
    T before = 0, all = 0;
#pragma unroll
    for (int other = 0; other < WARPS; ++other) {
        if (other < warp) before += warps[other];
        all += warps[other];
    }
    *total = all;
    return before + sum - value;
}

// Returns the sum of the lane `distance` above.
__device__ inline Sum shuffled_down(const Sum &sum, int distance) {
    Sum other;
    other.high = __shfl_down_sync(ALL, sum.high, distance);
    other.low = __shfl_down_sync(ALL, sum.low, distance);
    return other;
}

// Sets the sum of a row, or adds to that of other parts.
__device__ inline void set(double *row_sum, const Sum &sum) {
#if ADDING
    *row_sum += sum.value();
#else
    *row_sum = sum.value();
#endif
}

// Block b sets the sums of the rows within piece first + b. `packed` and `normalized_weights` point to the chunk, which
// begins with piece `first`.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    sum_pieces(long long first, int bits, unsigned base, const long long *pieces, const uint4 *packed,
               const real_t *normalized_weights, const real_t *contributions, double *row_sums, Partials *partials) {
    extern __shared__ uint4 smem[];  // the packed piece
    __shared__ unsigned row_at[PIECE];  // row of the run that starts at an edge, relative to the first
    __shared__ unsigned starts[PIECE / 32];  // one bit per edge: whether a run starts there
    __shared__ wide_t of_widths[WARPS], of_runs[WARPS];
    __shared__ unsigned of_steps[WARPS];
    __shared__ Sum heads[WARPS];
    __shared__ bool any_start[WARPS];
    long long piece = first + blockIdx.x;
    const long long *here = pieces + COLUMNS * piece;
    int count = static_cast<int>(here[1] / 16), thread = threadIdx.x, mine = NUMBERS * thread;
    const uint4 *from = packed + here[0] / 16;
    for (int k = thread; k < count; k += THREADS) smem[k] = __ldcs(from + k);
    if (thread < PIECE / 32) starts[thread] = 0;
    __syncthreads();
    const unsigned *words = reinterpret_cast<const unsigned *>(smem);
    const unsigned char *widths = reinterpret_cast<const unsigned char *>(smem) + 4;
    int edges = static_cast<int>(words[0] & 0xffffu), runs = static_cast<int>(words[0] >> 16);
    int run_groups = (runs + GROUP - 1) / GROUP, edge_groups = (edges + GROUP - 1) / GROUP;

    // The positions of the thread's groups of lengths, gaps and steps, by one scan of all widths; each sum has 13 bits.
    unsigned length_widths[GROUPS], gap_widths[GROUPS], step_widths[GROUPS];
    wide_t all, before = 0;
#pragma unroll
    for (int g = 0; g < GROUPS; ++g) {
        int group = GROUPS * thread + g;
        length_widths[g] = group < run_groups ? widths[group] : 0;
        gap_widths[g] = group < run_groups ? widths[run_groups + group] : 0;
        step_widths[g] = group < edge_groups ? widths[2 * run_groups + group] : 0;
        before += length_widths[g] | wide_t(gap_widths[g]) << 16 | wide_t(step_widths[g]) << 32;
    }
    before = scan_once(before, of_widths, &all);
    unsigned data = 4 + 2 * run_groups + edge_groups;
    unsigned length_bit = 8 * (data + static_cast<unsigned>(before & 0xffff));
    data += static_cast<unsigned>(all & 0xffff);
    unsigned gap_bit = 8 * (data + static_cast<unsigned>(before >> 16 & 0xffff));
    data += static_cast<unsigned>(all >> 16 & 0xffff);
    unsigned step_bit = 8 * (data + static_cast<unsigned>(before >> 32));

    // Prefix sums of lengths and gaps, which are starts and rows, and of steps, which are sources.
    unsigned lengths = 0, gaps = 0, sources[NUMBERS], step = 0, ignored;
    if (mine < runs) {
        unsigned length_at = length_bit, gap_at = gap_bit;
#pragma unroll
        for (int k = 0; k < NUMBERS; ++k) {
            int g = k / GROUP;
            lengths += number_at(words, length_at, length_widths[g]) + 1;
            gaps += number_at(words, gap_at, gap_widths[g]) + 1;
            length_at += length_widths[g];
            gap_at += gap_widths[g];
        }
    }
#pragma unroll
    for (int k = 0; k < NUMBERS; ++k) {
        sources[k] = step += number_at(words, step_bit, step_widths[k / GROUP]);
        step_bit += step_widths[k / GROUP];
    }
    before = scan_once(lengths | wide_t(gaps) << 32, of_runs, &all);
    step = scan_once(step, of_steps, &ignored);
    real_t terms[NUMBERS];
    unsigned mask = (1u << bits) - 1;
#pragma unroll
    for (int k = 0; k < NUMBERS; ++k) sources[k] = ((step + sources[k]) & mask) + base;
#pragma unroll
    for (int k = 0; k < NUMBERS; ++k) terms[k] = mine + k < edges ? __ldg(contributions + sources[k]) : real_t(0);
    if (mine < runs) {
        unsigned start = static_cast<unsigned>(before), row = static_cast<unsigned>(before >> 32);
#pragma unroll
        for (int k = 0; k < NUMBERS; ++k) {
            if (mine + k >= runs) break;
            int g = k / GROUP;
            row += number_at(words, gap_bit, gap_widths[g]);
            row_at[start] = row++;
            atomicOr(starts + start / 32, 1u << start % 32);
            start += number_at(words, length_bit, length_widths[g]) + 1;
            gap_bit += gap_widths[g];
            length_bit += length_widths[g];
        }
    }
    __syncthreads();

    // Runs that end in this thread: `head` is the sum of the one that starts before it.
    bool continued = here[4] < piece, continues = here[COLUMNS + 4] <= piece;
    unsigned starting = starts[mine / 32] >> mine % 32 & ((1u << NUMBERS) - 1);
    Sum head = ZERO_SUM, sum = ZERO_SUM;
    int open = -1;  // start of the last run that starts in this thread
    if (thread == 0) partials[piece].front = {0.0, 0.0};
    auto finish = [&](int start, const Sum &run) {
        if (start == 0 && continued) {
            partials[piece].front = run;
        } else {
            set(row_sums + here[3] + row_at[start], run);
        }
    };
#pragma unroll
    for (int k = 0; k < NUMBERS; ++k) {
        if (starting >> k & 1) {
            if (open < 0) {
                head = sum;
            } else {
                finish(open, sum);
            }
            open = mine + k;
            sum = ZERO_SUM;
        }
#if WEIGHTED
        if (mine + k < edges) sum.add(__dmul_rn(terms[k], normalized_weights[here[2] + mine + k]));
#else
        sum.add(terms[k]);
#endif
    }
    if (open < 0) head = sum;

    // The last run of a thread continues up to the next thread in which one starts.
    int lane = thread % WARP, warp = thread / WARP;
    unsigned flags = __ballot_sync(ALL, open >= 0), above = flags >> lane;
    int reach = above ? min(__ffs(above) - 1, WARP - 1 - lane) : WARP - 1 - lane;
#pragma unroll
    for (int distance = 1; distance < WARP; distance *= 2) {
        Sum other = shuffled_down(head, distance);
        if (distance <= reach) head.add(other);
    }
    if (lane == 0) {
        heads[warp] = head;
        any_start[warp] = flags != 0;
    }
    __syncthreads();
    Sum rest = shuffled_down(head, 1);
    if (open < 0) return;
    if (lane < WARP - 1) sum.add(rest);
    bool is_last = above >> 1 == 0;
    for (int next = warp + 1; is_last && next < WARPS; ++next) {
        sum.add(heads[next]);
        is_last = !any_start[next];
    }
    if (is_last && continues) {
        partials[piece].tail = sum;
    } else {
        finish(open, sum);
    }
}

// One warp per piece, `count` from `first` on: completes the row that ends in it and begins in an earlier one.
extern "C" __global__ void collect(long long count, long long first, const long long *pieces, const Partials *partials,
                                   double *row_sums) {
    long long number = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) / WARP, piece = first + number;
    if (number >= count) return;
    const long long *here = pieces + COLUMNS * piece;
    if (here[4] == piece || here[COLUMNS + 4] == here[4]) return;  // it is summed already, or does not end here
    Sum sum = crossing_sum(partials, here[4], piece);
    if (threadIdx.x % WARP == 0) set(row_sums + here[3], sum);
}
