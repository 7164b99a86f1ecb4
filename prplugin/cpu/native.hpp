// What all CPU kernels share: types, symbol names, compensated sums, and a team of threads.
//
// Interface: plain C functions, called by `prplugin.cpu.library`, which checks the type and the length of every array
// first. Kernels neither allocate results nor check arguments. C++ is used for its templates alone: no exceptions, no
// standard library.
//
// Floating point: no contraction and no reassociation by the compiler (see build.py). The order of additions is the
// one that is written, so the bits are the same for any instruction set and any number of threads.
#pragma once

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

using i32 = int32_t;
using i64 = int64_t;
using u8 = uint8_t;
using u32 = uint32_t;
using u64 = uint64_t;
using f32 = float;
using f64 = double;

#ifdef _WIN32
#define VISIBLE __declspec(dllexport)
#else
#define VISIBLE __attribute__((visibility("default")))
#endif

// Define a function that `prplugin.cpu.library` finds by its name.
#define EXPORT extern "C" VISIBLE i64

// Export the instance of a function template for some types by a pointer, which `prplugin.cpu.library` finds by the name
// of the template and the suffixes of the types, in the order in which type variables occur.
#define EXPORT_INSTANCE(name, suffix, ...) \
    extern "C" {                           \
    VISIBLE auto instance_##name##_##suffix = name<__VA_ARGS__>; \
    }
#define EXPORT_INDICES(name) EXPORT_INSTANCE(name, i4, u32) EXPORT_INSTANCE(name, i8, u64)
#define EXPORT_SIGNED(name) EXPORT_INSTANCE(name, i4, i32) EXPORT_INSTANCE(name, i8, i64)
#define EXPORT_PAIRS(name)                                                        \
    EXPORT_INSTANCE(name, i4_i4, i32, i32) EXPORT_INSTANCE(name, i4_i8, i32, i64) \
    EXPORT_INSTANCE(name, i8_i4, i64, i32) EXPORT_INSTANCE(name, i8_i8, i64, i64)
#define EXPORT_FLOATS(name)                                                       \
    EXPORT_INSTANCE(name, i4_f8, u32, f64) EXPORT_INSTANCE(name, i4_f4, u32, f32) \
    EXPORT_INSTANCE(name, i8_f8, u64, f64) EXPORT_INSTANCE(name, i8_f4, u64, f32)

template <class T> static inline T least(T a, T b) { return b < a ? b : a; }
template <class T> static inline T most(T a, T b) { return a < b ? b : a; }
template <class T> static inline void swap(T& a, T& b) {
    T before = a;
    a = b;
    b = before;
}

// Return the first of `size` entries that belongs to a part of about equally many.
static inline i64 part_of(i64 size, i64 part, i64 parts) { return i64((__int128)size * part / parts); }

// A sum of terms and the sum of the rounding errors of its additions, by Knuth's TwoSum, as in sums.cuh.
struct CompensatedSum {
    f64 sum = 0, errors = 0;

    void add(f64 term, f64 more_errors = 0) {
        f64 after = sum + term, added = after - sum;
        errors += ((sum - (after - added)) + (term - added)) + more_errors;
        sum = after;
    }

    f64 value() const { return sum + errors; }
};

constexpr i64 INTERRUPTED = INT64_MIN;  // returned by a function that a signal handler's exception ended

namespace interpreter {
// Run Python's handlers of signals that have arrived; return whether one raised an exception, which is kept.
bool interrupted();
}

// The threads of one call. `run` starts them and waits for their end, so that a fork of the process finds none.
class Team {
  public:
    static constexpr i64 MOST = 256;

    explicit Team(i64 threads) : count_(most<i64>(1, least<i64>(threads, MOST))) {
        clock_gettime(CLOCK_MONOTONIC, &polled_);
    }

    i64 count() const { return count_; }

    // Call body(thread) on every thread of the team; return 0, or INTERRUPTED.
    template <class Body> i64 run(const Body& body) {
        struct Start {
            Team* team;
            const Body* body;
            i64 thread;
        } starts[MOST];
        pthread_t handles[MOST];
        auto call = [](void* argument) -> void* {
            auto start = static_cast<Start*>(argument);
            while (!__atomic_load_n(&start->team->released_, __ATOMIC_ACQUIRE)) sched_yield();
            (*start->body)(start->thread);
            return nullptr;
        };
        i64 started = 1;
        for (; started < count_; started++) {
            starts[started] = {this, &body, started};
            if (pthread_create(&handles[started], nullptr, call, &starts[started]) != 0) break;
        }
        count_ = started;  // fewer than asked for if the system has no more
        __atomic_store_n(&released_, true, __ATOMIC_RELEASE);
        body(0);
        for (i64 thread = 1; thread < started; thread++) pthread_join(handles[thread], nullptr);
        return stopped() ? INTERRUPTED : 0;
    }

    // Call body(piece) for the pieces 0 .. count - 1, each on the thread that is free next.
    template <class Body> i64 for_each(i64 count, const Body& body) {
        count_ = most<i64>(1, least(count_, count));
        i64 next = 0;
        return run([&](i64 thread) {
            for (i64 piece; (piece = take(next, count, thread)) >= 0;) body(piece);
        });
    }

    // Call body(part, first, last) for `parts` parts of about equally many of `size` entries.
    template <class Body> i64 for_parts(i64 size, i64 parts, const Body& body) {
        return for_each(parts, [&](i64 part) { body(part, part_of(size, part, parts), part_of(size, part + 1, parts)); });
    }

    // Return the next piece below `count` that no thread has taken; -1 if none is left or the call was interrupted.
    i64 take(i64& next, i64 count, i64 thread) {
        if (ends(thread)) return -1;
        i64 piece = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);
        return piece < count ? piece : -1;
    }

    // Wait for all threads, which then see each other's writes; return false on all of them if the call is to end.
    bool barrier(i64 thread) {
        i64 turn = __atomic_load_n(&turn_, __ATOMIC_RELAXED);
        if (thread == 0) poll();
        if (__atomic_add_fetch(&waiting_, 1, __ATOMIC_ACQ_REL) == count_) {
            waiting_ = 0;
            goes_on_ = !stopped();
            __atomic_store_n(&turn_, turn + 1, __ATOMIC_RELEASE);
        }
        for (i64 spins = 0; __atomic_load_n(&turn_, __ATOMIC_ACQUIRE) == turn; spins++) {
            if (spins > SPINS) sched_yield();
        }
        return goes_on_;
    }

    // Ask for signals, at most every 50 ms; called on thread 0 alone.
    void poll() {
        timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        if ((now.tv_sec - polled_.tv_sec) * 1000000000LL + (now.tv_nsec - polled_.tv_nsec) < POLL_NANOSECONDS) return;
        polled_ = now;
        if (interpreter::interrupted()) __atomic_store_n(&stopped_, true, __ATOMIC_RELAXED);
    }

    // Ask for signals on thread 0, in a loop at some turns only; return whether the call is to end.
    bool ends(i64 thread, i64 turn = 0) {
        if (thread == 0 && turn % POLL_TURNS == 0) poll();
        return stopped();
    }

    // Ask for signals until other threads have counted `done` up to `all`, or the call is interrupted; on thread 0 alone.
    void wait_for(const i64& done, i64 all) {
        for (; __atomic_load_n(&done, __ATOMIC_RELAXED) < all && !stopped(); poll()) {
            timespec millisecond = {0, 1000000};
            nanosleep(&millisecond, nullptr);
        }
    }

    bool stopped() const { return __atomic_load_n(&stopped_, __ATOMIC_RELAXED); }

  private:
    static constexpr i64 SPINS = 4000;                // before a thread gives its core away
    static constexpr i64 POLL_TURNS = 128;             // of a loop, between two calls of `poll`
    static constexpr i64 POLL_NANOSECONDS = 50000000;  // between two questions for signals

    i64 count_;
    i64 waiting_ = 0, turn_ = 0;
    bool goes_on_ = true, released_ = false, stopped_ = false;
    timespec polled_;  // when signals were last asked for
};
