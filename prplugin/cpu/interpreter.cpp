// Signals of the interpreter, the instruction set of the machine, and the sources of the library.
//
// Kernels run without the interpreter's lock. The thread that called one takes it at most 20 times per second to run
// the handlers of signals, as Python does between two of its instructions. In other threads than the main one this does
// nothing.
#include "native.hpp"

namespace {
struct {
    int (*ensure)();               // PyGILState_Ensure
    void (*release)(int);          // PyGILState_Release
    int (*check)();                // PyErr_CheckSignals
    void (*fetch)(void**, void**, void**);  // PyErr_Fetch
} python;
void* pending[3];  // type, value and traceback of the exception that a handler raised
}  // namespace

bool interpreter::interrupted() {
    if (!python.ensure) return false;
    int state = python.ensure();
    bool raised = python.check() != 0;
    if (raised) python.fetch(&pending[0], &pending[1], &pending[2]);
    python.release(state);
    return raised;
}

// Set the interpreter's functions, in the order of `python`.
EXPORT connect_interpreter(void** functions) {
    memcpy(&python, functions, sizeof python);
    return 0;
}

// Write the three pointers of the exception that ended a kernel to `exception`; the caller owns them.
EXPORT take_exception(void** exception) {
    memcpy(exception, pending, sizeof pending);
    memset(pending, 0, sizeof pending);
    return 0;
}

// Return the hash of the sources from which this library was compiled: see build.py.
EXPORT sources_digest() { return SOURCES; }

// Return the highest level of instructions for which a library is built that this machine has.
EXPORT instruction_level() {
#if defined(__x86_64__)
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2") ? 3 : 1;
#else
    return 1;
#endif
}
