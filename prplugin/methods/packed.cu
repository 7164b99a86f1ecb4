// Compression of edges in device memory, in the format of streamed.cu, whose kernels decode them.
//
// Mapping: one block per piece of PIECE edges, one thread per group of eight numbers; two scans over the block, of the
// starts of runs and of the widths, give all positions. Two launches: the first writes the bytes of each piece, which
// become offsets, the second the pieces.
// Memory: 8 bytes per edge read in each launch, the packed edges written once, byte by byte.
// Wins: used once per graph.

#include "../gpu/block_scan.cuh"

#define PIECE 2048
#define GROUP 8
#define THREADS (PIECE / GROUP)

typedef unsigned long long wide_t;

// Returns the number of bits of the widest of a group of numbers.
__device__ inline unsigned width_of(const unsigned *numbers) {
    unsigned together = 0;
#pragma unroll
    for (int k = 0; k < GROUP; ++k) together |= numbers[k];
    return 32 - __clz(together);
}

// Writes a group of numbers of `width` bits each, and the width.
__device__ inline void write_group(const unsigned *numbers, unsigned width, unsigned char *widths, unsigned char *data) {
    wide_t word = 0;
    unsigned held = 0;
    *widths = static_cast<unsigned char>(width);
#pragma unroll
    for (int k = 0; k < GROUP; ++k) {
        word |= wide_t(numbers[k]) << held;
        for (held += width; held >= 8; held -= 8, word >>= 8) *data++ = static_cast<unsigned char>(word);
    }
}

// Block b packs the keys from b * PIECE on, which are target * 2^32 + source in ascending order, to offsets[b] of
// `packed`, which is 0 before. Without `packed`, it writes the number of bytes to sizes[b] and the first target to
// rows[b].
extern "C" __global__ void __launch_bounds__(THREADS)
    pack(long long m, int bits, unsigned base, const wide_t *keys, const long long *offsets, unsigned char *packed,
         long long *sizes, long long *rows) {
    __shared__ unsigned run_rows[PIECE];
    __shared__ int run_starts[PIECE + 1];
    long long first = static_cast<long long>(blockIdx.x) * PIECE;
    int edges = static_cast<int>(min(m - first, static_cast<long long>(PIECE)));
    int thread = threadIdx.x, mine = GROUP * thread;
    unsigned mask = (1u << bits) - 1, steps[GROUP], starting = 0;
    wide_t before = 0;
    if (0 < mine && mine < edges) before = keys[first + mine - 1];
    unsigned source = mine ? static_cast<unsigned>(before) - base : 0;
#pragma unroll
    for (int k = 0; k < GROUP; ++k) {
        steps[k] = 0;
        if (mine + k >= edges) continue;
        wide_t key = keys[first + mine + k];
        if (mine + k == 0 || before >> 32 != key >> 32) starting |= 1u << k;
        steps[k] = (static_cast<unsigned>(key) - base - source) & mask;
        source = static_cast<unsigned>(key) - base;
        before = key;
    }
    int runs, run = block_scan(__popc(starting), &runs);
#pragma unroll
    for (int k = 0; k < GROUP; ++k) {
        if (!(starting >> k & 1)) continue;
        run_rows[run] = static_cast<unsigned>(keys[first + mine + k] >> 32);
        run_starts[run++] = mine + k;
    }
    if (thread == 0) run_starts[runs] = edges;
    __syncthreads();
    unsigned lengths[GROUP], gaps[GROUP];
#pragma unroll
    for (int k = 0; k < GROUP; ++k) {
        int of = mine + k;
        lengths[k] = of < runs ? run_starts[of + 1] - run_starts[of] - 1 : 0;
        gaps[k] = 0 < of && of < runs ? run_rows[of] - run_rows[of - 1] - 1 : 0;
    }
    unsigned length_width = width_of(lengths), gap_width = width_of(gaps), step_width = width_of(steps);
    wide_t all, at = block_scan(length_width | wide_t(gap_width) << 16 | wide_t(step_width) << 32, &all);
    int run_groups = (runs + GROUP - 1) / GROUP, edge_groups = (edges + GROUP - 1) / GROUP;
    unsigned data = 4 + 2 * run_groups + edge_groups;
    unsigned gap_data = data + static_cast<unsigned>(all & 0xffff);
    unsigned step_data = gap_data + static_cast<unsigned>(all >> 16 & 0xffff);
    unsigned end = step_data + static_cast<unsigned>(all >> 32);
    if (!packed) {
        if (thread == 0) {
            sizes[blockIdx.x] = (end + 15) / 16 * 16;
            rows[blockIdx.x] = run_rows[0];
        }
        return;
    }
    unsigned char *to = packed + offsets[blockIdx.x], *widths = to + 4;
    if (thread == 0) *reinterpret_cast<unsigned *>(to) = edges | runs << 16;
    if (thread < run_groups) {
        write_group(lengths, length_width, widths + thread, to + data + (at & 0xffff));
        write_group(gaps, gap_width, widths + run_groups + thread, to + gap_data + (at >> 16 & 0xffff));
    }
    if (thread < edge_groups) {
        write_group(steps, step_width, widths + 2 * run_groups + thread, to + step_data + (at >> 32));
    }
}
