// Least and greatest of integer ids, before they are factorized.
//
// Mapping: each thread takes a part of the ids. Memory: each id is read once.
// Used for all frames on the host with integer ids.
#include "native.hpp"

// Find the least and the greatest of ids ^ flip; each thread writes those of a part.
template <class Index> i64 extremes(i64 m, i64 parts, const Index* ids, i64 flip, i64* found) {
    return Team(parts).for_parts(m, parts, [&](i64 part, i64 first, i64 last) {
        i64 low = INT64_MAX, high = INT64_MIN;
        for (i64 row = first; row < last; row++) {
            low = least(low, ids[row] ^ flip);
            high = most(high, ids[row] ^ flip);
        }
        found[2 * part] = low;
        found[2 * part + 1] = high;
    });
}
EXPORT_SIGNED(extremes)
