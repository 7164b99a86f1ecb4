// Factorization and grouping of few edges in one launch of one block each, where many launches would dominate.
//
// Mapping: one block. Items are sorted in shared memory, by eight of the used bits at a time: see tile.cuh.
// Memory: each item read once and written once.
// Wins: for ids, or rows, that fit in one tile.
//
//   id_t     int, unsigned int, long long or unsigned long long
//   value_t  int or long long: any four or eight bytes
//   THREADS  256
//   ITEMS  16

#include "ids.cuh"
#include "tile.cuh"

// Sorts keys below 2^bits stably, and permutes `numbers` with them. Items past the end have all bits set, and stay
// there.
template <typename T>
__device__ void sort_tile(T (&keys)[ITEMS], unsigned int (&numbers)[ITEMS], int bits, counts_t &counts, T *staged) {
    unsigned int *staged_numbers = reinterpret_cast<unsigned int *>(staged);
    for (int shift = 0; shift < bits; shift += DIGIT_BITS) {
        Digit digit = {shift, BINS - 1};
        unsigned int total, ranks[ITEMS];
        count_digits(counts, keys, digit);
        __syncthreads();
        counts_to_offsets(counts, block_scan(counted(counts), &total));
        __syncthreads();
        place_items(counts, keys, digit, ranks);
        for (int item = 0; item < ITEMS; ++item) staged[ranks[item]] = keys[item];
        __syncthreads();
        for (int item = 0; item < ITEMS; ++item) keys[item] = staged[place_in_tile(item)];
        __syncthreads();
        for (int item = 0; item < ITEMS; ++item) staged_numbers[ranks[item]] = numbers[item];
        __syncthreads();
        for (int item = 0; item < ITEMS; ++item) numbers[item] = staged_numbers[place_in_tile(item)];
        __syncthreads();
    }
}

// Writes the positions of ids in ascending order of id, one column after the other, then the number of distinct ids;
// and the ids by position.
extern "C" __global__ void __launch_bounds__(THREADS) factorize_one_block(
    const id_t *a, long long in_a, const id_t *b, long long in_b, const id_t *c, long long in_c, int *codes, id_t *ids) {
    __shared__ counts_t counts;
    __shared__ wide_t staged[TILE];
    __shared__ wide_t extremes[2];  // the greatest complement, and the greatest id
    int count = in_a + in_b + in_c;
    wide_t keys[ITEMS];
    unsigned int numbers[ITEMS];
    if (threadIdx.x < 2) extremes[threadIdx.x] = 0;
    __syncthreads();
    for (int item = 0; item < ITEMS; ++item) {
        int place = place_in_tile(item);
        numbers[item] = place;
        keys[item] = ~0ull;
        if (place < count) {
            keys[item] = ordered(place < in_a ? a[place] : place < in_a + in_b ? b[place - in_a] : c[place - in_a - in_b]);
            atomicMax(extremes, ~keys[item]);
            atomicMax(extremes + 1, keys[item]);
        }
    }
    __syncthreads();
    wide_t least = ~extremes[0], range = extremes[1] - least;
    for (int item = 0; item < ITEMS; ++item) {
        if (place_in_tile(item) < count) keys[item] -= least;
    }
    sort_tile(keys, numbers, 64 - __clzll(range), counts, staged);
    for (int item = 0; item < ITEMS; ++item) staged[place_in_tile(item)] = keys[item];
    __syncthreads();

    // An id's position is the number of preceding places where a new id begins: each thread compares neighbouring
    // places.
    unsigned short *positions = reinterpret_cast<unsigned short *>(counts);
    unsigned int begins = 0, n;
    int first = threadIdx.x * ITEMS;
    for (int item = 0; item < ITEMS; ++item) {
        int place = first + item;
        if (place < count && (place == 0 || staged[place] != staged[place - 1])) begins |= 1u << item;
    }
    unsigned int position = block_scan(static_cast<unsigned int>(__popc(begins)), &n) - 1;
    for (int item = 0; item < ITEMS && first + item < count; ++item) {
        if (begins >> item & 1) ids[++position] = unordered(staged[first + item] + least);
        positions[first + item] = position;
    }
    __syncthreads();
    for (int item = 0; item < ITEMS; ++item) {
        int place = place_in_tile(item);
        if (place < count) codes[numbers[item]] = positions[place];
    }
    if (threadIdx.x == 0) codes[count] = n;
}

// Groups rows stably, and writes the begin of each of the n groups. `values` and `weights` may be null.
extern "C" __global__ void __launch_bounds__(THREADS) group_one_block(
    long long m, const unsigned int *groups, const value_t *values, const double *weights, long long n, int bits,
    int *begins, value_t *values_out, double *weights_out) {
    __shared__ counts_t counts;
    __shared__ unsigned int staged[TILE];
    unsigned int keys[ITEMS], numbers[ITEMS];
    for (int item = 0; item < ITEMS; ++item) {
        int place = place_in_tile(item);
        numbers[item] = place;
        keys[item] = place < m ? groups[place] : ~0u;
    }
    sort_tile(keys, numbers, bits, counts, staged);
    for (int item = 0; item < ITEMS; ++item) {
        int place = place_in_tile(item);
        staged[place] = keys[item];
        if (place >= m) continue;
        if (values) values_out[place] = values[numbers[item]];
        if (weights) weights_out[place] = weights[numbers[item]];
    }
    __syncthreads();
    for (int group = threadIdx.x; group <= n; group += THREADS) {
        int least = 0, most = m;
        while (least < most) {
            int middle = (least + most) / 2;
            if (staged[middle] < group) least = middle + 1;
            else most = middle;
        }
        begins[group] = least;
    }
}
