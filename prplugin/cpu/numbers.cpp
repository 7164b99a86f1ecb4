// Numbers in text: of adjacency lists, whose lines have any number of fields.
//
// Mapping: threads take pieces of whole lines: first to count, then to write the numbers of a piece behind those before it.
// Memory: each byte is read twice, and each number written once.
// Used for the formats of METIS and Ligra; pyarrow reads tables faster.
#include <locale.h>

#include "native.hpp"

namespace {

constexpr f64 TINY = 2.2250738585072014e-308;     // the least normal number
constexpr u64 EXACT = u64(1) << 53;               // float64 has all integers up to this one,
constexpr f64 POWERS[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                          1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};  // and these powers
constexpr i64 MOST_POWER = 22;
constexpr i64 LONGEST = 400;  // characters of a number

bool is_digit(u8 c) { return c >= '0' && c <= '9'; }
bool is_blank(u8 c) { return c == ' ' || (c >= '\t' && c <= '\r'); }  // line ends, too

// Call line() for each line that does not begin with `comment`, and then token(first, last) for each of its fields.
template <class Line, class Token>
void walk(const u8* text, i64 at, i64 end, i64 comment, const Line& line, const Token& token) {
    for (; at < end; at++) {
        bool counts = text[at] != comment;
        if (counts) line();
        while (at < end && text[at] != '\n') {
            if (!counts || is_blank(text[at])) {
                at++;
                continue;
            }
            i64 first = at;
            while (at < end && !is_blank(text[at])) at++;
            token(first, at);
        }
    }
}

// Parse a non-negative decimal number, correctly rounded; return NaN for anything else, and for one that float64 lacks.
f64 number(const u8* text, i64 first, i64 last) {
    u64 digits = 0;
    i64 at = first, count = 0, decimals = 0;
    for (bool point = false; at < last && digits <= EXACT; at++) {
        if (text[at] == '.' && !point) {
            point = true;
            continue;
        }
        if (!is_digit(text[at])) break;
        digits = digits * 10 + (text[at] - '0');
        count++;
        decimals += point;
    }
    if (count == 0 || last - first > LONGEST) return NAN;
    // Both operands are exact, so that the result is rounded once.
    if (at == last && digits <= EXACT && decimals <= MOST_POWER) return f64(digits) / POWERS[decimals];
    char copy[LONGEST + 1];
    memcpy(copy, text + first, size_t(last - first));
    copy[last - first] = 0;
    if (strspn(copy, "0123456789.eE+-") != size_t(last - first)) return NAN;
    char* stop = nullptr;
    f64 value = strtod(copy, &stop);
    if (*stop == '.') {  // the process has a locale with another decimal point
        *stop = *localeconv()->decimal_point;
        value = strtod(copy, &stop);
    }
    bool fits = value < INFINITY && (value >= TINY || digits == 0);
    return stop == copy + (last - first) && fits ? value : NAN;
}

}  // namespace

// Count the numbers and the lines of each piece, from `tokens` and `starts` on. Unless `values` is null, write the numbers,
// for each line the place of its first one, and for each piece the byte of the first field that is no number, or -1.
EXPORT read_numbers(i64, i64 pieces, i64, i64, const u8* text, const i64* bounds, i64 comment, i64* tokens, i64* starts,
                    f64* values, i64* lines, i64* faults, i64 threads) {
    return Team(threads).for_each(pieces, [&](i64 piece) {
        i64 token = tokens[piece], line = starts[piece], fault = -1;
        auto begin = [&] {
            if (values) lines[line] = token;
            line++;
        };
        auto read = [&](i64 first, i64 last) {
            if (values && isnan(values[token] = number(text, first, last)) && fault < 0) fault = first;
            token++;
        };
        walk(text, bounds[piece], bounds[piece + 1], comment, begin, read);
        tokens[piece] = token;
        starts[piece] = line;
        if (faults) faults[piece] = fault;
    });
}
