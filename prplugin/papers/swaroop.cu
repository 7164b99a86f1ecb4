// Kernels of Swaroop 2021, as in the paper: the power method on the full Google matrix in float32. `form="paper"` of
// `dense`.
//
// Mapping: one thread per row of the n x n matrix; the paper launches blocks of 32 threads. Neighbouring threads read
// entries that are a row apart, so that reads are not coalesced, although the paper states that they are.
// Memory: n^2 entries, each once, one cache line per thread at a time; the n ranks once per row, from the caches.
// Wins: never compared with one block per row (dense.cu).

extern "C" __global__ void store_rank(long long n, const float *gpu_r, float *gpu_r_last) {
    long long id = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (id < n) gpu_r_last[id] = gpu_r[id];
}

extern "C" __global__ void matmul(long long n, const float *gpu_graph, float *gpu_r, const float *gpu_r_last) {
    long long id = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (id >= n) return;
    float sum = 0;
    for (long long j = 0; j < n; ++j) sum += gpu_r_last[j] * gpu_graph[id * n + j];
    gpu_r[id] = sum;
}

extern "C" __global__ void rank_diff(long long n, const float *gpu_r, float *gpu_r_last) {
    long long id = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (id < n) gpu_r_last[id] = fabsf(gpu_r_last[id] - gpu_r[id]);
}
