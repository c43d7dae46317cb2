// lamina-crash-for-test: crashes, so that recovery from crashes can be tested.
#include "mlir/IR/Operation.h"
#include "mlir/Pass/Pass.h"
#include <cassert>
#include <csignal>

namespace lamina {
#define GEN_PASS_DECL_CRASHFORTEST
#define GEN_PASS_DEF_CRASHFORTEST
#include "lib/Support/Passes.h.inc"
} // namespace lamina

namespace {
struct CrashForTest : lamina::impl::CrashForTestBase<CrashForTest> {
  using CrashForTestBase::CrashForTestBase;

  void runOnOperation() override {
    if (kind == "error") {
      getOperation()->emitError("is refused, as asked for");
      return signalPassFailure();
    }
    assert(kind == "segfault" && "crash, as asked for");
    raise(SIGSEGV);
  }
};
} // namespace
