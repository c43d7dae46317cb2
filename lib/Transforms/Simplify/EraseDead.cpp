// lamina-erase-dead: erases ops without side effects whose results nothing uses.
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/Pass.h"

namespace lamina {
#define GEN_PASS_DEF_ERASEDEAD
#include "lib/Transforms/Simplify/Passes.h.inc"
} // namespace lamina

using namespace mlir;

namespace {
struct EraseDead : lamina::impl::EraseDeadBase<EraseDead> {
  using EraseDeadBase::EraseDeadBase;

  void runOnOperation() override {
    for (Block &block : getOperation().getFunctionBody())
      for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
        if (isOpTriviallyDead(&op))
          op.erase();
  }
};
} // namespace
