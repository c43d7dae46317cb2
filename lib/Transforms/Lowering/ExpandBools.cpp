// lamina-expand-bools: elements of i1 in memory are read and written as bytes.
#include "lib/Transforms/Lowering/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Builders.h"

namespace lamina {
#define GEN_PASS_DEF_EXPANDBOOLS
#include "lib/Transforms/Lowering/Passes.h.inc"
} // namespace lamina

using namespace mlir;

/// The same memory as one of i8: both types become the same LLVM descriptor, and the cast disappears there.
static Value asBytes(OpBuilder &builder, Location loc, Value memory) {
  auto type = cast<MemRefType>(memory.getType());
  auto bytes = MemRefType::get(type.getShape(), builder.getI8Type(), type.getLayout(), type.getMemorySpace());
  return UnrealizedConversionCastOp::create(builder, loc, bytes, memory).getResult(0);
}

namespace {
struct ExpandBools : lamina::impl::ExpandBoolsBase<ExpandBools> {
  using ExpandBoolsBase::ExpandBoolsBase;

  void runOnOperation() override {
    getOperation()->walk([](Operation *op) {
      OpBuilder builder(op);
      Location loc = op->getLoc();
      if (auto load = dyn_cast<memref::LoadOp>(op); load && load.getType().isInteger(1)) {
        Value byte = memref::LoadOp::create(builder, loc, asBytes(builder, loc, load.getMemRef()), load.getIndices());
        Value zero = arith::ConstantOp::create(builder, loc, builder.getI8IntegerAttr(0));
        load.replaceAllUsesWith(Value(arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, byte, zero)));
        load.erase();
      } else if (auto store = dyn_cast<memref::StoreOp>(op); store && store.getValue().getType().isInteger(1)) {
        Value byte = arith::ExtUIOp::create(builder, loc, builder.getI8Type(), store.getValue());
        memref::StoreOp::create(builder, loc, byte, asBytes(builder, loc, store.getMemRef()), store.getIndices());
        store.erase();
      }
    });
  }
};
} // namespace
