// SpMV of Wu and others 2010 in the paper's form: float32, with a stored value for each entry. `form="paper"` of
// `binned`, and the baselines 1T1R, 16T1R and 1W1R.
//
// Mapping: LANES threads per row, in groups of 64 threads, which are a wavefront of the paper's GPU; they read entries
// LANES apart and reduce their sums in shared memory (LDS). No thread takes a second row.
// Memory: per entry a value and a column, and a gathered rank; begin, size and index of each row, or with BINNED=0 two
// offsets of plain CSR.
// Wins: nowhere; with three bins it is
// 0.658 to 1.06 times as fast as `binned` on nine graphs (benchmarks/results/gpu/wu.md). It reads 4 bytes more per entry,
// and its long rows have 64 threads, not 128; its sums are float32 and not compensated.
//
//   index_t   int, or long long past 2^31 rows
//   offset_t  int or long long: the type of offsets of rows
//   LANES  1 16 64
//   BINNED  0 1

#define GROUP 64

// An entry A_p[row] of the modified CSR matrix.
struct Row {
    offset_t begin, size, index;
};

// Algorithm 5, "Optimized Parallel SpMV: 1 row 16 threads (Group size=64)". Algorithm 4 is the same with one thread,
// and without LDS, Algorithm 6 with 64 threads; Algorithm 3 (1W1R) reads A_p[Gid] and A_p[Gid + 1] of plain CSR:
//   row <- aTid >> 4 + Offset_small
//   r_begin <- A_p[row].begin
//   r_end <- r_begin + A_p[row].size
//   acc <- 0
//   for c = r_begin + (Tid & 0x03) to r_end stride 16 do
//     acc <- acc + A_v[c]R[A_j[c]]
//   LDS[Tid] <- acc
//   Parallel reduce using LDS, result in LDS[15, 31, 47 and 63]
//   if Tid in {15, 31, 47, 63} then
//     Y[A_p[row].index] <- LDS[Tid]
// The mask of 16 lanes is 0x0F; the 0x03 is a misprint. Rows `first` to `last` - 1 are those of the kernel's bin.
extern "C" __global__ void spmv(long long first, long long last, const offset_t *offsets, const Row *rows,
                                const float *A_v, const index_t *A_j, const float *R, float *Y) {
    int Tid = threadIdx.x, lane = Tid % LANES;
    long long row = first + (static_cast<long long>(blockIdx.x) * GROUP + Tid) / LANES;
    offset_t r_begin = 0, r_end = 0;
    long long index = row;
    if (row < last) {
#if BINNED
        r_begin = rows[row].begin;
        r_end = r_begin + rows[row].size;
        index = rows[row].index;
#else
        r_begin = offsets[row];
        r_end = offsets[row + 1];
#endif
    }
    float acc = 0;
    for (offset_t c = r_begin + lane; c < r_end; c += LANES) acc += A_v[c] * R[A_j[c]];
#if LANES > 1
    __shared__ float LDS[GROUP];
    LDS[Tid] = acc;
    for (int distance = LANES / 2; distance > 0; distance /= 2) {
        __syncthreads();
        if (lane >= LANES - distance) LDS[Tid] += LDS[Tid - distance];
    }
    acc = LDS[Tid];
#endif
    if (row < last && lane == LANES - 1) Y[index] = acc;
}
