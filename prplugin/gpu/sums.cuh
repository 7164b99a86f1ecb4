// Sums of non-negative terms with a small proved error, for any number and order of terms.
//
// TwoSum (Knuth) gives the rounding error of an addition exactly; the errors are added up beside the sum. If each term
// goes through at most k additions, the relative error is at most u + (k u)^2, u = 2^-53 (Ogita, Rump and Oishi 2005,
// "Accurate sum and dot product", Sum2; in a tree of depth k the partial sums of each level add up to the whole, so the
// same bound holds). For k below 2^26 that is two roundings, whatever the in-degree.

#define WARP 32
#define ZERO_SUM {0.0, 0.0}

struct Sum {
    double high, low;

    __device__ void add(double term) {
        double sum = high + term;
        double added = sum - high;
        low += (high - (sum - added)) + (term - added);
        high = sum;
    }

    __device__ void add(const Sum &other) {
        add(other.high);
        low += other.low;
    }

    __device__ double value() const { return high + low; }
};

// Adds up the sums of WIDTH neighbouring threads of a warp, a power of two; the first of them has the result. All
// threads of the warp must call it.
template <int WIDTH>
__device__ Sum lanes_sum(Sum sum) {
#pragma unroll
    for (int distance = WIDTH / 2; distance > 0; distance /= 2) {
        Sum other;
        other.high = __shfl_down_sync(0xffffffffu, sum.high, distance, WIDTH);
        other.low = __shfl_down_sync(0xffffffffu, sum.low, distance, WIDTH);
        sum.add(other);
    }
    return sum;
}

// Adds up the sums of a block of whole warps; thread 0 has the result. All threads must call it; it may be called
// repeatedly.
__device__ inline Sum block_sum(Sum sum) {
    __shared__ Sum warps[WARP];
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    sum = lanes_sum<WARP>(sum);
    __syncthreads();  // `warps` is no longer read by a previous call
    if (lane == 0) warps[warp] = sum;
    __syncthreads();
    if (warp == 0) {
        Sum mine = ZERO_SUM;
        if (lane < blockDim.x / WARP) mine = warps[lane];
        sum = lanes_sum<WARP>(mine);
    }
    return sum;
}
