// Contractions: a generic over batch, lhs free, rhs free and contracted loops, marked for the kernels that targets have
// for it.
#include "lib/Conversion/PrimToLinalg/Body.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace lamina;

/// Body of a contraction: the product of two elements is added to the accumulator, in its type.
static Value accumulate(OpBuilder &b, Location loc, Value lhs, Value rhs, Value total) {
  lhs = castFloat(b, loc, lhs, total.getType());
  rhs = castFloat(b, loc, rhs, total.getType());
  if (isa<FloatType>(total.getType()))
    return arith::AddFOp::create(b, loc, total, arith::MulFOp::create(b, loc, lhs, rhs));
  return arith::AddIOp::create(b, loc, total, arith::MulIOp::create(b, loc, lhs, rhs));
}

void lamina::emitDotGeneral(Emitter &emitter, prim::DotGeneralOp op) {
  Location loc = op.getLoc();
  for (Value operand : {op.getLhs(), op.getRhs()})
    if (Value base = getContractionBase(operand); base.getDefiningOp())
      emitter.getTensor(base);

  // Loops: the result's dimensions, then the contracted ones.
  Exprs loops(emitter.getSizes(op.getResult()));
  unsigned rank = loops.size();
  Exprs lhsSizes(emitter.getSizes(op.getLhs())), rhsSizes(emitter.getSizes(op.getRhs()));
  for (int64_t dim : op.getLhsContract())
    loops.push_back(lhsSizes[dim]);
  Body body(emitter, loc, loops);

  unsigned nextFree = op.getLhsBatch().size();
  auto accessOf = [&](ArrayRef<int64_t> batch, ArrayRef<int64_t> contract, unsigned operandRank) {
    Access access;
    for (int64_t dim = 0; dim < operandRank; ++dim) {
      auto *b = llvm::find(batch, dim), *c = llvm::find(contract, dim);
      if (b != batch.end())
        access.push_back(body.getLoop(b - batch.begin()));
      else if (c != contract.end())
        access.push_back(body.getLoop(rank + (c - contract.begin())));
      else
        access.push_back(body.getLoop(nextFree++));
    }
    return access;
  };
  Access lhsAccess = accessOf(op.getLhsBatch(), op.getLhsContract(), lhsSizes.size());
  Access rhsAccess = accessOf(op.getRhsBatch(), op.getRhsContract(), rhsSizes.size());
  Value lhs = body.getScalar(op.getLhs(), lhsAccess), rhs = body.getScalar(op.getRhs(), rhsAccess);

  Type accumulator = getComputeType(op.getType().getElementType());
  Value init = emitter.makeFilled(loc, emitter.getSizes(op.getResult()),
                                  cast<TypedAttr>(emitter.builder.getZeroAttr(accumulator)));
  Exprs results;
  for (unsigned loop = 0; loop < rank; ++loop)
    results.push_back(body.getLoop(loop));
  Value total = body.addOut(init, AffineMap::get(loops.size(), 0, results, emitter.getContext()));
  SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
  iterators.resize(loops.size(), utils::IteratorType::reduction);
  Value next = accumulate(body.builder, loc, lhs, rhs, total);
  linalg::GenericOp generic = body.finish(iterators, next, "lamina.contraction");
  if (op.getTf32())
    generic->setAttr("lamina.tf32", emitter.builder.getUnitAttr());
  emitter.define(op.getResult(), generic.getResult(0));
}

/// The input of a convolution with its zeros around and between elements: loops are n, (g,) i and the padded positions.
static Value padInput(Emitter &emitter, prim::ConvolutionOp op, ArrayRef<AffineExpr> paddedSizes, bool isGrouped) {
  Location loc = op.getLoc();
  Body body(emitter, loc, paddedSizes);
  OpBuilder &b = body.builder;
  MLIRContext *context = emitter.getContext();
  Access access;
  SmallVector<bool> checked{false, false};
  access.push_back(body.getLoop(0));
  access.push_back(isGrouped ? body.getLoop(1) * paddedSizes[2] + body.getLoop(2) : body.getLoop(1));
  unsigned first = isGrouped ? 3 : 2;
  Value condition;
  for (auto [i, low, dilation] : llvm::enumerate(op.getLow(), op.getLhsDilations())) {
    Index position = body.add(body.getLoop(first + i), getAffineConstantExpr(-low, context));
    if (dilation != 1) {
      Value at = body.getValue(position), zero = arith::ConstantIndexOp::create(b, loc, 0);
      Value step = arith::ConstantIndexOp::create(b, loc, dilation);
      Value onGrid =
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, arith::RemSIOp::create(b, loc, at, step), zero);
      condition = condition ? Value(arith::AndIOp::create(b, loc, condition, onGrid)) : onGrid;
      // Rounds a position before the start towards 0, so only the check of its sign below tells it apart from the
      // first.
      Value notBelow = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, at, zero);
      condition = arith::AndIOp::create(b, loc, condition, notBelow);
      position = Value(arith::DivSIOp::create(b, loc, at, step));
    }
    access.push_back(position);
    checked.push_back(dilation != 1 || low != 0 || op.getHigh()[i] != 0);
  }
  Type elementType = op.getLhs().getType().getElementType();
  Value scalar = body.getGuarded(op.getLhs(), access, checked, condition, getScalarConstant(b, loc, elementType, 0));
  unsigned rank = paddedSizes.size();
  body.addOut(emitter.makeEmpty(loc, paddedSizes, elementType), AffineMap::getMultiDimIdentityMap(rank, context));
  SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
  return body.finish(iterators, scalar, "lamina.padding").getResult(0);
}

void lamina::emitConvolution(Emitter &emitter, prim::ConvolutionOp op) {
  Location loc = op.getLoc();
  MLIRContext *context = emitter.getContext();
  int64_t groups = op.getGroups();
  bool isGrouped = groups != 1;
  unsigned numSpatial = op.getStrides().size();
  Exprs inSizes(emitter.getSizes(op.getLhs())), weightSizes(emitter.getSizes(op.getRhs())),
      outSizes(emitter.getSizes(op.getResult()));
  AffineExpr group = getAffineConstantExpr(groups, context);
  auto split = [&](Exprs sizes, unsigned dim) {
    AffineExpr rest = simplifySize(sizes[dim].floorDiv(group));
    sizes[dim] = rest;
    sizes.insert(sizes.begin() + dim, group);
    return sizes;
  };

  // Operands; with groups as (n, g, i, x...), (g, o, i, k...) and (n, g, o, x...).
  Value input;
  if (needsPadding(op)) {
    Exprs padded = inSizes;
    for (unsigned i = 0; i < numSpatial; ++i)
      padded[2 + i] =
          simplifySize((inSizes[2 + i] - 1) * op.getLhsDilations()[i] + (1 + op.getLow()[i] + op.getHigh()[i]));
    input = padInput(emitter, op, isGrouped ? split(padded, 1) : padded, isGrouped);
  } else {
    input = emitter.getTensor(op.getLhs());
    if (isGrouped)
      input = emitter.splitDim(loc, input, 1, split(inSizes, 1), 2);
  }
  if (isGrouped)
    outSizes = split(outSizes, 1);

  // Loops: n, (g,) o, x..., then i, k....
  Exprs loops = outSizes;
  unsigned rank = loops.size(), firstSpatial = rank - numSpatial;
  loops.append(weightSizes.begin() + 1, weightSizes.end());
  Body body(emitter, loc, loops);
  auto loop = [&](unsigned i) { return body.getLoop(i); };
  Exprs inMap{loop(0)}, outMap;
  if (isGrouped)
    inMap.push_back(loop(1));
  inMap.push_back(loop(rank));
  for (unsigned i = 0; i < numSpatial; ++i)
    inMap.push_back(loop(firstSpatial + i) * op.getStrides()[i] + loop(rank + 1 + i) * op.getDilations()[i]);
  for (unsigned i = 0; i < rank; ++i)
    outMap.push_back(loop(i));
  auto mapOf = [&](const Exprs &exprs) { return AffineMap::get(loops.size(), 0, exprs, context); };

  Value lhs = body.addInput(input, mapOf(inMap)), rhs;
  if (isGrouped) {
    Value weight = emitter.splitDim(loc, emitter.getTensor(op.getRhs()), 0, split(weightSizes, 0), 2);
    Exprs weightMap{loop(1), loop(2)};
    for (unsigned i = rank; i < loops.size(); ++i)
      weightMap.push_back(loop(i));
    rhs = body.addInput(weight, mapOf(weightMap));
  } else {
    Access access{loop(1)};
    for (unsigned i = rank; i < loops.size(); ++i)
      access.push_back(loop(i));
    rhs = body.getScalar(op.getRhs(), access);
  }
  Type accumulator = getComputeType(op.getType().getElementType());
  Value init = emitter.makeFilled(loc, outSizes, cast<TypedAttr>(emitter.builder.getZeroAttr(accumulator)));
  Value total = body.addOut(init, mapOf(outMap));
  SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
  iterators.resize(loops.size(), utils::IteratorType::reduction);
  Value next = accumulate(body.builder, loc, lhs, rhs, total);
  linalg::GenericOp generic = body.finish(iterators, next, "lamina.convolution");
  if (op.getTf32())
    generic->setAttr("lamina.tf32", emitter.builder.getUnitAttr());
  Value result = generic.getResult(0);
  if (isGrouped)
    result = emitter.mergeDims(loc, result, 1, emitter.getSizes(op.getResult()), 2);
  emitter.define(op.getResult(), result);
}
