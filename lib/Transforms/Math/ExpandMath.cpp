// lamina-expand-math: math ops on f32 become polynomials, others calls of libm.
#include "lib/Transforms/Math/CallLibm.h"
#include "lib/Transforms/Math/Emitter.h"
#include "lib/Transforms/Math/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/StringMap.h"

namespace lamina {
#define GEN_PASS_DEF_EXPANDMATH
#include "lib/Transforms/Math/Passes.h.inc"
} // namespace lamina

using namespace mlir;
using namespace lamina::math;

namespace {
using Expansion = Value (*)(const Emitter &, Operation *);

template <Value (*function)(const Emitter &, Value)> Value unary(const Emitter &e, Operation *op) {
  return function(e, op->getOperand(0));
}

const llvm::StringMap<Expansion> &expansions() {
  static const llvm::StringMap<Expansion> table = {
      {"math.exp", unary<expandExp>},
      {"math.tanh", unary<expandTanh>},
      {"math.erf", unary<expandErf>},
      {"math.log", unary<expandLog>},
  };
  return table;
}

struct ExpandMath : lamina::impl::ExpandMathBase<ExpandMath> {
  void runOnOperation() override {
    llvm::SmallVector<Operation *> ops;
    getOperation()->walk([&](Operation *op) {
      if (isa_and_nonnull<mlir::math::MathDialect>(op->getDialect()) && op->getNumResults() == 1)
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      Type type = op->getResult(0).getType();
      auto row = expansions().find(op->getName().getStringRef());
      if (row == expansions().end() || !getElementTypeOrSelf(type).isF32()) {
        if (callLibm(getOperation(), op))
          ++called;
        continue;
      }
      OpBuilder builder(op);
      Value result = row->second(Emitter(builder, op->getLoc(), type), op);
      op->getResult(0).replaceAllUsesWith(result);
      op->erase();
      ++expanded;
    }
  }
};
} // namespace
