// The pass that finds contractions and convolutions and replaces them by register-tiled loops.
#include "lib/Support/PassOptions.h"
#include "lib/Transforms/Contraction/LoopNest.h"
#include "lib/Transforms/Contraction/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace lamina {
#define GEN_PASS_DEF_LOWERCONTRACTIONS
#include "lib/Transforms/Contraction/Passes.h.inc"
} // namespace lamina

using namespace mlir;
using namespace lamina::contraction;

/// The buffer that a chain of views starts at.
static Value baseOf(Value value) {
  while (auto view = value.getDefiningOp<ViewLikeOpInterface>())
    value = view.getViewSource();
  return value;
}

/// Whether two buffers are known to be apart: both allocated here, or one allocated here and the other an argument.
static bool apart(Value x, Value y) {
  x = baseOf(x);
  y = baseOf(y);
  auto allocated = [](Value value) {
    return value.getDefiningOp<memref::AllocOp>() || value.getDefiningOp<memref::AllocaOp>();
  };
  return x != y &&
         ((allocated(x) && (allocated(y) || isa<BlockArgument>(y))) || (allocated(y) && isa<BlockArgument>(x)));
}

/// The fill with zero of exactly the output just before `op`, with nothing between that may touch it.
static linalg::FillOp zeroFillBefore(linalg::LinalgOp op) {
  Value output = op.getDpsInitOperand(0)->get();
  for (Operation *before = op->getPrevNode(); before; before = before->getPrevNode()) {
    if (auto fill = dyn_cast<linalg::FillOp>(before); fill && fill.getOutputs()[0] == output) {
      Value value = fill.getInputs()[0];
      bool zero = matchPattern(value, m_PosZeroFloat()) || matchPattern(value, m_Zero());
      // The op itself may read what was filled.
      bool readsFill = llvm::any_of(op.getDpsInputs(), [&](Value input) { return baseOf(input) == baseOf(output); });
      return zero && !readsFill ? fill : linalg::FillOp();
    }
    if (isMemoryEffectFree(before))
      continue;
    if (before->getNumRegions() && !isa<linalg::LinalgOp>(before))
      return {};
    auto effects = getEffectsRecursively(before);
    if (!effects)
      return {};
    for (const MemoryEffects::EffectInstance &effect : *effects)
      if (!isa<MemoryEffects::Allocate>(effect.getEffect()) &&
          (!effect.getValue() || !apart(effect.getValue(), output)))
        return {};
  }
  return {};
}

namespace {
struct LowerContractions : lamina::impl::LowerContractionsBase<LowerContractions> {
  using LowerContractionsBase::LowerContractionsBase;

  LogicalResult initialize(MLIRContext *context) override {
    return lamina::OptionCheck(*this, context)
        .oneOf(vectorBits, {128, 256, 512}, "512, 256 or 128")
        .atLeast(blockBytes, 1);
  }

  void runOnOperation() override {
    SmallVector<linalg::LinalgOp> ops;
    getOperation()->walk([&](linalg::LinalgOp op) { ops.push_back(op); });
    for (linalg::LinalgOp op : ops)
      if (failed(lower(op)) && (op->hasAttr("lamina.contraction") || op->hasAttr("lamina.convolution")))
        op->emitRemark("not lowered to a register kernel: its body or maps are of another form");
  }

  LogicalResult lower(linalg::LinalgOp op) {
    FailureOr<Match> match = matchProblem(op);
    if (failed(match))
      return failure();
    linalg::FillOp fill = zeroFillBefore(op);
    OpBuilder builder(op);
    Emitter emitter(builder, op.getLoc());
    Problem problem = buildProblem(emitter, op, *match);
    if (llvm::any_of(problem.k, [&](unsigned loop) { return problem.size(loop) == 0; })) {
      op->erase(); // an empty sum
      return success();
    }
    Schedule schedule = makeSchedule(emitter, problem, vectorBits, matrixUnit && vectorBits == 512);
    bool startAtZero = fill && !schedule.accumulates;
    emitLoopNest(emitter, problem, schedule, {vectorBits, blockBytes, startAtZero});
    if (startAtZero)
      fill->erase();
    op->erase();
    ++numLowered;
    numPacked += schedule.access > Access::Prepacked && schedule.access < Access::InPlace;
    return success();
  }
};
} // namespace
