// The matrix-vector product of Swaroop 2021, as the paper has it. A baseline of benchmarks alone.
//
// Mapping: one thread a row of the n x n Google matrix. Neighbouring threads read places a row apart: nothing is
// coalesced, though the paper says that all is.
// Memory: n^2 entries, each once, a cache line for each thread at a time; the n ranks again for each row, from the caches.
// Wins: never against a block a row (methods/dense.cu).
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
