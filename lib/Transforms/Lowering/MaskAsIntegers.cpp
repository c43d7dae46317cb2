// lamina-mask-as-integers: masked loads and stores of 16-bit floats move integers.
#include "lib/Transforms/Lowering/Passes.h"
#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace lamina {
#define GEN_PASS_DEF_MASKASINTEGERS
#include "lib/Transforms/Lowering/Passes.h.inc"
} // namespace lamina

using namespace mlir;

/// The vector of i16 for one of 16-bit floats, or null.
static VectorType asIntegers(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  if (!vector || !isa<Float16Type, BFloat16Type>(vector.getElementType()))
    return {};
  return vector.clone(IntegerType::get(type.getContext(), 16));
}

namespace {
struct MaskAsIntegers : lamina::impl::MaskAsIntegersBase<MaskAsIntegers> {
  using MaskAsIntegersBase::MaskAsIntegersBase;

  void runOnOperation() override {
    getOperation()->walk([](Operation *op) {
      OpBuilder builder(op);
      Location loc = op->getLoc();
      auto cast = [&](Type type, Value value) {
        return LLVM::BitcastOp::create(builder, loc, type, value).getResult();
      };
      if (auto load = dyn_cast<LLVM::MaskedLoadOp>(op)) {
        VectorType type = asIntegers(load.getType());
        if (!type)
          return;
        for (OpOperand &operand : load.getPassThruMutable())
          operand.set(cast(type, operand.get()));
        Type original = load.getType();
        load.getResult().setType(type);
        builder.setInsertionPointAfter(op);
        Value back = cast(original, load.getResult());
        load.getResult().replaceAllUsesExcept(back, back.getDefiningOp());
      } else if (auto store = dyn_cast<LLVM::MaskedStoreOp>(op)) {
        if (VectorType type = asIntegers(store.getValue().getType()))
          store.getValueMutable().set(cast(type, store.getValue()));
      }
    });
  }
};
} // namespace
