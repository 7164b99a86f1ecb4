// The matrix-vector product of Swaroop 2021, as the paper has it. A baseline of benchmarks alone.
//
// Mapping: one thread a row of the n x n Google matrix. Neighbouring threads read places a row apart: nothing is
// coalesced, other than the paper says.
// Memory: n^2 floats, each once, a cache line for each thread at a time; the n ranks again for each row, from the caches.
// Wins: never against a block a row (methods/dense.cu).

extern "C" __global__ void google_multiply(long long n, const float *matrix, const float *before, float *after) {
    long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0.0f;
    for (long long j = 0; j < n; ++j) sum += before[j] * matrix[i * n + j];
    after[i] = sum;
}
