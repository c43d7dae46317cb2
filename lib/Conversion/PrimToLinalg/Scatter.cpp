// Scatters: a loop nest over the updates, in row-major order, because later updates see earlier ones.
#include "lib/Conversion/PrimToLinalg/Body.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace lamina;

static prim::Combiner getCombiner(prim::ScatterMode mode) {
  switch (mode) {
  case prim::ScatterMode::prod:
    return prim::Combiner::prod;
  case prim::ScatterMode::max:
    return prim::Combiner::max;
  case prim::ScatterMode::min:
    return prim::Combiner::min;
  default:
    return prim::Combiner::sum;
  }
}

/// The result with one update applied. An update whose index is outside the tensor changes nothing.
static Value applyUpdate(Emitter &emitter, prim::ScatterOp op, OpBuilder &b, ValueRange position, Value tensor) {
  Location loc = op.getLoc();
  Body body(emitter, loc, b);
  OpBuilder &inner = body.builder;
  unsigned numBatch = cast<RankedTensorType>(op.getIndices().front().getType()).getRank();
  Access all(position.begin(), position.end()), batch(all.begin(), all.begin() + numBatch);
  ArrayRef<AffineExpr> sizes = emitter.getSizes(op.getOperand());
  SmallVector<Value> indices;
  Value condition;
  unsigned next = numBatch;
  for (unsigned dim = 0; dim < sizes.size(); ++dim) {
    auto *at = llvm::find(op.getDims(), static_cast<int64_t>(dim));
    if (at == op.getDims().end()) {
      indices.push_back(position[next++]);
      continue;
    }
    Value index = body.getScalar(op.getIndices()[at - op.getDims().begin()], batch);
    index = arith::IndexCastOp::create(inner, loc, inner.getIndexType(), index);
    // Unsigned, so that a negative index is outside too.
    Value inside = arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::ult, index, body.getValue(sizes[dim]));
    condition = condition ? Value(arith::AndIOp::create(inner, loc, condition, inside)) : inside;
    indices.push_back(index);
  }
  auto branch = scf::IfOp::create(inner, loc, TypeRange{tensor.getType()}, condition, /*addThenBlock=*/true,
                                  /*addElseBlock=*/true);
  OpBuilder then = branch.getThenBodyBuilder();
  Body update(emitter, loc, then);
  Value element = update.getScalar(op.getUpdates(), all);
  Type elementType = op.getType().getElementType(), wide = getComputeType(elementType);
  if (op.getMode() != prim::ScatterMode::assign) {
    Value old = castFloat(update.builder, loc, tensor::ExtractOp::create(update.builder, loc, tensor, indices), wide);
    Value combined = buildCombination(update.builder, loc, getCombiner(op.getMode()), elementType, old,
                                      castFloat(update.builder, loc, element, wide));
    element = castFloat(update.builder, loc, combined, getScalarType(elementType));
  }
  Value changed = tensor::InsertOp::create(update.builder, loc, element, tensor, indices);
  scf::YieldOp::create(update.builder, loc, changed);
  OpBuilder otherwise = branch.getElseBodyBuilder();
  scf::YieldOp::create(otherwise, loc, tensor);
  return branch.getResult(0);
}

void lamina::emitScatter(Emitter &emitter, prim::ScatterOp op) {
  Location loc = op.getLoc();
  OpBuilder &builder = emitter.builder;
  // The operand's elements, in a tensor of the result's own.
  Exprs sizes(emitter.getSizes(op.getOperand()));
  Value tensor;
  {
    Body body(emitter, loc, sizes);
    Value scalar = body.getScalar(op.getOperand(), body.getIdentity());
    body.addOut(emitter.makeEmpty(loc, sizes, scalar.getType()),
                AffineMap::getMultiDimIdentityMap(sizes.size(), emitter.getContext()));
    SmallVector<utils::IteratorType> iterators(sizes.size(), utils::IteratorType::parallel);
    tensor = body.finish(iterators, scalar).getResult(0);
  }
  SmallVector<Value> low, high, step;
  for (AffineExpr size : emitter.getSizes(op.getUpdates())) {
    low.push_back(arith::ConstantIndexOp::create(builder, loc, 0));
    high.push_back(emitter.getSizeValue(size));
    step.push_back(arith::ConstantIndexOp::create(builder, loc, 1));
  }
  auto nest =
      scf::buildLoopNest(builder, loc, low, high, step, ValueRange{tensor},
                         [&](OpBuilder &b, Location, ValueRange position, ValueRange state) -> scf::ValueVector {
                           return {applyUpdate(emitter, op, b, position, state.front())};
                         });
  if (!nest.loops.empty())
    nest.loops.front()->setAttr("lamina.scatter", builder.getUnitAttr());
  emitter.define(op.getResult(), nest.results.front());
}
