// Sorting of in-edges by source, and their compression; streamed.cu documents the format.
//
// Mapping: threads take pieces of rows to sort, and parts to pack. Memory: sorting reads and writes each edge once, and
// twice more per byte in which the sources of a long row differ; packing reads each source and writes 1 to 2.7 bytes.
// Used once per graph, by the method `streamed` and for packed graphs on the host.
#include "packed.hpp"
#include "radix.hpp"

namespace {

constexpr i64 PIECE_ROWS = 64;  // rows that a thread sorts at a time
constexpr i64 SHORT_ROW = 48;   // entries up to which insertion takes less time than the passes of a radix sort

// Write numbers in groups of eight, each group in the bits of its widest, and these numbers of bits to `widths`; return
// the end of the data.
u8* pack_groups(const u32* values, i64 count, u8* widths, u8* data) {
    for (i64 group = 0; group < count; group += GROUP) {
        i64 size = least(GROUP, count - group), held = 0;
        u64 together = 0, word = 0;
        for (i64 k = 0; k < size; k++) together |= values[group + k];
        i64 width = 0;
        while (together >> width) width++;
        *widths++ = u8(width);
        u8* end = data + width;  // eight numbers of `width` bits; a last group is padded with zeros
        for (i64 k = 0; k < size; k++) {
            word |= u64(values[group + k]) << held;
            for (held += width; held >= 8; held -= 8, word >>= 8) *data++ = u8(word);
        }
        for (; data < end; word >>= 8) *data++ = u8(word);
    }
    return data;
}

// Pack the edges first .. last - 1, of which the first is in `row`, to `packed`; return the end of the piece.
template <class Index>
u8* pack_piece(const i64* starts, const Index* sources, i64 bits, i64 first, i64 last, i64 row, u8* packed) {
    u32 lengths[PIECE_EDGES], gaps[PIECE_EDGES], steps[PIECE_EDGES];
    i64 runs = 0, edges = last - first;
    for (i64 edge = first, before = row; edge < last; row++) {
        i64 stop = least(starts[row + 1], last);
        if (stop <= edge) continue;
        lengths[runs] = u32(stop - edge - 1);
        gaps[runs] = runs ? u32(row - before - 1) : 0;
        before = row;
        runs++;
        edge = stop;
    }
    u64 mask = (u64(1) << bits) - 1, previous = 0;
    for (i64 edge = first; edge < last; edge++) {
        steps[edge - first] = u32((u64(sources[edge]) - previous) & mask);
        previous = sources[edge];
    }
    u8 header[] = {u8(edges), u8(edges >> 8), u8(runs), u8(runs >> 8)};
    memcpy(packed, header, sizeof header);
    i64 run_groups = (runs + GROUP - 1) / GROUP;
    u8 *widths = packed + sizeof header, *data = widths + 2 * run_groups + (edges + GROUP - 1) / GROUP;
    data = pack_groups(lengths, runs, widths, data);
    data = pack_groups(gaps, runs, widths + run_groups, data);
    data = pack_groups(steps, edges, widths + 2 * run_groups, data);
    while ((data - packed) % 16) *data++ = 0;
    return data;
}

}  // namespace

// Write the sources of `rows`, sorted within each row, and their weights, unless null; row k begins at starts[k].
//
// Sources are mapped through `position` first, unless that is null. Parallel edges keep their order; without `scratch`, so
// do all edges of a row.
template <class Index>
i64 sort_rows(i64 count, i64, i64, i64, const i64* rows, const i64* starts, const i64* offsets, const Index* sources,
              const Index* position, const f64* weights, Index* sorted_sources, f64* sorted_weights, Index* scratch,
              f64* scratch_weights, i64 threads) {
    return Team(threads).for_each((count + PIECE_ROWS - 1) / PIECE_ROWS, [&](i64 piece) {
        for (i64 k = piece * PIECE_ROWS; k < least((piece + 1) * PIECE_ROWS, count); k++) {
            i64 first = offsets[rows[k]], start = starts[k], size = starts[k + 1] - start;
            Index* row = sorted_sources + start;
            f64 *row_weights = nullptr, *spare_weights = nullptr;
            if (weights) row_weights = sorted_weights + start, spare_weights = scratch ? scratch_weights + start : nullptr;
            for (i64 i = 0; i < size; i++) {
                row[i] = position ? position[sources[first + i]] : sources[first + i];
                if (weights) row_weights[i] = weights[first + i];
            }
            if (!scratch) continue;
            if (size > SHORT_ROW) radix_sort(size, row, row_weights, scratch + start, spare_weights);
            for (i64 i = 1; i < size && size <= SHORT_ROW; i++) {
                Index source = row[i];
                f64 weight = weights ? row_weights[i] : 0;
                i64 to = i;
                for (; to > 0 && row[to - 1] > source; to--) {
                    row[to] = row[to - 1];
                    if (weights) row_weights[to] = row_weights[to - 1];
                }
                row[to] = source;
                if (weights) row_weights[to] = weight;
            }
        }
    });
}
EXPORT_INDICES(sort_rows)

// Pack parts of consecutive rows, in pieces of 2048 edges; the edges of part p are begins[p] .. begins[p + 1] - 1.
//
// Row k has the edges starts[k] .. starts[k + 1] - 1. A source has at most `bits` bits, at most 31. Part p is written to
// the row p of `data`, of `width` bytes, its number of bytes to sizes[p], and the offset and the first row of its pieces
// to the row p of `table`.
template <class Index>
i64 pack_parts(i64, i64, i64 parts, i64 width, i64 pieces, const i64* starts, const Index* sources, i64 bits,
               const i64* begins, u8* data, i64 (*table)[2], i64* sizes, i64 threads) {
    return Team(threads).for_each(parts, [&](i64 part) {
        i64 row = 0, end = begins[part + 1];
        u8 *of_part = data + part * width, *at = of_part;
        auto piece = table + part * pieces;
        for (i64 first = begins[part]; first < end; first += PIECE_EDGES, piece++) {
            while (starts[row + 1] <= first) row++;
            (*piece)[0] = at - of_part;
            (*piece)[1] = row;
            at = pack_piece(starts, sources, bits, first, least(first + PIECE_EDGES, end), row, at);
        }
        sizes[part] = at - of_part;
    });
}
EXPORT_INDICES(pack_parts)

// Check all pieces of packed edges between n vertices, and unpack them if `sources` is given.
//
// `firsts` has the first edge of each piece, and m. lasts[p] becomes the last row of piece p, or -1 if the piece is
// damaged. `sources` receives the source of each edge, and `in_degrees`, which are 0 before, the edges of each row.
EXPORT unpack_pieces(i64, i64 pieces, i64, i64, i64 n, const u8* data, const i64* begins, const i64* rows, const i64* firsts,
                     i64 bits, i64* lasts, i32* sources, i64* in_degrees, i64 threads) {
    PackedPieces packed{pieces, bits, data, begins, rows};
    return Team(threads).for_each(pieces, [&](i64 piece) {
        u32 of_piece[PIECE_EDGES], highest = 0;
        i64 last = -1;
        i64 edges = packed.decode(piece, of_piece, [&](i64 row, i64 begin, i64 end) {
            last = row;
            if (in_degrees && row < n) __atomic_fetch_add(in_degrees + row, end - begin, __ATOMIC_RELAXED);
        });
        for (i64 edge = 0; edge < edges; edge++) highest = most(highest, of_piece[edge]);
        bool whole = edges > 0 && edges == firsts[piece + 1] - firsts[piece] && last < n && highest < u64(n);
        lasts[piece] = whole ? last : -1;
        if (whole && sources) memcpy(sources + firsts[piece], of_piece, size_t(edges) * sizeof(i32));
    });
}
