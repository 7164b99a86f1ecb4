// Decoding of WebGraph's BV format: P. Boldi and S. Vigna, "The WebGraph framework I: compression techniques", WWW 2004.
//
// The record of a vertex v of out-degree d > 0 is a sequence of codes of natural numbers, big-endian: d; r, if there is a
// window (the successors are in part copied from those of v - r; 0: nothing is copied); the number of blocks and their
// lengths (copied, skipped, copied, ...; what follows the last block is copied if their number is even); if successors
// are left, the number of intervals and their beginnings and lengths, unless the shortest length is 0; if successors are
// left, these residuals by their gaps.
//
// Mapping: threads take pieces of vertices. A piece begins at a vertex behind which no record refers to one before it, so
// that what is copied has been decoded by the same thread; `bv_cuts` finds such vertices.
// Memory: each bit is read once, and each successor written once, and once more to `scratch` if it is merged.
// Used for the files of WebGraph alone. Every code, count and successor is checked: the bytes may be anything.
#include "native.hpp"

namespace {

enum Fault : i64 { NONE, ENDS, DEGREE, REFERENCE, BLOCKS, COUNT, OUTSIDE, REPEATED, LENGTH };  // as in webgraph.py
enum Code : i64 { UNARY, GAMMA, DELTA, ZETA, NIBBLE, GOLOMB };                                 // likewise
enum Part : i64 { DEGREES, REFERENCES, BLOCK_COUNTS, BLOCK_LENGTHS, INTERVALS, RESIDUALS };    // likewise

constexpr i64 VALID = 57;  // bits of a peek that are always those of the stream

struct Bits {
    const u8* bytes;
    i64 size;  // in bytes
    i64 at;    // position in bits; beyond the end after a code that the stream does not hold

    bool past_end() const { return at > 8 * size; }

    // Return the next bits, the first one uppermost, and at least VALID of them; zeros after the end.
    u64 peek() const {
        i64 byte = at >> 3;
        u64 word = 0;
        if (byte + 8 <= size) {
            memcpy(&word, bytes + byte, 8);
            word = __builtin_bswap64(word);
        } else {
            for (i64 i = 0; i < 8 && byte + i < size; i++) word |= u64(bytes[byte + i]) << (56 - 8 * i);
        }
        return word << (at & 7);
    }

    u64 fail() {
        at = 8 * size + 1;
        return 0;
    }

    // Read a number of `count` bits, 0 to 63.
    u64 binary(i64 count) {
        if (count == 0) return 0;
        if (count > VALID) {
            u64 upper = binary(count - 32);
            return upper << 32 | binary(32);
        }
        u64 value = peek() >> (64 - count);
        at += count;
        return value;
    }

    u64 unary() {
        i64 begin = at;
        for (u64 word; !past_end(); at += VALID) {
            if ((word = peek()) == 0) continue;
            at += __builtin_clzll(word) + 1;
            return u64(at - begin - 1);
        }
        return fail();
    }

    // Read the rest of a number x of which x + 1 has `length` + 1 binary digits.
    u64 after_length(u64 length) { return length > 62 ? fail() : (u64(1) << length | binary(i64(length))) - 1; }

    u64 gamma() {
        u64 word = peek();
        i64 zeros = word ? __builtin_clzll(word) : 64;
        if (2 * zeros + 1 > VALID) return after_length(unary());
        at += 2 * zeros + 1;
        return (word >> (63 - 2 * zeros)) - 1;
    }

    u64 delta() { return after_length(gamma()); }

    u64 zeta(i64 k) {
        u64 word = peek();
        i64 h = word ? __builtin_clzll(word) : 64, length = h * k + k - 1;
        if (h + 2 + length <= VALID && length > 0) {
            word <<= h + 1;
            u64 low = u64(1) << h * k, value = word >> (64 - length);
            bool is_short = value < low;
            at += h + 1 + length + !is_short;
            return is_short ? value + low - 1 : (word >> (63 - length)) - 1;
        }
        h = i64(least<u64>(unary(), 64));
        length = h * k + k - 1;
        if (length > 62) return fail();
        u64 low = u64(1) << h * k, value = binary(length);
        return value < low ? value + low - 1 : (value << 1 | binary(1)) - 1;
    }

    u64 nibbles() {
        for (u64 value = 0; !past_end() && value >> 59 == 0;) {
            u64 last = binary(1);
            value = value << 3 | binary(3);
            if (last) return value;
        }
        return fail();
    }

    // Golomb's code: the quotient by k in unary, the remainder in minimal binary.
    u64 golomb(i64 k) {
        u64 quotient = unary();
        if (quotient > u64(INT64_MAX) / u64(k) - 1) return fail();
        i64 bits = 63 - __builtin_clzll(u64(k));
        u64 few = (u64(2) << bits) - u64(k), rest = binary(bits);
        if (rest >= few) rest = (rest << 1 | binary(1)) - few;
        return quotient * u64(k) + rest;
    }

    // Read a number of any code, in a function of its own: six codes at each place would take long to compile.
    __attribute__((noinline)) u64 number(i64 code, i64 k) {
        switch (code) {
            case UNARY: return unary();
            case GAMMA: return gamma();
            case DELTA: return delta();
            case ZETA: return zeta(k);
            case NIBBLE: return nibbles();
            default: return golomb(k);
        }
    }
};

// A file, and where its records begin; `positions` may be known up to the record that is read only.
struct File {
    const u8* bytes;
    i64 size, n;
    const i64* codes;      // of the six parts of a record: code + 8 * k
    i64 window, shortest;  // the farthest reference; the shortest interval, or 0: there are none
    const i64* positions;
};

// The record of a vertex, whose parts are read in their order, until a fault is found.
struct Record {
    const File& file;
    i64 v;
    Bits bits{file.bytes, file.size, file.positions[v]};
    i64 degree = 0, reference = 0;
    Fault fault = NONE;

    // Return whether what has been read is valid, or note a fault.
    bool check(bool valid, Fault otherwise) {
        if (valid && !fault && !bits.past_end()) return true;
        if (!fault) fault = bits.past_end() ? ENDS : otherwise;
        return false;
    }

    // Read a number of a part; the default codes without a call.
    template <Part part> u64 read() {
        constexpr i64 DEFAULT = part == REFERENCES ? UNARY : part == RESIDUALS ? ZETA + 8 * 3 : GAMMA;
        i64 code = file.codes[part];
        if (code != DEFAULT) {
            Bits copy = bits;  // so that `bits` itself can stay in registers
            u64 value = copy.number(code & 7, code >> 3);
            bits.at = copy.at;
            return value;
        }
        return part == REFERENCES ? bits.unary() : part == RESIDUALS ? bits.zeta(3) : bits.gamma();
    }

    void read_head() {
        u64 found = read<DEGREES>(), back = found && file.window ? read<REFERENCES>() : 0;
        check(found <= u64(file.n), DEGREE);
        if (!check(back <= u64(least(v, file.window)), REFERENCE)) return;
        degree = i64(found);
        reference = i64(back);
    }

    // Read the blocks; call copy(first, last) for each range of the `available` successors that is copied.
    template <class Copy> void read_blocks(i64 available, const Copy& copy) {
        u64 count = read<BLOCK_COUNTS>();
        i64 at = 0;
        if (!check(count <= u64(available) + 1, BLOCKS)) return;
        for (u64 block = 0; block < count; block++) {
            u64 length = read<BLOCK_LENGTHS>() + (block > 0);
            if (!check(length <= u64(available - at), BLOCKS)) return;
            if (block % 2 == 0) copy(at, at + i64(length));
            at += i64(length);
        }
        if (count % 2 == 0) copy(at, available);
    }

    // Return the successor that a number tells by its distance to v, or as the gap after those before `next`.
    i64 successor(u64 gap, bool is_first, i64 next) {
        if (!check(gap <= 2 * u64(file.n), OUTSIDE)) return 0;
        return is_first ? v + (gap & 1 ? -i64((gap >> 1) + 1) : i64(gap >> 1)) : next + i64(gap);
    }

    // Read the intervals of the `left` successors, of which some are left after; call add(first, length) for each.
    template <class Add> void read_intervals(i64& left, const Add& add) {
        u64 count = read<INTERVALS>();
        i64 next = 0;
        for (u64 interval = 0; check(true, NONE) && interval < count; interval++) {
            u64 gap = read<INTERVALS>(), more = read<INTERVALS>();
            if (!check(more <= u64(left) && i64(more) + file.shortest <= left, COUNT)) return;
            i64 length = i64(more) + file.shortest, first = successor(gap, interval == 0, next + 1);
            if (!check(first >= 0 && first + length <= file.n, OUTSIDE)) return;
            add(first, length);
            next = first + length;
            left -= length;
        }
    }

    // Read `count` residuals; call add(successor) for each.
    template <class Add> void read_residuals(i64 count, const Add& add) {
        for (i64 residual = 0, next = 0; residual < count; residual++) {
            next = successor(read<RESIDUALS>(), residual == 0, next + 1);
            if (!check(next >= 0 && next < file.n, OUTSIDE)) return;
            add(next);
            if (fault) return;
        }
    }

    // Read all but what is copied, given the out-degrees of the vertices before.
    template <class Index> void skip(const Index* degrees) {
        i64 copied = 0;
        read_head();
        if (!fault && reference)
            read_blocks(i64(degrees[v - reference]), [&](i64 first, i64 last) { copied += last - first; });
        i64 left = degree - copied;
        if (check(left >= 0, COUNT) && left && file.shortest) read_intervals(left, [](i64, i64) {});
        if (!fault) read_residuals(left, [](i64) {});
    }

    // Decode the successors to their row. `scratch` holds intervals and residuals before a merge.
    template <class Index> void decode(const i64* offsets, Index* indices, Index* scratch) {
        i64 copied = 0;
        read_head();
        if (!check(degree == offsets[v + 1] - offsets[v], DEGREE) || degree == 0) return;
        Index* row = indices + offsets[v];
        if (reference) {
            const Index* from = indices + offsets[v - reference];
            read_blocks(offsets[v - reference + 1] - offsets[v - reference], [&](i64 first, i64 last) {
                if (!check(copied + last - first <= degree, COUNT)) return;
                for (i64 i = first; i < last; i++) row[copied++] = from[i];
            });
        }
        i64 left = degree - copied, added = 0, intervals = 0;
        if (fault || left == 0) return;
        // Intervals are kept as pairs in front of the other successors; each has at least one.
        Index* pairs = scratch;
        auto keep = [&](i64 first, i64 length) {
            pairs[2 * intervals] = Index(first);
            pairs[2 * intervals++ + 1] = Index(length);
        };
        if (file.shortest) read_intervals(left, keep);
        if (fault) return;
        Index* more = copied ? scratch + 2 * intervals : row;
        i64 interval = 0;
        auto add_intervals = [&](i64 last) {  // those that begin at most at `last`
            for (; interval < intervals && i64(pairs[2 * interval]) <= last; interval++)
                for (Index i = 0; i < pairs[2 * interval + 1]; i++) more[added++] = pairs[2 * interval] + i;
        };
        read_residuals(left, [&](i64 successor) {
            add_intervals(successor);
            if (check(added == 0 || i64(more[added - 1]) < successor, REPEATED)) more[added++] = Index(successor);
        });
        if (fault) return;
        add_intervals(file.n);
        // Merge from the back, until only successors are left that are copied and in their place.
        for (i64 to = degree - 1; more != row && added > 0; to--) {
            Index last = more[added - 1];
            if (!check(copied == 0 || row[copied - 1] != last, REPEATED)) return;
            row[to] = copied && row[copied - 1] > last ? row[--copied] : more[--added];
        }
    }
};

// Call read(record) for the vertices first .. last - 1, until one has a fault: write it, its vertex and its position.
template <class Read> void read_records(const File& file, i64 first, i64 last, i64* fault, const Read& read) {
    for (i64 v = first; v < last; v++) {
        Record record{file, v};
        read(record);
        if (!record.fault) continue;
        fault[0] = record.fault, fault[1] = v, fault[2] = file.positions[v];
        return;
    }
}

}  // namespace

// Read the positions of all records from an `.offsets` file, which has their differences. Return how many it holds.
EXPORT bv_positions(i64 size, i64 n, const u8* bytes, i64 code, i64* positions) {
    Bits bits{bytes, size, 0};
    Team team(1);
    u64 at = 0;
    for (i64 v = 0; v <= n; v++) {
        if (team.ends(0, v)) return INTERRUPTED;
        u64 gap = code == GAMMA ? bits.gamma() : bits.number(code & 7, code >> 3);
        if (bits.past_end() || gap > u64(INT64_MAX) - at) return v;
        at += gap;
        positions[v] = i64(at);
    }
    return n + 1;
}

// Write the out-degree of each vertex; for each piece a fault, its vertex and its position. Unless the positions of the
// records are known, there is one piece, whose records are found one after the other.
template <class Index>
i64 bv_degrees(i64 size, i64 n, i64 pieces, const u8* bytes, const i64* codes, i64 window, i64 shortest, i64 known,
               i64* positions, const i64* bounds, Index* degrees, i64* faults, i64 threads) {
    File file{bytes, size, n, codes, window, shortest, positions};
    Team team(threads);
    return team.for_each(pieces, [&](i64 piece) {
        read_records(file, bounds[piece], bounds[piece + 1], faults + 3 * piece, [&](Record& record) {
            if (known) record.read_head();
            else if (record.check(!team.ends(0, record.v), ENDS)) record.skip(degrees);
            degrees[record.v] = Index(record.degree);
            if (!known) positions[record.v + 1] = record.bits.at;
        });
    });
}
EXPORT_INDICES(bv_degrees)

// Move each bound of a piece to the next vertex from which on no record refers to one before it.
EXPORT bv_cuts(i64 size, i64 n, i64 pieces, const u8* bytes, const i64* codes, i64 window, const i64* positions,
               i64* bounds) {
    File file{bytes, size, n, codes, window, 0, positions};
    Team team(1);
    i64 cut = 0;
    for (i64 piece = 1; piece < pieces; piece++) {
        cut = most(cut, bounds[piece]);
        // A reference from v to a vertex before the cut rules out all cuts up to v.
        for (i64 v = cut; v < least(n, cut + window); v++) {
            if (team.ends(0, v)) return INTERRUPTED;
            Record record{file, v};
            record.read_head();
            if (record.fault) break;  // a fault for bv_decode
            if (v - record.reference < cut) cut = v + 1;
        }
        bounds[piece] = cut;
    }
    return 0;
}

// Write the successors of all vertices; for each piece a fault, its vertex and its position.
template <class Index>
i64 bv_decode(i64 size, i64 n, i64 pieces, i64, i64 parts, i64 width, const u8* bytes, const i64* codes, i64 window,
              i64 shortest, const i64* positions, const i64* offsets, const i64* bounds, Index* indices, Index* scratch,
              i64* faults) {
    File file{bytes, size, n, codes, window, shortest, positions};
    Team team(least(parts, pieces));
    i64 next = 0;
    return team.run([&](i64 thread) {
        for (i64 piece; (piece = team.take(next, pieces, thread)) >= 0;)
            read_records(file, bounds[piece], bounds[piece + 1], faults + 3 * piece, [&](Record& record) {
                record.decode(offsets, indices, scratch + thread * width);
                record.check(record.bits.at == positions[record.v + 1], LENGTH);
            });
    });
}
EXPORT_INDICES(bv_decode)
