// Marks of those places of a range that count: a bit each, and beside each word of bits how many come before it.

struct __align__(8) Marks {  // read at once
    unsigned int before, bits;

    // How many marked places come before this one.
    __device__ unsigned int rank(unsigned long long place) const {
        return before + __popc(bits & ((1u << (place % 32)) - 1));
    }
};
