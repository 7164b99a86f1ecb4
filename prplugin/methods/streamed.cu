// A chunk of the edges, which has just come from the host, summed in equal shares: Kumar, Sondhi and Mittal 2012, whose
// Cell processors, too, compute out of small local stores that the edges pass through.
//
// Mapping: `sum_streamed` a block a piece of `size` edges, whose terms all its threads bring to shared memory and then
// sum there, a thread a short row, a warp a long one; `collect`, after the last chunk, a block a piece, for the row that
// ends there and began in another one, of the same chunk or not.
// Memory: an index an edge (and a share), coalesced, over PCIe or NVLink first; a gathered contribution; an offset and a
// sum a row; 40 bytes a piece.
// Wins: where the edges do not fit the GPU's memory, and only there: it is as fast as the way from host to GPU.

#include "pieces.cuh"
#include "edge_term.cuh"

// Block b sums the runs of piece first + b. `sources` and `shares` hold the chunk alone, which begins with piece `first`.
extern "C" __global__ void sum_streamed(long long first, long long m, long long size, const index_t *rows,
                                        const offset_t *starts, const long long *heads, const index_t *sources,
                                        const real_t *shares, const real_t *contributions, double *pulled,
                                        Partials *partials) {
    extern __shared__ double terms[];
    long long piece = first + blockIdx.x, begin = piece * size, end = min(begin + size, m), chunk = first * size;
    for (long long edge = begin + threadIdx.x; edge < end; edge += blockDim.x) {
        terms[edge - begin] = edge_term(sources, shares, contributions, edge - chunk);
    }
    __syncthreads();
    sum_runs(terms, begin, end, heads[piece], heads[piece + 1], rows, starts, pulled, partials + piece);
}
