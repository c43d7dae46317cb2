// Reductions over sliding windows.
#include "lib/Conversion/PrimToLinalg/Body.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace lamina;

/// The operand with the combiner's identity around it.
static Value padOperand(Emitter &emitter, prim::ReduceWindowOp op) {
  Location loc = op.getLoc();
  MLIRContext *context = emitter.getContext();
  Exprs sizes(emitter.getSizes(op.getOperand()));
  for (auto [size, low, high] : llvm::zip_equal(sizes, op.getLow(), op.getHigh()))
    size = simplifySize(size + (low + high));
  Body body(emitter, loc, sizes);
  Access access;
  SmallVector<bool> checked;
  for (auto [i, low, high] : llvm::enumerate(op.getLow(), op.getHigh())) {
    access.push_back(body.getLoop(i) - low);
    checked.push_back(low != 0 || high != 0);
  }
  Type elementType = op.getType().getElementType(), scalarType = getScalarType(elementType);
  Value fill = arith::ConstantOp::create(body.builder, loc, getIdentity(body.builder, op.getCombiner(), elementType));
  fill = castFloat(body.builder, loc, fill, scalarType);
  Value scalar = body.getGuarded(op.getOperand(), access, checked, nullptr, fill);
  body.addOut(emitter.makeEmpty(loc, sizes, scalarType), AffineMap::getMultiDimIdentityMap(sizes.size(), context));
  SmallVector<utils::IteratorType> iterators(sizes.size(), utils::IteratorType::parallel);
  return body.finish(iterators, scalar, "lamina.padding").getResult(0);
}

/// Loops: the result's dimensions, then the dimensions of windows of more than one element.
void lamina::emitReduceWindow(Emitter &emitter, prim::ReduceWindowOp op) {
  Location loc = op.getLoc();
  MLIRContext *context = emitter.getContext();
  Value input = needsPadding(op) ? padOperand(emitter, op) : emitter.getTensor(op.getOperand());
  Exprs loops(emitter.getSizes(op.getResult()));
  unsigned rank = loops.size();
  for (int64_t size : op.getWindowSizes())
    if (size != 1)
      loops.push_back(getAffineConstantExpr(size, context));
  Body body(emitter, loc, loops);
  Exprs inMap, outMap;
  unsigned next = rank;
  for (unsigned i = 0; i < rank; ++i) {
    AffineExpr position = body.getLoop(i) * op.getStrides()[i];
    if (op.getWindowSizes()[i] != 1)
      position = position + body.getLoop(next++) * op.getDilations()[i];
    inMap.push_back(position);
    outMap.push_back(body.getLoop(i));
  }
  Type elementType = op.getType().getElementType();
  Value scalar = body.addInput(input, AffineMap::get(loops.size(), 0, inMap, context));
  scalar = castFloat(body.builder, loc, scalar, getComputeType(elementType));
  Value init = emitter.makeFilled(loc, emitter.getSizes(op.getResult()),
                                  getIdentity(emitter.builder, op.getCombiner(), elementType));
  Value total = body.addOut(init, AffineMap::get(loops.size(), 0, outMap, context));
  Value combined = buildCombination(body.builder, loc, op.getCombiner(), elementType, total, scalar);
  SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
  iterators.resize(loops.size(), utils::IteratorType::reduction);
  emitter.define(op.getResult(), body.finish(iterators, combined, "lamina.window").getResult(0));
}
