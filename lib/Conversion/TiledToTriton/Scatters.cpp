// Scatters in place: atomic operations on the elements that a program's updates go to.
#include "dialects/Prim/PrimSizes.h"
#include "lib/Conversion/TiledToTriton/ProgramEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace lamina;

/// Triton's numbers of what is done, of the order of memory and of who sees it.
static int32_t getAtomicNumber(kernel::Atomic kind) {
  switch (kind) {
  case kernel::Atomic::addi:
    return 4;
  case kernel::Atomic::addf:
    return 5;
  case kernel::Atomic::maxs:
    return 6;
  case kernel::Atomic::mins:
    return 7;
  }
  llvm_unreachable("no atomic operation");
}
static constexpr int32_t kRelaxed = 1, kDevice = 1;

void ProgramEmitter::emitScatter(kernel::ScatterOp op) {
  Type element = op.getType().getElementType();
  int32_t number = getAtomicNumber(op.getKind());
  if (!op.getElements()) {
    fail(op, "is not tiled", element);
    return;
  }
  // The numbers of the updates, taken apart into indices.
  Exprs sizes(op.getSizes().getResults());
  AffineExpr all = getNumElements(sizes, op.getContext());
  int64_t elements = *op.getElements();
  auto known = dyn_cast<AffineConstantExpr>(all);
  OpBuilder b = blocks.at(0);
  AxisBlock position{tt::GetProgramIdOp::create(b, blocks.loc, b.getI32Type(), b.getI32IntegerAttr(0)), {}, 0};
  position = blocks.multiply(blocks.castInteger(position, blocks.indexType), blocks.index(elements));
  AxisBlock left = blocks.getIndex(blocks.makeAxis(
      elements, nextOrder++, position, known && known.getValue() % elements == 0 ? AxisBlock() : getSize(all)));
  Indices place(sizes.size());
  for (unsigned dim = sizes.size(); dim-- > 0;) {
    place[dim] = dim == 0 ? left : blocks.make<arith::RemUIOp>(left, getSize(sizes[dim]));
    if (dim != 0)
      left = blocks.make<arith::DivUIOp>(left, getSize(sizes[dim]));
  }

  unsigned batch = cast<RankedTensorType>(op.getIndices().front().getType()).getRank();
  Indices batchPlace(place.begin(), place.begin() + batch), target;
  unsigned argument = kernel.getNumIns(), next = batch;
  AxisBlock inside;
  for (int64_t dim = 0; dim < op.getType().getRank(); ++dim) {
    const auto *at = llvm::find(op.getDims(), dim);
    if (at == op.getDims().end()) {
      target.push_back(place[next++]);
      continue;
    }
    AxisBlock index = read(op.getIndices()[at - op.getDims().begin()], batchPlace);
    // Unsigned, so that a negative index is outside too.
    AxisBlock size = blocks.castInteger(getDimExtent(kernel.getArgument(argument), dim).size, b.getI64Type());
    AxisBlock fits = blocks.apply({index, size}, [&](OpBuilder &b, ValueRange x) {
      return arith::CmpIOp::create(b, blocks.loc, arith::CmpIPredicate::ult, x[0], x[1]);
    });
    inside = inside ? blocks.make<arith::AndIOp>(inside, fits) : fits;
    target.push_back(blocks.castInteger(index, blocks.indexType));
  }
  AxisBlock value = read(op.getUpdates(), place), pointers = getPointers(argument, target);
  AxisBlock mask = blocks.getMask(blocks.join({pointers, value, inside}));
  mask = mask ? blocks.make<arith::AndIOp>(mask, inside) : inside;
  blocks.apply({pointers, value, mask}, [&](OpBuilder &b, ValueRange x) {
    return tt::AtomicRMWOp::create(b, blocks.loc, x[1].getType(), x[0], x[1], x[2], number, kRelaxed, kDevice);
  });
}
