// Bowen 2022 in the paper's form: float32, a division by the degree for each edge, scores updated in place, and those
// that move by at most epsilon kept. `form="paper"` of `warp`, `block` and `segmented`.
//
// Mapping: one thread, a warp or a block per vertex, in grid-stride loops over the vertices start to end - 1 of a
// segment. The paper launches 256 blocks of 1,024 threads, and smaller blocks for the block sum.
// Memory: two offsets of 8 bytes per vertex; per edge a neighbour with a weight that is not read, a gathered score and a
// gathered degree of 8 bytes. One atomic addition per thread, warp or block to the segment's counter.
// Wins: never compared with node.cu, warp.cu and block.cu; a segment alone sees new scores of earlier segments.
//
// The paper's listing writes the neighbour's score; its code, which these kernels follow, the vertex's own
// (https://github.com/chrisliu/hetero-compute, src/kernels/gpu/pr.cuh).

#define WARP_SIZE 32

struct Neighbor {
    int v;
    float w;
};

// The arguments of each kernel: index[0] belongs to vertex start, degrees and score are of all vertices.
#define SEGMENT                                                                                                   \
    const long long *index, const Neighbor *neighbors, const long long *degrees, int start, int end, int nodes,  \
        float damp, float epsilon, float *score, int *updated

// Section 2.1, the incoming total of a vertex:
//   for(all neighbors, nei, of n){
//       n.incoming_total+=score[nei]/nei.degree;
//   }
__device__ inline float incoming_total(const long long *index, const Neighbor *neighbors, const long long *degrees,
                                       int row, int first, int step, const float *score) {
    float total = 0;
    for (long long i = index[row] + first; i < index[row + 1]; i += step) {
        int v = neighbors[i].v;
        total += score[v] / degrees[v];
    }
    return total;
}

// and its update:
//   new_score= ((1.0f - damp) / g.num_nodes)+damp*incoming_total;
//   if(absolute_value(score[nei]-new_score)>epsilon) {
//       score[nei]=new_score
//       updated++;
//   }
__device__ inline int update(float *score, int n, int nodes, float damp, float epsilon, float total) {
    float new_score = (1.0f - damp) / nodes + damp * total;
    if (!(fabsf(new_score - score[n]) > epsilon)) return 0;
    score[n] = new_score;
    return 1;
}

__device__ inline float warp_sum(float value) {
    for (int distance = WARP_SIZE / 2; distance > 0; distance /= 2) {
        value += __shfl_down_sync(0xffffffffu, value, distance);
    }
    return value;
}

// Section 3.2, GPU One to One.
extern "C" __global__ void one_to_one(SEGMENT) {
    int local_updated = 0;
    for (long long n = start + static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; n < end;
         n += static_cast<long long>(gridDim.x) * blockDim.x) {
        float total = incoming_total(index, neighbors, degrees, n - start, 0, 1, score);
        local_updated += update(score, n, nodes, damp, epsilon, total);
    }
    atomicAdd(updated, local_updated);
}

// Section 3.2, GPU Warp Sum.
extern "C" __global__ void warp_reduce(SEGMENT) {
    long long thread = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    int lane = threadIdx.x % WARP_SIZE, local_updated = 0;
    for (long long n = start + thread / WARP_SIZE; n < end;
         n += static_cast<long long>(gridDim.x) * blockDim.x / WARP_SIZE) {
        float total = warp_sum(incoming_total(index, neighbors, degrees, n - start, lane, WARP_SIZE, score));
        if (lane == 0) local_updated += update(score, n, nodes, damp, epsilon, total);
    }
    if (lane == 0) atomicAdd(updated, local_updated);
}

// Section 3.2, GPU Block Sum. The barriers but the one before the first warp adds up the sums are not in the paper's
// code, where a warp may overwrite its sum before that is read.
extern "C" __global__ void block_reduce(SEGMENT) {
    __shared__ float block_score[WARP_SIZE];
    int lane = threadIdx.x % WARP_SIZE, warp = threadIdx.x / WARP_SIZE, local_updated = 0;
    if (warp == 0) block_score[lane] = 0;
    __syncthreads();
    for (long long n = start + static_cast<long long>(blockIdx.x); n < end; n += gridDim.x) {
        float total = incoming_total(index, neighbors, degrees, n - start, threadIdx.x, blockDim.x, score);
        total = warp_sum(total);
        if (lane == 0) block_score[warp] = total;
        __syncthreads();
        if (warp == 0) total = warp_sum(block_score[lane]);
        if (threadIdx.x == 0) local_updated += update(score, n, nodes, damp, epsilon, total);
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(updated, local_updated);
}
