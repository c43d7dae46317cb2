// lamina-hoist-constants: computes once, in @init, what depends on no argument of a call.
#include "dialects/Prim/Prim.h"
#include "lib/Transforms/Fusion/InitFunction.h"
#include "lib/Transforms/Fusion/KernelGraph.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/Pass.h"

namespace lamina {
#define GEN_PASS_DECL_HOISTCONSTANTS
#define GEN_PASS_DEF_HOISTCONSTANTS
#include "lib/Transforms/Fusion/Passes.h.inc"
} // namespace lamina

using namespace mlir;
using namespace lamina;

/// A value of up to this many bytes is kept, even if it is bigger than what it is made of, when a kernel of its own
/// would have to make it.
static constexpr int64_t kSmallBytes = 1 << 20;

static int64_t countBytes(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.hasStaticShape() ? type.getNumElements() * ((type.getElementTypeBitWidth() + 7) / 8) : INT64_MAX / 2;
}

/// Whether an attribute of the op has an index symbol, whose values come with each call.
static bool usesSymbols(Operation *op) {
  return llvm::any_of(op->getAttrs(), [](NamedAttribute attr) {
    auto exprs = dyn_cast<AffineMapAttr>(attr.getValue());
    return exprs && exprs.getValue().getNumSymbols() > 0;
  });
}

namespace {

struct HoistConstants : lamina::impl::HoistConstantsBase<HoistConstants> {
  using HoistConstantsBase::HoistConstantsBase;

  void runOnOperation() override {
    auto main = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!main || main.isExternal())
      return;
    if (failed(InitFunction::check(main)))
      return signalPassFailure();
    InitFunction init(main);
    // Bytes of the constant arguments below each value that could be computed once; a literal has none.
    DenseMap<Value, int64_t> source;
    for (BlockArgument argument : main.getArguments())
      if (InitFunction::isConstantArgument(argument))
        source[argument] = countBytes(argument);
    // Values that no kernel could make while it reads them.
    DenseSet<Value> needsKernel;
    SmallVector<Operation *> candidates;
    for (Operation &op : main.getBody().front().without_terminator()) {
      bool constant = isa<prim::PrimDialect>(op.getDialect()) && op.getNumResults() == 1 && !usesSymbols(&op);
      int64_t bytes = 0;
      for (Value operand : op.getOperands()) {
        constant &= source.contains(operand);
        bytes += source.lookup(operand);
      }
      if (!constant || cast<RankedTensorType>(op.getResult(0).getType()).getNumDynamicDims())
        continue;
      source[op.getResult(0)] = bytes;
      OpRole role = getRole(&op);
      if ((role != OpRole::Free && role != OpRole::Elementwise) ||
          llvm::any_of(op.getOperands(), [&](Value operand) { return needsKernel.contains(operand); }))
        needsKernel.insert(op.getResult(0));
      candidates.push_back(&op);
    }
    // A value that is read moves when it does work and does not grow; else what it is made of is read in its turn.
    llvm::SmallPtrSet<Operation *, 8> isCandidate(candidates.begin(), candidates.end()), roots, read;
    SmallVector<Operation *> pending;
    auto readAll = [&](Operation *user) {
      for (Value operand : user->getOperands())
        if (Operation *def = operand.getDefiningOp(); def && isCandidate.contains(def) && read.insert(def).second)
          pending.push_back(def);
    };
    for (Operation &op : main.getBody().front())
      if (!isCandidate.contains(&op))
        readAll(&op);
    while (!pending.empty()) {
      Operation *op = pending.pop_back_val();
      Value value = op->getResult(0);
      int64_t most = std::max(source.lookup(value), needsKernel.contains(value) ? kSmallBytes : 0);
      if (getRole(op) != OpRole::Free && countBytes(value) <= most)
        roots.insert(op);
      else
        readAll(op);
    }
    IRMapping mapping;
    std::function<Value(Value)> materialise = [&](Value value) -> Value {
      if (Value known = mapping.lookupOrNull(value))
        return known;
      if (auto argument = dyn_cast<BlockArgument>(value)) {
        mapping.map(value, init.valueOf(argument));
        return mapping.lookup(value);
      }
      for (Value operand : value.getDefiningOp()->getOperands())
        materialise(operand);
      OpBuilder builder = init.builder();
      builder.clone(*value.getDefiningOp(), mapping);
      ++numHoisted;
      return mapping.lookup(value);
    };
    for (Operation *op : candidates)
      if (roots.contains(op))
        op->getResult(0).replaceAllUsesWith(init.addResult(materialise(op->getResult(0))));
    for (Operation *op : llvm::reverse(candidates))
      if (op->use_empty())
        op->erase();
    init.finish();
  }
};

} // namespace
