// Compensated addition: rounding errors are added beside the terms, as in sums.cuh.
#pragma once

#include "native.hpp"

// A sum of terms and the sum of the rounding errors of its additions, by Knuth's TwoSum.
struct CompensatedSum {
    f64 sum = 0, errors = 0;

    void add(f64 term, f64 more_errors = 0) {
        f64 after = sum + term, added = after - sum;
        errors += ((sum - (after - added)) + (term - added)) + more_errors;
        sum = after;
    }

    f64 value() const { return sum + errors; }
};
