// Partition of the work on rows that are grouped into bins of 2^shift neighbouring groups.
//
// The rows of a bin are split into pieces of `length`, and its groups into parts of `width`, whose counts or sums fit
// in shared memory. A block processes the rows of one part in one piece, and adds its results to global memory. Blocks
// of the same piece are neighbours, so that one reads it from memory and the others from the L2 cache. A bin of many
// rows has many pieces, so that all blocks have similar work.
//
//   state_t  unsigned int or unsigned long long

#include "block_scan.cuh"

#define BINS 256

struct Part {
    long long begin;   // the first row of the piece
    int rows;  // rows of the piece; 0: no work for this block
    unsigned int low;  // the first group of the part
};

// Returns the part and the piece of this block, given the begin of each bin. All threads must call it, once.
__device__ inline Part part_of_block(long long m, const state_t *starts, int shift, int parts, int width, int length) {
    __shared__ Part mine;
    unsigned int number = blockIdx.x / parts, part = blockIdx.x % parts;
    if (threadIdx.x == 0) mine.rows = 0;
    int bin = threadIdx.x;
    long long begin = 0, end = 0;
    if (bin < BINS) {
        begin = starts[bin];
        end = bin + 1 < BINS ? starts[bin + 1] : m;
    }
    unsigned int pieces = (end - begin + length - 1) / length, all;
    unsigned int before = block_scan(pieces, &all);
    if (before <= number && number < before + pieces) {
        begin += static_cast<long long>(number - before) * length;
        mine = {begin, static_cast<int>(min(end - begin, static_cast<long long>(length))),
                (static_cast<unsigned int>(bin) << shift) + part * width};
    }
    __syncthreads();
    return mine;
}
