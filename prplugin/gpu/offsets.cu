// Offsets and sizes of groups, and the group of each row.
//
// Mapping: `offsets` merges the groups with the sorted rows and splits that into spans of equal length, one per block
// (a merge path: Green, McColl and Bader 2012, "GPU merge path"), so that neither long nor many empty groups make a
// block slow; a block loads its rows piece by piece into shared memory, where each thread finds groups by binary
// search.
// `group_sizes`: one thread per row; rows need not be sorted. `group_of_rows`: one block per piece of sorted rows,
// whose threads find the groups of their rows by binary search.
// Memory: `offsets` reads each row once and writes each offset once; `group_sizes` reads each row once, with at most
// one atomic addition in the L2 cache; `group_of_rows` writes each row once, and reads each offset from memory once.
// Wins: `offsets` wherever rows are sorted anyway.
//
//   key_t     unsigned int or unsigned long long
//   offset_t  int or long long

#include "each.cuh"

#define WARP 32
#define SPAN 8192
#define PIECE 2048

// The number of groups 0..n among the first `steps` of the merged order, in which a group precedes its rows. All lanes of
// the warp must call it: each step compares at one place per lane, since the reads of a search depend on one another.
__device__ long long groups_within(long long steps, long long m, const key_t *rows, long long n) {
    long long least = max(0LL, steps - m), most = min(steps, n + 1);
    while (least < most) {
        long long stride = (most - least + WARP - 1) / WARP, place = least + threadIdx.x % WARP * stride;
        bool within = place < most && place <= static_cast<long long>(rows[steps - 1 - place]);
        int count = __popc(__ballot_sync(0xffffffffu, within));  // a prefix of the places
        if (count == 0) break;
        most = min(most, least + count * stride);
        least += (count - 1) * stride + 1;
    }
    return least;
}

extern "C" __global__ void offsets(long long m, const key_t *rows, long long n, offset_t *begins) {
    __shared__ long long ends[2];
    __shared__ key_t piece[PIECE];
    long long steps = static_cast<long long>(blockIdx.x) * SPAN, last_step = min(steps + SPAN, m + n + 1);
    if (threadIdx.x / WARP < 2) ends[threadIdx.x / WARP] = groups_within(threadIdx.x < WARP ? steps : last_step, m, rows, n);
    __syncthreads();
    long long group = ends[0], last_group = ends[1], row = steps - group, last_row = last_step - last_group;
    for (; row < last_row; row += PIECE) {
        int held = min(last_row - row, static_cast<long long>(PIECE));
        __syncthreads();  // the previous piece is no longer read
        for (int place = threadIdx.x; place < held; place += blockDim.x) piece[place] = rows[row + place];
        __syncthreads();
        long long past = min(last_group, static_cast<long long>(piece[held - 1]) + 1);
        for (long long mine = group + threadIdx.x; mine < past; mine += blockDim.x) {
            int least = 0, most = held - 1;  // the last row is of this group or a later one
            while (least < most) {
                int middle = (least + most) / 2;
                if (static_cast<long long>(piece[middle]) < mine) least = middle + 1;
                else most = middle;
            }
            begins[mine] = row + least;
        }
        group = max(group, past);
    }
    for (long long mine = group + threadIdx.x; mine < last_group; mine += blockDim.x) begins[mine] = last_row;
}

// `sizes` must be zeroed. Lanes of a warp with equal rows share one addition, so that a group of many rows is not added
// to row by row.
extern "C" __global__ void group_sizes(long long m, const key_t *rows, offset_t *sizes) {
    each(rows, m, [=](key_t group, long long) {
        unsigned equal = __match_any_sync(__activemask(), group);
        if (threadIdx.x % WARP != __ffs(equal) - 1) return;
        if constexpr (sizeof(offset_t) == 4) {
            atomicAdd(reinterpret_cast<unsigned int *>(sizes) + group, static_cast<unsigned int>(__popc(equal)));
        } else {
            atomicAdd(reinterpret_cast<unsigned long long *>(sizes) + group, static_cast<unsigned long long>(__popc(equal)));
        }
    });
}

// The last of the groups first..last that begins at or before a row.
__device__ long long group_at(long long row, long long first, long long last, const offset_t *begins) {
    while (first < last) {
        long long middle = (first + last + 1) / 2;
        if (begins[middle] <= row) first = middle;
        else last = middle - 1;
    }
    return first;
}

extern "C" __global__ void group_of_rows(long long m, long long n, const offset_t *begins, key_t *rows) {
    __shared__ long long ends[2];
    long long first = static_cast<long long>(blockIdx.x) * PIECE, last = min(first + PIECE, m) - 1;
    if (threadIdx.x == 0) ends[0] = group_at(first, 0, n - 1, begins);
    if (threadIdx.x == 32) ends[1] = group_at(last, 0, n - 1, begins);
    __syncthreads();
    for (long long row = first + threadIdx.x; row <= last; row += blockDim.x) {
        rows[row] = static_cast<key_t>(group_at(row, ends[0], ends[1], begins));
    }
}
