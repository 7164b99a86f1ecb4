// Bitmap of a range with rank support: beside each word of bits, the number of marks before it.

struct __align__(8) Marks {  // one load
    unsigned int before, bits;

    __device__ bool has(unsigned long long place) const { return bits >> (place % 32) & 1; }

    // The number of marked places before this one.
    __device__ unsigned int rank(unsigned long long place) const {
        return before + __popc(bits & ((1u << (place % 32)) - 1));
    }
};
