// lamina-crash-for-test: crashes, so that recovery from crashes can be tested.
#include "mlir/IR/Operation.h"
#include "mlir/Pass/Pass.h"
#include "llvm/Support/ErrorHandling.h"
#include <cassert>
#include <csignal>

namespace lamina {
#define GEN_PASS_DECL_CRASHFORTEST
#define GEN_PASS_DEF_CRASHFORTEST
#include "lib/Support/Passes.h.inc"
} // namespace lamina

namespace {
/// Uses the stack up; what happens after the call keeps it from being a loop.
volatile int sum, deepest = -1;
int recurse(int depth) {
  if (depth == deepest)
    return sum;
  volatile char frame[256] = {static_cast<char>(depth)};
  sum = sum + recurse(depth + 1) + frame[depth % 256];
  return sum;
}

struct CrashForTest : lamina::impl::CrashForTestBase<CrashForTest> {
  using CrashForTestBase::CrashForTestBase;

  void runOnOperation() override {
    if (kind == "error") {
      getOperation()->emitError("is refused, as asked for");
      return signalPassFailure();
    }
    if (kind == "fatal")
      llvm::report_fatal_error("fatal, as asked for", /*gen_crash_diag=*/false);
    if (kind == "overflow")
      recurse(1);
    assert(kind == "segfault" && "crash, as asked for");
    raise(SIGSEGV);
  }
};
} // namespace
