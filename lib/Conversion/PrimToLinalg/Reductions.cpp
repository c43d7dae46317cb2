// Reductions with an index, and scans.
#include "lib/Conversion/PrimToLinalg/Body.h"
#include "lib/Conversion/PrimToLinalg/Scan.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace lamina;

/// Whether the element replaces the best one so far: it is better, or the first NaN. Ties keep the earlier index.
static Value replaces(OpBuilder &b, Location loc, Type elementType, bool isMax, Value element, Value best) {
  if (isa<FloatType>(elementType)) {
    Value better =
        arith::CmpFOp::create(b, loc, isMax ? arith::CmpFPredicate::OGT : arith::CmpFPredicate::OLT, element, best);
    Value isNaN = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, element, element);
    Value bestOrdered = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::ORD, best, best);
    return arith::OrIOp::create(b, loc, better, arith::AndIOp::create(b, loc, isNaN, bestOrdered));
  }
  bool isUnsigned = elementType.isUnsignedInteger() || elementType.isInteger(1);
  auto above = isUnsigned ? arith::CmpIPredicate::ugt : arith::CmpIPredicate::sgt;
  auto below = isUnsigned ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt;
  return arith::CmpIOp::create(b, loc, isMax ? above : below, element, best);
}

/// A generic with two results: the best element and its index. The index starts at an invalid -1, so that the first
/// element is taken even if it equals the identity.
void lamina::emitArgReduce(Emitter &emitter, prim::ArgReduceOp op) {
  Location loc = op.getLoc();
  Type elementType = op.getOperand().getType().getElementType();
  bool isMax = op.getExtremum() == prim::Extremum::max;
  Exprs sizes(emitter.getSizes(op.getResult()));
  OpBuilder &outer = emitter.builder;
  Value best = emitter.makeFilled(loc, sizes,
                                  getIdentity(outer, isMax ? prim::Combiner::max : prim::Combiner::min, elementType));
  Value index = emitter.makeFilled(loc, sizes, outer.getI64IntegerAttr(-1));

  Body body(emitter, loc, emitter.getSizes(op.getOperand()));
  OpBuilder &b = body.builder;
  Exprs kept;
  SmallVector<utils::IteratorType> iterators;
  unsigned rank = op.getOperand().getType().getRank();
  for (unsigned loop = 0; loop < rank; ++loop) {
    bool isReduced = loop == op.getDim();
    iterators.push_back(isReduced ? utils::IteratorType::reduction : utils::IteratorType::parallel);
    if (!isReduced)
      kept.push_back(body.getLoop(loop));
  }
  AffineMap map = AffineMap::get(rank, 0, kept, emitter.getContext());
  Value element = castFloat(b, loc, body.getScalar(op.getOperand(), body.getIdentity()), getComputeType(elementType));
  Value bestSoFar = body.addOut(best, map), indexSoFar = body.addOut(index, map);
  Value position = arith::IndexCastOp::create(b, loc, b.getI64Type(), body.getValue(body.getLoop(op.getDim())));
  Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, indexSoFar,
                                        getScalarConstant(b, loc, b.getI64Type(), 0));
  Value take = arith::OrIOp::create(b, loc, isFirst, replaces(b, loc, elementType, isMax, element, bestSoFar));
  Value newBest = arith::SelectOp::create(b, loc, take, element, bestSoFar);
  Value newIndex = arith::SelectOp::create(b, loc, take, position, indexSoFar);
  emitter.define(op.getResult(), body.finish(iterators, {newBest, newIndex}, "lamina.arg_reduce").getResult(1));
}

void lamina::emitScan(Emitter &emitter, prim::ScanOp op) {
  Value operand = emitter.getTensor(op.getOperand());
  ScanInfo info{static_cast<int64_t>(op.getDim()), op.getCombiner(), op.getType().getElementType()};
  emitter.define(op.getResult(), buildScan(emitter.builder, op.getLoc(), operand, info));
}
