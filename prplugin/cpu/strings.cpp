// Codes of strings, in the order of their first appearance.
//
// Mapping: one thread; rows in waves, of which the entries of the table, what they refer to and its bytes are fetched
// before they are compared. Memory: per row its bytes and offset, and at random an entry, a record and first bytes.
// Used for columns of many strings; two columns are read by two threads.
#include "native.hpp"

namespace {

constexpr i64 WAVE = 64;
constexpr u64 TAG = ~u64(0) << 32;  // bits of the hash in an entry, above the code plus one; 0: free

struct Known {
    i64 row, begin, size;  // of the first of equal strings: its row, and its bytes
};

u64 mixed(u64 bits) {
    bits = (bits ^ (bits >> 32)) * 0x9e3779b97f4a7c15;
    return bits ^ (bits >> 29);
}

u64 hash_of(const u8* text, i64 size) {
    u64 hash = u64(size), word;
    for (; size >= 8; text += 8, size -= 8) {
        memcpy(&word, text, 8);
        hash = mixed(hash ^ word) * 0xff51afd7ed558ccd;
    }
    word = 0;
    memcpy(&word, text, size_t(size));
    return mixed(hash ^ word);
}

}  // namespace

// Enter the strings that are known into an empty table of `size` slots, a power of two.
EXPORT enter_strings(i64 bytes, i64 count, i64 size, const u8* data, const Known* known, u64* slots) {
    (void)bytes;
    for (i64 code = 0; code < count; code++) {
        u64 hash = hash_of(data + known[code].begin, known[code].size), place = hash;
        while (slots[place & u64(size - 1)]) place++;
        slots[place & u64(size - 1)] = (hash & TAG) | u64(code + 1);
    }
    return 0;
}

// Write the codes of the rows from `first` on; return the row before which to make room, or `last`.
//
// `count` is the number of known strings, which grows. Every one has an entry in the table, at most half of which is used.
template <class Offset>
i64 factorize_strings(i64 n, i64 bytes, i64 size, i64 most_known, const Offset* offsets, const u8* data, i64 first,
                      i64 last, u64* slots, Known* known, i32* codes, i64* count) {
    (void)n, (void)bytes;
    u64 mask = u64(size - 1), hashes[WAVE];
    i64 found = *count, row = first;
    for (; row < last && found + WAVE <= most_known; row = least(row + WAVE, last)) {
        i64 here = least(WAVE, last - row);
        const Offset* begins = offsets + row;
        for (i64 i = 0; i < here; i++) {
            hashes[i] = hash_of(data + begins[i], i64(begins[i + 1] - begins[i]));
            __builtin_prefetch(slots + (hashes[i] & mask));
        }
        for (i64 i = 0; i < here; i++)
            if (u64 slot = slots[hashes[i] & mask]) __builtin_prefetch(known + (u32(slot) - 1));
        for (i64 i = 0; i < here; i++)
            if (u64 slot = slots[hashes[i] & mask]) __builtin_prefetch(data + known[u32(slot) - 1].begin);
        for (i64 i = 0; i < here; i++) {
            i64 begin = i64(begins[i]), length = i64(begins[i + 1]) - begin;
            for (u64 place = hashes[i];; place++) {
                u64& slot = slots[place & mask];
                if (!slot) {
                    known[found] = {row + i, begin, length};
                    slot = (hashes[i] & TAG) | u64(++found);
                } else if (((slot ^ hashes[i]) & TAG) != 0) {
                    continue;
                } else {
                    const Known& one = known[u32(slot) - 1];
                    if (one.size != length || memcmp(data + one.begin, data + begin, size_t(length)) != 0) continue;
                }
                codes[row + i] = i32(u32(slot) - 1);
                break;
            }
        }
    }
    *count = found;
    return row;
}
EXPORT_INDICES(factorize_strings)
