// Stable sorting of keys by the bytes in which they differ.
#pragma once

#include "native.hpp"

// Sort keys, and unless null their values, by counting sorts of one byte after the other, the lowest first.
//
// The scratch memory has as many keys and values.
template <class Key, class Value>
void radix_sort(i64 count, Key* keys, Value* values, Key* scratch_keys, Value* scratch_values) {
    Key differing = 0, *from = keys, *to = scratch_keys;
    Value *values_from = values, *values_to = scratch_values;
    for (i64 i = 1; i < count; i++) differing |= keys[i] ^ keys[0];
    for (i64 shift = 0; shift < i64(8 * sizeof(Key)); shift += 8) {
        if (!(differing >> shift & 255)) continue;
        i64 begins[257] = {0};
        for (i64 i = 0; i < count; i++) begins[(from[i] >> shift & 255) + 1]++;
        for (i64 byte = 0; byte < 256; byte++) begins[byte + 1] += begins[byte];
        for (i64 i = 0; i < count; i++) {
            i64 place = begins[from[i] >> shift & 255]++;
            to[place] = from[i];
            if (values) values_to[place] = values_from[i];
        }
        swap(from, to);
        swap(values_from, values_to);
    }
    if (from == keys) return;
    memcpy(keys, from, count * sizeof(Key));
    if (values) memcpy(values, values_from, count * sizeof(Value));
}
