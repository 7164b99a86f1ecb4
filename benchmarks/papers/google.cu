// Matrix-vector product of Swaroop 2021, as in the paper. A baseline for benchmarks only.
//
// Mapping: one thread per row of the n x n Google matrix. Neighbouring threads read entries that are a row apart, so that
// reads are not coalesced, although the paper states that they are.
// Memory: n^2 entries, each once, one cache line per thread at a time; the n ranks once per row, from the caches.
// Wins: never compared with one block per row (papers/dense.cu).
//
//   real_t   float, as in the paper, or double

extern "C" __global__ void google_multiply(long long n, const real_t *matrix, const real_t *before,
                                           real_t *after) {
    long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= n) return;
    real_t sum = 0;
    for (long long j = 0; j < n; ++j) sum += before[j] * matrix[i * n + j];
    after[i] = sum;
}
