// Decoding of packed edges; streamed.cu documents the format.
#pragma once

#include "native.hpp"

constexpr i64 PIECE_EDGES = 2048;  // as in packed.py and streamed.cu
constexpr i64 GROUP = 8;           // numbers per group, likewise
constexpr i64 ROWS = i64(1) << 62; // more rows than there can be; sums of a row and gaps do not overflow

// Unpack groups of eight numbers, and up to seven more after `count`; return the end of their data.
static inline const u8* unpack_groups(const u8* widths, const u8* data, i64 count, u32* values) {
    for (i64 group = 0; group < count; group += GROUP) {
        u64 width = *widths++, mask = (u64(1) << width) - 1, word;
        for (u64 k = 0; k < u64(GROUP); k++) {
            memcpy(&word, data + (k * width >> 3), sizeof word);
            values[group + i64(k)] = u32(word >> (k * width & 7) & mask);
        }
        data += width;
    }
    return data;
}

// Pieces of edges in host memory or in a mapped file. 8 bytes after the last piece can be read.
struct PackedPieces {
    i64 count, bits;    // number of pieces, and bits of a source
    const u8* data;
    const i64* begins;  // of each piece in `data`, and the end of the last
    const i64* rows;    // of the first edge of each piece; ~row if it begins in an earlier piece

    bool continues(i64 piece) const { return rows[piece] < 0; }
    i64 first_row(i64 piece) const { return continues(piece) ? ~rows[piece] : rows[piece]; }

    // Call run(row, begin, end) for each run of a piece, whose sources are decoded to `sources`; return the number of
    // edges, or -1 if the piece is damaged. Rows are not compared with the number of vertices.
    template <class Run> i64 decode(i64 piece, u32* sources, const Run& run) const {
        const u8 *packed = data + begins[piece], *widths = packed + 4;
        i64 edges = packed[0] | packed[1] << 8, runs = packed[2] | packed[3] << 8;
        i64 groups = (runs + GROUP - 1) / GROUP, all = 2 * groups + (edges + GROUP - 1) / GROUP;
        i64 bytes = 4 + all, size = begins[piece + 1] - begins[piece], row = first_row(piece), at = 0;
        if (edges > PIECE_EDGES || runs > edges || bytes > size || row > ROWS) return -1;
        u8 widest = 0;
        for (i64 group = 0; group < all; group++) bytes += widths[group], widest = most(widest, widths[group]);
        if (bytes > size || widest > 32) return -1;
        u32 lengths[PIECE_EDGES], gaps[PIECE_EDGES], source = 0, mask = u32((u64(1) << bits) - 1);
        const u8* steps = unpack_groups(widths + groups, unpack_groups(widths, widths + all, runs, lengths), runs, gaps);
        unpack_groups(widths + 2 * groups, steps, edges, sources);
        for (i64 edge = 0; edge < edges; edge++) sources[edge] = (source += sources[edge]) & mask;
        for (i64 k = 0; k < runs; k++) {
            i64 end = at + lengths[k] + 1;
            row += i64(gaps[k]) + (k > 0);
            if (end > edges) return -1;
            run(row, at, end);
            at = end;
        }
        return at == edges ? edges : -1;
    }
};
