// The C runtime that compiled CPU code calls: parallel regions, launches and scratch memory.
#ifndef LAMINA_TARGET_CPU_RUNTIME_H
#define LAMINA_TARGET_CPU_RUNTIME_H

#include <cstdint>

extern "C" {

/// A kernel: runs the programs [begin, end) of its grid. The block holds the pointers of the arguments, then the
/// values of the index symbols.
typedef void (*LaminaKernel)(int64_t *block, int64_t begin, int64_t end);

/// Called with `begin` = 1 before a kernel runs and with 0 after it, on the thread that launches.
typedef void (*LaminaLaunchHook)(void *data, const char *name, int begin);

/// Runs all programs of a grid, in contiguous ranges, on the threads of PyTorch's OpenMP runtime. Without such a
/// runtime, inside a parallel region, or when there is one program, the caller's thread runs them all.
void lamina_parallel(LaminaKernel kernel, int64_t *block, int64_t programs);

/// lamina_parallel, between the calls of the thread's launch hook. An empty grid is no launch.
void lamina_launch(LaminaKernel kernel, int64_t *block, int64_t programs, const char *name);

/// A kernel and its name.
struct LaminaEntry {
  LaminaKernel function;
  const char *name;
};

/// Goes through a host program: the number of launches, then for each launch the number of its kernel, its programs,
/// its numbers of pointers P and of symbols S, P pairs (argument, or -1 for the arena; offset in bytes) and S values.
/// Programs, offsets and values are constants, or -1 - i for values[i].
void lamina_run(const int64_t *program, const LaminaEntry *kernels, const int64_t *values, const int64_t *args,
                char *arena);

/// Memory of the calling thread, aligned to 64 bytes. The thread's next call may return the same memory.
void *lamina_scratch(int64_t bytes);

/// Sets the hook of the calling thread's launches; null is none.
void lamina_set_launch_hook(LaminaLaunchHook hook, void *data);

/// The number of threads that a launch from this thread may use.
int64_t lamina_num_threads(void);
}

#endif
