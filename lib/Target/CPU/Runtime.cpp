// The C runtime that compiled CPU code calls: parallel regions, launches and scratch memory.
#include "lib/Target/CPU/Runtime.h"
#include "llvm/ADT/SmallVector.h"
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <dlfcn.h>
#include <mutex>

namespace {

/// The entry points of an OpenMP runtime. They are looked up in the running process, never linked: a second runtime
/// would have to wait for the workers of PyTorch's own, which spin between regions.
struct OpenMP {
  void (*parallel)(void (*)(void *), void *, unsigned threads, unsigned flags);
  int (*maxThreads)();
  int (*inParallel)();
  int (*threadNumber)();
  int (*numThreads)();

  bool load(void *library) {
    auto find = [&](auto &function, const char *name) {
      return (function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name)));
    };
    return find(parallel, "GOMP_parallel") && find(maxThreads, "omp_get_max_threads") &&
           find(inParallel, "omp_in_parallel") && find(threadNumber, "omp_get_thread_num") &&
           find(numThreads, "omp_get_num_threads");
  }
};

/// The runtime that libtorch_cpu is bound to, or null while there is none. A miss is not remembered: PyTorch may be
/// loaded later.
const OpenMP *findOpenMP() {
  static OpenMP openmp;
  static std::atomic<bool> found{false};
  if (found.load(std::memory_order_acquire))
    return &openmp;
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  if (found.load(std::memory_order_relaxed))
    return &openmp;
  bool ok = openmp.load(RTLD_DEFAULT);
  // PyTorch may have been loaded with RTLD_LOCAL.
  for (const char *name : {"libtorch_cpu.so", "libgomp.so.1"}) {
    if (ok)
      break;
    if (void *library = dlopen(name, RTLD_NOLOAD | RTLD_LAZY))
      ok = openmp.load(library);
  }
  found.store(ok, std::memory_order_release);
  return ok ? &openmp : nullptr;
}

struct Region {
  const OpenMP *openmp;
  LaminaKernel kernel;
  int64_t *block;
  int64_t programs;
};

void runRange(void *data) {
  const Region &region = *static_cast<Region *>(data);
  int64_t thread = region.openmp->threadNumber(), threads = region.openmp->numThreads();
  int64_t each = region.programs / threads, rest = region.programs % threads;
  int64_t begin = thread * each + std::min(thread, rest);
  int64_t end = begin + each + (thread < rest);
  if (begin < end)
    region.kernel(region.block, begin, end);
}

struct Scratch {
  void *memory = nullptr;
  int64_t bytes = 0;
  ~Scratch() { std::free(memory); }
};
thread_local Scratch scratch;

struct Hook {
  LaminaLaunchHook function = nullptr;
  void *data = nullptr;
};
thread_local Hook hook;

} // namespace

extern "C" {

void lamina_parallel(LaminaKernel kernel, int64_t *block, int64_t programs) {
  if (programs > 1) {
    const OpenMP *openmp = findOpenMP();
    if (openmp && !openmp->inParallel()) {
      int64_t threads = std::min<int64_t>(openmp->maxThreads(), programs);
      if (threads > 1) {
        Region region{openmp, kernel, block, programs};
        return openmp->parallel(runRange, &region, threads, /*flags=*/0);
      }
    }
  }
  if (programs > 0)
    kernel(block, 0, programs);
}

void lamina_launch(LaminaKernel kernel, int64_t *block, int64_t programs, const char *name) {
  if (programs <= 0)
    return;
  const Hook current = hook;
  if (!current.function)
    return lamina_parallel(kernel, block, programs);
  current.function(current.data, name, 1);
  lamina_parallel(kernel, block, programs);
  current.function(current.data, name, 0);
}

void lamina_run(const int64_t *program, const LaminaEntry *kernels, const int64_t *values, const int64_t *args,
                char *arena) {
  auto read = [&] {
    int64_t number = *program++;
    return number >= 0 ? number : values[-1 - number];
  };
  llvm::SmallVector<int64_t, 64> block;
  for (int64_t launches = *program++; launches > 0; --launches) {
    const LaminaEntry &kernel = kernels[*program++];
    int64_t programs = read(), pointers = *program++, symbols = *program++;
    block.resize(pointers + symbols);
    for (int64_t i = 0; i < pointers; ++i) {
      int64_t base = *program++;
      block[i] = (base < 0 ? reinterpret_cast<int64_t>(arena) : args[base]) + read();
    }
    for (int64_t i = 0; i < symbols; ++i)
      block[pointers + i] = read();
    lamina_launch(kernel.function, block.data(), programs, kernel.name);
  }
}

void *lamina_scratch(int64_t bytes) {
  if (bytes > scratch.bytes) {
    std::free(scratch.memory);
    // Growing by half at least keeps the number of reallocations logarithmic when sizes creep up.
    int64_t size = (std::max(bytes, scratch.bytes + scratch.bytes / 2) + 63) / 64 * 64;
    scratch.memory = std::aligned_alloc(64, size);
    if (!scratch.memory)
      std::abort();
    scratch.bytes = size;
  }
  return scratch.memory;
}

void lamina_set_launch_hook(LaminaLaunchHook function, void *data) { hook = {function, data}; }

int64_t lamina_num_threads(void) {
  const OpenMP *openmp = findOpenMP();
  return openmp && !openmp->inParallel() ? openmp->maxThreads() : 1;
}
}
