// Boundaries of pieces on the merge path, for the methods of merge.cuh.
//
// Mapping: one thread per boundary, by binary search.
// Memory: a few dozen offsets per boundary.
// Wins: always: there are only a few thousand pieces.

// cuts[p] is the number of rows that end before item p * size, where the end of row r is item r + offsets[r + 1].
extern "C" __global__ void cut(long long n, long long m, long long size, long long pieces, const offset_t *offsets,
                               index_t *cuts) {
    long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long p = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; p <= pieces; p += stride) {
        long long item = min(p * size, n + m), low = 0, high = n;
        while (low < high) {
            long long row = (low + high) / 2;
            if (row + offsets[row + 1] < item) {
                low = row + 1;
            } else {
                high = row;
            }
        }
        cuts[p] = static_cast<index_t>(low);
    }
}
