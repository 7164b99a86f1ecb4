// Kernels of Swaroop 2021, as in the paper. A baseline for benchmarks only.
//
// Mapping: one thread per row of the n x n Google matrix. Neighbouring threads read entries that are a row apart, so that
// reads are not coalesced, although the paper states that they are.
// Memory: n^2 entries, each once, one cache line per thread at a time; the n ranks once per row, from the caches.
// Wins: never compared with one block per row (papers/dense.cu).

extern "C" __global__ void store_rank(long long n, const float *ranks, float *last) {
    long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) last[i] = ranks[i];
}

extern "C" __global__ void matmul(long long n, float *ranks, const float *matrix, const float *last) {
    long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0;
    for (long long j = 0; j < n; ++j) sum += last[j] * matrix[i * n + j];
    ranks[i] = sum;
}

extern "C" __global__ void rank_diff(long long n, const float *ranks, float *last) {
    long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) last[i] = fabsf(last[i] - ranks[i]);
}
