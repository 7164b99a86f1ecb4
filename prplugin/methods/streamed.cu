// Decompression and row sums of a chunk of edges copied from the host, in equal pieces: Kumar, Sondhi and Mittal 2012,
// whose Cell processors compute in small local stores that the edges pass through.
//
// Edges are ordered by row, then by source, and split into pieces of PIECE edges. Each piece is packed on its own, so
// that an edge takes one or two bytes instead of four. A piece consists of
//
//   edges, runs   their numbers, 2 bytes each; a run is the part of a row in the piece
//   widths        one byte for each group of eight of the following numbers
//   lengths       of each run, less 1
//   gaps          number of empty rows between a run's row and the one before; 0 for the first
//   steps         differences of successive sources, modulo a power of two
//
// and eight neighbouring numbers take as many bytes as the widest of them has bits, its width. One thread decodes one
// group: a scan of the widths over the block gives its position, a scan of the steps its sources. Pieces begin at
// multiples of 16 bytes.
//
// The table in device memory has five values per piece: its offset in the chunk, its bytes, its first edge in the
// chunk, the row of that edge, and the piece in which that row begins; a last entry ends the table.
//
// Mapping: `sum_streamed`: one block per piece, one thread per group of eight edges to decode; terms are written to
// shared memory and summed there, one thread per short run, one warp per long run. `collect`, after the last chunk: one
// block per piece, for the row that ends in it and begins in an earlier piece of any chunk.
// Memory: 1 to 2.5 bytes per edge (and a normalized weight), coalesced, copied over PCIe or NVLink first; a gathered
// contribution; one sum per row; 72 bytes per piece.
// Wins: only where the edges do not fit in GPU memory: the bus between host and GPU limits it.
//
//   WEIGHTED  0 or 1

#include "../gpu/block_scan.cuh"
#include "../gpu/pieces.cuh"

#define PIECE 2048
#define GROUP 8  // numbers; a block has a thread for each group of a piece's edges
#define COLUMNS 5

// Returns the number of `width` bits (at most 31) that begins at bit `bit`.
__device__ inline unsigned number_at(const unsigned *words, unsigned bit, unsigned width) {
    unsigned long long two = static_cast<unsigned long long>(words[bit / 32 + 1]) << 32 | words[bit / 32];
    return static_cast<unsigned>(two >> bit % 32) & ((1u << width) - 1);
}

// Decodes the thread's group of `count` numbers, adds `each` to every number, and returns inclusive prefix sums over
// the piece in `sums`. Advances `widths` and `data` to the next array. All threads of the block must call it.
__device__ inline void decode_prefix_sums(const unsigned *words, int count, unsigned each, unsigned &widths,
                                          unsigned &data, unsigned *sums) {
    int groups = (count + GROUP - 1) / GROUP, thread = threadIdx.x;
    unsigned width = 0, all = 0, sum = 0;
    if (thread < groups) width = reinterpret_cast<const unsigned char *>(words)[widths + thread];
    unsigned bit = 8 * (data + block_scan(width, &all));
#pragma unroll
    for (int k = 0; k < GROUP; ++k) sums[k] = sum += number_at(words, bit + k * width, width) + each;
    widths += groups;
    data += all;
    unsigned before = block_scan(sum, &all);
#pragma unroll
    for (int k = 0; k < GROUP; ++k) sums[k] += before;
}

// Block b sums the runs of piece first + b. `packed` and `normalized_weights` point to the chunk, which begins with
// piece
// `first`; sources are below 2^bits.
extern "C" __global__ void sum_streamed(long long first, int bits, const long long *pieces, const uint4 *packed,
                                        const real_t *normalized_weights, const real_t *contributions, double *row_sums,
                                        Partials *partials) {
    extern __shared__ double smem[];  // the packed piece, then its terms
    __shared__ uint4 four_sources[PIECE / 4];
    __shared__ unsigned rows[PIECE];  // of each run, relative to the first
    __shared__ unsigned short starts[PIECE + 1];  // of each run among the terms
    long long piece = first + blockIdx.x;
    const long long *here = pieces + COLUMNS * piece;
    int wide = static_cast<int>(here[1] / 16), thread = threadIdx.x, mine = GROUP * thread;
    const uint4 *from = packed + here[0] / 16;
    for (int k = thread; k < wide; k += blockDim.x) reinterpret_cast<uint4 *>(smem)[k] = __ldcs(from + k);
    __syncthreads();
    const unsigned *words = reinterpret_cast<const unsigned *>(smem);
    int edges = static_cast<int>(words[0] & 0xffffu), runs = static_cast<int>(words[0] >> 16);
    unsigned widths = 4, data = 4 + 2 * ((runs + GROUP - 1) / GROUP) + (edges + GROUP - 1) / GROUP;
    unsigned sums[GROUP];
    decode_prefix_sums(words, runs, 1, widths, data, sums);
    if (thread == 0) starts[0] = 0;
#pragma unroll
    for (int k = 0; k < GROUP; ++k) {
        if (mine + k < runs) starts[mine + k + 1] = static_cast<unsigned short>(sums[k]);
    }
    decode_prefix_sums(words, runs, 1, widths, data, sums);
#pragma unroll
    for (int k = 0; k < GROUP; ++k) {
        if (mine + k < runs) rows[mine + k] = sums[k] - 1;
    }
    decode_prefix_sums(words, edges, 0, widths, data, sums);
    unsigned mask = (1u << bits) - 1;
    four_sources[2 * thread] = uint4{sums[0] & mask, sums[1] & mask, sums[2] & mask, sums[3] & mask};
    four_sources[2 * thread + 1] = uint4{sums[4] & mask, sums[5] & mask, sums[6] & mask, sums[7] & mask};
    __syncthreads();  // sources are complete, and the packed piece is no longer needed
    const unsigned *sources = reinterpret_cast<const unsigned *>(four_sources);
    double *terms = smem;
    for (int edge = thread; edge < edges; edge += blockDim.x) {
#if WEIGHTED
        terms[edge] = __dmul_rn(__ldg(contributions + sources[edge]), normalized_weights[here[2] + edge]);
#else
        terms[edge] = __ldg(contributions + sources[edge]);
#endif
    }
    __syncthreads();
    bool continued = here[4] < piece, continues = here[COLUMNS + 4] <= piece;
    int lane = thread % WARP;
    for (int base = thread - lane; base < runs; base += blockDim.x) {  // uniform in a warp
        int run = base + lane;
        bool is_one = run < runs;
        Sum sum = run_sum(terms, is_one ? starts[run] : 0, is_one ? starts[run + 1] : 0);
        bool is_open = continues && run == runs - 1;
        if (run == 0) partials[piece].front = {0.0, 0.0};
        if (is_open) {
            partials[piece].tail = sum;
        } else if (run == 0 && continued) {
            partials[piece].front = sum;
        } else if (is_one) {
            row_sums[here[3] + rows[run]] = sum.value();
        }
    }
}

// One block per piece: completes the row that ends in it and begins in an earlier one.
extern "C" __global__ void collect(const long long *pieces, const Partials *partials, double *row_sums) {
    long long piece = blockIdx.x;
    const long long *here = pieces + COLUMNS * piece;
    if (here[4] == piece || here[COLUMNS + 4] == here[4]) return;  // it is summed already, or does not end here
    Sum sum = crossing_sum(partials, here[4], piece);
    if (threadIdx.x == 0) row_sums[here[3]] = sum.value();
}
