// How many rows each group has, from rows that are together by bins of 2^shift neighbouring groups.
//
// Mapping: the rows of a bin are cut into pieces, and its groups into parts whose counts fit shared memory. A block takes
// a part and a piece: it reads the piece, counts the rows of the part, and adds what it counted to the sizes. Blocks of
// the same piece are neighbours, so that one reads from memory and the others from the L2. A bin of many rows has many
// pieces, so that no block has more to do than another.
// Memory: each row once, and once more from the L2 for each further part; at most an addition in the L2 a group and
// piece, neighbouring groups together. The bins cost each row twice in and once out before.
// Wins: where there are more sizes than stay in the L2, and several rows a group: `group_sizes` has an addition a row,
// each on its own.
//
//   state_t  unsigned int or unsigned long long

#include "block_scan.cuh"

#define THREADS 512
#define BLOCKS 4
#define BINS 256
#define COUNTED 12000
#define AT_A_TIME 8

// `sizes` are 0 before; a part has `width` groups, at most COUNTED, and a piece at most `length` rows.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) binned_sizes(
    long long m, const unsigned int *rows, const state_t *starts, int shift, int parts, int width, int length,
    unsigned int *sizes) {
    __shared__ unsigned int counts[COUNTED];
    __shared__ const unsigned int *piece;
    __shared__ int held;
    __shared__ unsigned int low;
    unsigned int number = blockIdx.x / parts, part = blockIdx.x % parts;

    int bin = threadIdx.x;
    state_t begin = 0, end = 0;
    if (bin < BINS) {
        begin = starts[bin];
        end = bin + 1 < BINS ? starts[bin + 1] : m;
    }
    unsigned int pieces = (end - begin + length - 1) / length, all;
    unsigned int before = block_scan(pieces, &all);
    if (number >= all) return;
    if (before <= number && number < before + pieces) {
        begin += static_cast<state_t>(number - before) * length;
        piece = rows + begin;
        held = min(end - begin, static_cast<state_t>(length));
        low = (static_cast<unsigned int>(bin) << shift) + part * width;
    }
    for (int group = threadIdx.x; group < width; group += THREADS) counts[group] = 0;
    __syncthreads();

    const unsigned int *mine = piece;
    int count = held;
    unsigned int least = low;
    for (int first = threadIdx.x; first < count; first += AT_A_TIME * THREADS) {
        unsigned int groups[AT_A_TIME];
#pragma unroll
        for (int item = 0; item < AT_A_TIME; ++item) {
            int place = first + item * THREADS;
            groups[item] = place < count ? mine[place] - least : ~0u;  // past the end: in no part
        }
#pragma unroll
        for (int item = 0; item < AT_A_TIME; ++item) {
            if (groups[item] < width) atomicAdd(counts + groups[item], 1u);
        }
    }
    __syncthreads();
    for (int group = threadIdx.x; group < width; group += THREADS) {
        if (counts[group]) atomicAdd(sizes + least + group, counts[group]);
    }
}
