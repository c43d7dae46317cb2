// lamina-expand-math: math ops on f32 become polynomials, others calls of libm.
#include "lib/Transforms/Math/CallLibm.h"
#include "lib/Transforms/Math/Division.h"
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

template <Value (*function)(const Emitter &, Value, Value)> Value binary(const Emitter &e, Operation *op) {
  return function(e, op->getOperand(0), op->getOperand(1));
}

const llvm::StringMap<Expansion> &expansions() {
  static const llvm::StringMap<Expansion> table = {
      {"math.atan", unary<expandAtan>},   {"math.atan2", binary<expandAtan2>}, {"math.cos", expandCos},
      {"math.cosh", unary<expandCosh>},   {"math.erf", unary<expandErf>},      {"math.exp", unary<expandExp>},
      {"math.exp2", unary<expandExp2>},   {"math.expm1", unary<expandExpm1>},  {"math.log", unary<expandLog>},
      {"math.log10", unary<expandLog10>}, {"math.log1p", unary<expandLog1p>},  {"math.log2", unary<expandLog2>},
      {"math.powf", binary<expandPow>},   {"math.rsqrt", unary<expandRsqrt>},  {"math.sin", expandSin},
      {"math.sinh", unary<expandSinh>},   {"math.tanh", unary<expandTanh>},
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
    llvm::SmallVector<arith::DivFOp> divisions;
    getOperation()->walk([&](arith::DivFOp op) { divisions.push_back(op); });
    for (arith::DivFOp op : divisions)
      if (Value quotient = divideByInvariant(op)) {
        op.replaceAllUsesWith(quotient);
        op.erase();
        ++expanded;
      }
    for (Operation *op : ops) {
      Type type = op->getResult(0).getType();
      if (isa<TensorType>(type))
        continue;
      auto row = expansions().find(op->getName().getStringRef());
      if (row == expansions().end() || !getElementTypeOrSelf(type).isF32()) {
        if (callLibm(op))
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
