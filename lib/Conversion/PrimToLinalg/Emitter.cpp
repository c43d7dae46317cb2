// The conversion's state, and the ops that need no file of their own.
#include "lib/Conversion/PrimToLinalg/Emitter.h"
#include "dialects/Kernel/Kernel.h"
#include "lib/Conversion/PrimToLinalg/Body.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace lamina;

Emitter::Emitter(FunctionOpInterface func, SizeAnalysis &sizes, const Plan &plan)
    : builder(func.getFunctionBody().front().getTerminator()), func(func), sizes(sizes), plan(plan) {}

// ---- sizes

/// In a kernel kernel.symbol; elsewhere the first argument dimension that is the bare symbol.
Value Emitter::getSymbol(unsigned number) {
  Value &value = symbols[number];
  if (value)
    return value;
  OpBuilder entry = OpBuilder::atBlockBegin(&func.getFunctionBody().front());
  if (isa<kernel::FuncOp>(func.getOperation()))
    return value = kernel::SymbolOp::create(entry, func.getLoc(), entry.getIndexType(), number);
  AffineExpr symbol = getAffineSymbolExpr(number, getContext());
  for (BlockArgument arg : func.getArguments())
    for (auto [dim, size] : llvm::enumerate(getSizes(arg)))
      if (size == symbol) {
        entry.setInsertionPointAfterValue(lookup(arg));
        return value = tensor::DimOp::create(entry, func.getLoc(), lookup(arg), dim);
      }
  return nullptr;
}

OpFoldResult Emitter::getSize(AffineExpr expr) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return builder.getIndexAttr(constant.getValue());
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return getSymbol(symbol.getPosition());
  unsigned count = 0;
  expr.walk([&](AffineExpr e) {
    if (auto symbol = dyn_cast<AffineSymbolExpr>(e))
      count = std::max(count, symbol.getPosition() + 1);
  });
  // Symbols that the expression leaves out are given any value.
  SmallVector<OpFoldResult> operands(count, OpFoldResult(builder.getIndexAttr(0)));
  expr.walk([&](AffineExpr e) {
    if (auto symbol = dyn_cast<AffineSymbolExpr>(e))
      operands[symbol.getPosition()] = getSymbol(symbol.getPosition());
  });
  return affine::makeComposedFoldedAffineApply(builder, func.getLoc(), AffineMap::get(0, count, expr), operands);
}

SmallVector<OpFoldResult> Emitter::getSizes(ArrayRef<AffineExpr> exprs) {
  return llvm::map_to_vector(exprs, [&](AffineExpr expr) { return getSize(expr); });
}

Value Emitter::getSizeValue(AffineExpr expr) {
  return getValueOrCreateConstantIndexOp(builder, func.getLoc(), getSize(expr));
}

// ---- tensors

Value Emitter::makeEmpty(Location loc, ArrayRef<AffineExpr> sizes, Type elementType) {
  return tensor::EmptyOp::create(builder, loc, getSizes(sizes), elementType);
}

Value Emitter::makeFilled(Location loc, ArrayRef<AffineExpr> sizes, TypedAttr value) {
  Value scalar = arith::ConstantOp::create(builder, loc, value);
  return linalg::FillOp::create(builder, loc, scalar, makeEmpty(loc, sizes, value.getType())).getResult(0);
}

Value Emitter::getTensor(Value value) {
  Value tensor = lookup(value);
  Type type = getScalarType(getElementTypeOrSelf(value.getType()));
  if (getElementTypeOrSelf(tensor.getType()) == type)
    return tensor;
  Body body(*this, value.getLoc(), getSizes(value));
  Value scalar = body.getScalar(value, body.getIdentity());
  unsigned rank = getSizes(value).size();
  body.addOut(makeEmpty(value.getLoc(), getSizes(value), type), AffineMap::getMultiDimIdentityMap(rank, getContext()));
  SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
  Value narrow = body.finish(iterators, scalar).getResult(0);
  define(value, narrow);
  return narrow;
}

static SmallVector<ReassociationIndices> reassociate(unsigned rank, unsigned dim, unsigned parts) {
  SmallVector<ReassociationIndices> groups;
  unsigned next = 0;
  for (unsigned i = 0; i < rank; ++i) {
    groups.emplace_back();
    for (unsigned part = 0; part < (i == dim ? parts : 1); ++part)
      groups.back().push_back(next++);
  }
  return groups;
}

Value Emitter::splitDim(Location loc, Value tensor, unsigned dim, ArrayRef<AffineExpr> newSizes, unsigned parts) {
  auto type = getTensorType(newSizes, getElementTypeOrSelf(tensor.getType()));
  auto groups = reassociate(newSizes.size() - parts + 1, dim, parts);
  return tensor::ExpandShapeOp::create(builder, loc, type, tensor, groups, getSizes(newSizes));
}

Value Emitter::mergeDims(Location loc, Value tensor, unsigned dim, ArrayRef<AffineExpr> newSizes, unsigned parts) {
  auto type = getTensorType(newSizes, getElementTypeOrSelf(tensor.getType()));
  return tensor::CollapseShapeOp::create(builder, loc, type, tensor, reassociate(newSizes.size(), dim, parts));
}

// ---- single ops

/// A row-major view: by way of one dimension, unless one shape refines the other.
void Emitter::emitReshape(Operation *op) {
  Value operand = op->getOperand(0), result = op->getResult(0);
  Value tensor = getTensor(operand);
  Exprs to(getSizes(result));
  auto type = getTensorType(to, getElementTypeOrSelf(tensor.getType()));
  auto from = cast<RankedTensorType>(tensor.getType());
  if (from == type && ArrayRef<AffineExpr>(to) == getSizes(operand))
    return define(result, tensor);
  if (from.hasStaticShape() && type.hasStaticShape() && from.getRank() != type.getRank())
    if (auto groups = getReassociationIndicesForReshape(from, type)) {
      if (from.getRank() > type.getRank())
        return define(result, tensor::CollapseShapeOp::create(builder, op->getLoc(), type, tensor, *groups));
      return define(result, tensor::ExpandShapeOp::create(builder, op->getLoc(), type, tensor, *groups, getSizes(to)));
    }
  Exprs flat{getNumElements(to, getContext())};
  if (from.getRank() == 0) {
    SmallVector<ReassociationIndices> none;
    Exprs one{getAffineConstantExpr(1, getContext())};
    tensor = tensor::ExpandShapeOp::create(builder, op->getLoc(), getTensorType(one, type.getElementType()), tensor,
                                           none, getSizes(one));
  } else if (from.getRank() > 1) {
    tensor = mergeDims(op->getLoc(), tensor, 0, flat, from.getRank());
  }
  if (type.getRank() == 0)
    tensor = tensor::CollapseShapeOp::create(builder, op->getLoc(), type, tensor, ArrayRef<ReassociationIndices>());
  else if (type.getRank() > 1)
    tensor = splitDim(op->getLoc(), tensor, 0, to, type.getRank());
  if (tensor.getType() != type)
    tensor = tensor::CastOp::create(builder, op->getLoc(), type, tensor);
  define(result, tensor);
}

void Emitter::emitConstant(Operation *op) {
  auto elements = cast<DenseElementsAttr>(cast<prim::ConstantOp>(op).getValue());
  Type type = getScalarType(elements.getElementType());
  if (type != elements.getElementType())
    elements = elements.bitcast(type);
  define(op->getResult(0), arith::ConstantOp::create(builder, op->getLoc(), elements));
}

LogicalResult Emitter::emitAlone(Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<prim::ReshapeOp>([&](auto reshape) { return emitReshape(reshape), success(); })
      .Case<prim::ConstantOp>([&](auto constant) -> LogicalResult {
        if (!isa<DenseElementsAttr>(constant.getValue()))
          return constant.emitError("only dense constants are supported in kernels");
        return emitConstant(constant), success();
      })
      .Case<prim::ArgReduceOp>([&](auto reduce) { return emitArgReduce(*this, reduce), success(); })
      .Case<prim::ScanOp>([&](auto scan) { return emitScan(*this, scan), success(); })
      .Case<prim::SortOp>([&](auto sort) { return emitSort(*this, sort), success(); })
      .Case<prim::DotGeneralOp>([&](auto dot) { return emitDotGeneral(*this, dot), success(); })
      .Case<prim::ConvolutionOp>([&](auto convolution) { return emitConvolution(*this, convolution), success(); })
      .Case<prim::ReduceWindowOp>([&](auto window) { return emitReduceWindow(*this, window), success(); })
      .Case<prim::ScatterOp>([&](auto scatter) { return emitScatter(*this, scatter), success(); })
      .Default([](Operation *op) { return op->emitOpError("is not supported in kernels"); });
}

// ---- groups

/// One generic: each pointwise item has an element a loop iteration, each reduction an accumulator.
void Emitter::emitMerged(const Group &group) {
  Location loc = group.items.front().value.getLoc();
  Body body(*this, loc, group.loopSizes);
  Access identity = body.getIdentity();
  unsigned rank = group.loopSizes.size();
  SmallVector<Value> yields;
  for (const Item &item : group.items) {
    body.loc = item.value.getLoc();
    Type elementType = getElementTypeOrSelf(item.value.getType());
    if (item.kind == Item::Reduce) {
      auto reduce = cast<prim::ReduceOp>(item.value.getDefiningOp());
      Exprs kept;
      for (unsigned loop = 0; loop < rank; ++loop)
        if (!group.reduced[loop])
          kept.push_back(body.getLoop(loop));
      Value scalar =
          castFloat(body.builder, body.loc, body.getScalar(reduce.getOperand(), identity), getComputeType(elementType));
      Value init = makeFilled(body.loc, getSizes(item.value), getIdentity(builder, reduce.getCombiner(), elementType));
      Value total = body.addOut(init, AffineMap::get(rank, 0, kept, getContext()));
      yields.push_back(buildCombination(body.builder, body.loc, reduce.getCombiner(), elementType, total, scalar));
      continue;
    }
    Value scalar = item.output >= 0 ? body.getScalar(item.value, identity) : body.computeScalar(item.value, identity);
    body.bind(item.value, identity, scalar);
    body.addOut(makeEmpty(body.loc, group.loopSizes, getScalarType(elementType)),
                AffineMap::getMultiDimIdentityMap(rank, getContext()));
    yields.push_back(scalar);
  }
  SmallVector<utils::IteratorType> iterators;
  for (unsigned loop = 0; loop < rank; ++loop)
    iterators.push_back(group.hasReduction && group.reduced[loop] ? utils::IteratorType::reduction
                                                                  : utils::IteratorType::parallel);
  body.loc = loc;
  linalg::GenericOp generic = body.finish(iterators, yields);
  for (auto [item, result] : llvm::zip_equal(group.items, generic.getResults())) {
    if (item.output >= 0)
      results[item.output] = result;
    else
      define(item.value, result);
  }
}

LogicalResult Emitter::emit(const Group &group) {
  if (group.items.front().kind == Item::Alone)
    return emitAlone(group.items.front().value.getDefiningOp());
  emitMerged(group);
  return success();
}

/// Unsigned arguments become signless; the prim ops, which still read their sign, keep the old type through a cast.
LogicalResult Emitter::bindArguments() {
  for (BlockArgument arg : func.getArguments()) {
    auto type = dyn_cast<RankedTensorType>(arg.getType());
    if (!type)
      return func.emitError("argument ") << arg.getArgNumber() << " is no ranked tensor";
    Type element = getScalarType(type.getElementType());
    if (element == type.getElementType()) {
      define(arg, arg);
      continue;
    }
    OpBuilder entry = OpBuilder::atBlockBegin(arg.getOwner());
    auto cast = UnrealizedConversionCastOp::create(entry, func.getLoc(), type.clone(element), arg);
    define(arg, cast.getResult(0));
  }
  return success();
}

LogicalResult Emitter::run() {
  Operation *terminator = func.getFunctionBody().front().getTerminator();
  results.resize(terminator->getNumOperands());
  if (failed(bindArguments()))
    return failure();
  for (const Group &group : plan.groups)
    if (failed(emit(group)))
      return failure();
  for (auto [result, value] : llvm::zip_equal(results, terminator->getOperands()))
    if (!result)
      result = getTensor(value);
  terminator->setOperands(results);
  return success();
}
