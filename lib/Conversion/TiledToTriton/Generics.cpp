// Tensors computed from others: elements of a linalg.generic's results, slices, reshapes.
#include "lib/Conversion/PrimToLinalg/Scan.h"
#include "lib/Conversion/PrimToLinalg/Sort.h"
#include "lib/Conversion/TiledToTriton/ProgramEmitter.h"
#include "lib/Conversion/TiledToTriton/ScalarOps.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace lamina;

BlockBuilder::Key ProgramEmitter::getKey(Value value, ArrayRef<AxisBlock> indices) {
  BlockBuilder::Key key{value.getAsOpaquePointer(), {}};
  for (const AxisBlock &index : indices)
    key.second.push_back(index.value.getAsOpaquePointer());
  if (guard)
    key.second.push_back(guard.value.getAsOpaquePointer());
  return key;
}

unsigned ProgramEmitter::getLevel(ArrayRef<AxisBlock> indices) {
  unsigned level = guard ? guard.level : 0;
  for (const AxisBlock &index : indices)
    level = std::max(level, index.level);
  return level;
}

AxisBlock ProgramEmitter::read(Value tensor, const Indices &indices) {
  unsigned level = std::max(getLevel(indices), getLoopLevel(tensor));
  return blocks.remember(getKey(tensor, indices), level, [&] { return compute(tensor, indices); });
}

static bool isSizeOf(OpFoldResult size, Value tensor, unsigned dim) {
  auto empty = tensor.getDefiningOp<tensor::EmptyOp>();
  return empty && empty.getMixedSizes()[dim] == size;
}

/// Whether nothing is left of the destination.
static bool isWhole(tensor::InsertSliceOp insert) {
  for (auto [dim, offset, size, stride] :
       llvm::enumerate(insert.getMixedOffsets(), insert.getMixedSizes(), insert.getMixedStrides()))
    if (!isConstantIntValue(offset, 0) || !isConstantIntValue(stride, 1) ||
        !(getConstantIntValue(size) == insert.getDestType().getDimSize(dim) || isSizeOf(size, insert.getDest(), dim)))
      return false;
  return true;
}

AxisBlock ProgramEmitter::compute(Value tensor, const Indices &indices) {
  Type element = getElementTypeOrSelf(tensor.getType());
  if (auto argument = dyn_cast<BlockArgument>(tensor)) {
    if (auto forall = dyn_cast<scf::ForallOp>(argument.getOwner()->getParentOp()))
      return read(forall.getOutputs()[argument.getArgNumber() - forall.getRank()], indices);
    return load(argument.getArgNumber(), indices);
  }
  Operation *op = tensor.getDefiningOp();
  if (auto generic = dyn_cast<linalg::GenericOp>(op))
    return readGeneric(generic, cast<OpResult>(tensor).getResultNumber(), indices);
  if (auto loop = dyn_cast<scf::ForOp>(op); loop && loop->hasAttr("kernel.online"))
    return readOnline(loop, cast<OpResult>(tensor).getResultNumber(), indices);
  if (auto fill = dyn_cast<linalg::FillOp>(op))
    return getScalar(fill.getInputs().front());
  if (auto cast = dyn_cast<tensor::CastOp>(op))
    return read(cast.getSource(), indices);
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    if (auto value = dyn_cast<SplatElementsAttr>(constant.getValue()))
      return blocks.constant(value.getSplatValue<TypedAttr>());
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
    llvm::SmallBitVector dropped = slice.getDroppedDims();
    Indices inner;
    unsigned next = 0;
    for (auto [dim, offset, stride] : llvm::enumerate(slice.getMixedOffsets(), slice.getMixedStrides())) {
      AxisBlock at = getScalar(offset);
      if (!dropped.test(dim))
        at = blocks.add(at, blocks.multiply(indices[next++], getScalar(stride)));
      inner.push_back(at);
    }
    return read(slice.getSource(), inner);
  }
  if (auto insert = dyn_cast<tensor::InsertSliceOp>(op); insert && isWhole(insert)) {
    llvm::SmallBitVector dropped = insert.getDroppedDims();
    Indices inner;
    for (auto [dim, index] : llvm::enumerate(indices))
      if (!dropped.test(dim))
        inner.push_back(index);
    return read(insert.getSource(), inner);
  }
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
    Indices inner(collapse.getSrcType().getRank());
    for (auto [dim, group] : llvm::enumerate(collapse.getReassociationIndices())) {
      AxisBlock left = indices[dim];
      for (int64_t source : llvm::reverse(group)) {
        if (source == group.front()) {
          inner[source] = left;
          continue;
        }
        AxisBlock size = getDimExtent(collapse.getSrc(), source).size;
        inner[source] = blocks.make<arith::RemUIOp>(left, size);
        left = blocks.make<arith::DivUIOp>(left, size);
      }
    }
    return read(collapse.getSrc(), inner);
  }
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
    Indices inner;
    for (const ReassociationIndices &group : expand.getReassociationIndices()) {
      AxisBlock linear = blocks.index(0);
      for (int64_t dim : group)
        linear = blocks.add(blocks.multiply(linear, getDimExtent(tensor, dim).size), indices[dim]);
      inner.push_back(linear);
    }
    return read(expand.getSrc(), inner);
  }
  if (auto scan = matchScan(op))
    return readScan(op, scan->first, scan->second, indices);
  if (auto sort = matchSort(op))
    return readSort(op, sort->first, sort->second, indices);
  if (auto sort = matchRowSort(op)) {
    Indices all(cast<RankedTensorType>(sort->second.getType()).getRank(), blocks.index(0));
    all[sort->first.dim] = indices[0];
    return readSort(op, sort->first, sort->second, all);
  }
  return fail(op, "has no form in Triton IR", element);
}

AxisBlock ProgramEmitter::readGeneric(linalg::GenericOp op, unsigned result, const Indices &indices) {
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(result));
  Indices loops(op.getNumLoops());
  for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
    auto loop = dyn_cast<AffineDimExpr>(expr);
    if (!loop)
      return fail(op, "has a result that is not indexed by its loops",
                  getElementTypeOrSelf(op.getResult(result).getType()));
    loops[loop.getPosition()] = indices[dim];
  }
  if (llvm::all_of(loops, [](const AxisBlock &loop) { return static_cast<bool>(loop); }))
    return getBodyValue(op, op.getBody()->getTerminator()->getOperand(result), loops);
  if (op->hasAttr("lamina.contraction") || op->hasAttr("lamina.convolution"))
    if (AxisBlock product = contract(op, loops))
      return product;
  return reduce(op, result, loops);
}

AxisBlock ProgramEmitter::getBodyValue(linalg::GenericOp op, Value value, const Indices &loops) {
  if (!op.getRegion().isAncestor(value.getParentRegion()))
    return getScalar(value);
  unsigned level = std::max(getLevel(loops), getLoopLevel(op->getResult(0)));
  return blocks.remember(getKey(value, loops), level, [&] { return computeBodyValue(op, value, loops); });
}

AxisBlock ProgramEmitter::readOperand(linalg::GenericOp op, OpOperand &operand, const Indices &loops) {
  if (!isa<RankedTensorType>(operand.get().getType()))
    return getScalar(operand.get());
  Indices indices;
  for (AffineExpr expr : op.getMatchingIndexingMap(&operand).getResults())
    indices.push_back(evaluate(expr, loops, {}));
  return read(operand.get(), indices);
}

AxisBlock ProgramEmitter::computeBodyValue(linalg::GenericOp op, Value value, const Indices &loops) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return readOperand(op, op->getOpOperand(argument.getArgNumber()), loops);
  Operation *inner = value.getDefiningOp();
  if (auto index = dyn_cast<linalg::IndexOp>(inner))
    return loops[index.getDim()];
  if (auto extract = dyn_cast<tensor::ExtractOp>(inner)) {
    Indices indices;
    for (Value index : extract.getIndices())
      indices.push_back(blocks.castInteger(getBodyValue(op, index, loops), blocks.indexType));
    return read(extract.getTensor(), indices);
  }
  if (isa<scf::ForOp>(inner))
    return convertLoop(op, cast<OpResult>(value), loops);
  if (isa<scf::IfOp>(inner))
    return convertBranch(op, cast<OpResult>(value), loops);
  SmallVector<AxisBlock> operands;
  for (Value operand : inner->getOperands())
    operands.push_back(getBodyValue(op, operand, loops));
  if (auto apply = dyn_cast<affine::AffineApplyOp>(inner)) {
    for (AxisBlock &operand : operands)
      operand = blocks.castInteger(operand, blocks.indexType);
    ArrayRef<AxisBlock> all(operands);
    unsigned numDims = apply.getAffineMap().getNumDims();
    return evaluate(apply.getAffineMap().getResult(0), all.take_front(numDims), all.drop_front(numDims));
  }
  AxisBlock result = convertScalarOp(blocks, inner, operands);
  return result ? result : fail(inner, "has no form in Triton IR", value.getType());
}

/// A branch on a condition becomes a choice between both sides; what the first one loads is loaded under the condition.
AxisBlock ProgramEmitter::convertBranch(linalg::GenericOp op, OpResult result, const Indices &loops) {
  auto branch = cast<scf::IfOp>(result.getOwner());
  auto valueOf = [&](Block *side) {
    return getBodyValue(op, side->getTerminator()->getOperand(result.getResultNumber()), loops);
  };
  AxisBlock condition = getBodyValue(op, branch.getCondition(), loops), otherwise = valueOf(branch.elseBlock());
  AxisBlock outer = guard;
  guard = outer ? blocks.make<arith::AndIOp>(outer, condition) : condition;
  AxisBlock value = valueOf(branch.thenBlock());
  guard = outer;
  return blocks.select(condition, value, otherwise);
}

/// A loop on scalars, such as that of an integer power: its values become blocks over all the axes that it starts from.
AxisBlock ProgramEmitter::convertLoop(linalg::GenericOp op, OpResult result, const Indices &given) {
  auto loop = cast<scf::ForOp>(result.getOwner());
  IRMapping mapping;
  Block &body = *loop.getBody();
  SmallVector<AxisBlock> inits;
  for (Value init : loop.getInitArgs())
    inits.push_back(getBodyValue(op, init, given));
  SmallVector<const Axis *, 3> axes = blocks.join(inits);
  SmallVector<Value> starts;
  for (const AxisBlock &init : inits)
    starts.push_back(blocks.expand(init, axes).value);
  AxisBlock low = getBodyValue(op, loop.getLowerBound(), given), step = getBodyValue(op, loop.getStep(), given);
  auto lowValue = getConstantIntValue(loop.getLowerBound()), stepValue = getConstantIntValue(loop.getStep());
  if (lowValue != 0 || !stepValue)
    return fail(loop, "has bounds that have no form in Triton IR", result.getType());
  scf::ForOp made = blocks.enterLoop(getBodyValue(op, loop.getUpperBound(), given), *stepValue, starts);
  unsigned level = blocks.getLevel();
  llvm::DenseMap<Value, AxisBlock> values;
  values[loop.getInductionVar()] = {made.getInductionVar(), {}, level};
  for (auto [old, arg] : llvm::zip_equal(loop.getRegionIterArgs(), made.getRegionIterArgs()))
    values[old] = {arg, axes, level};
  auto lookUp = [&](Value value) { return values.contains(value) ? values[value] : getBodyValue(op, value, given); };
  for (Operation &inner : body.without_terminator()) {
    SmallVector<AxisBlock> operands = llvm::map_to_vector(inner.getOperands(), lookUp);
    AxisBlock converted = convertScalarOp(blocks, &inner, operands);
    if (!converted)
      converted = fail(&inner, "has no form in Triton IR", inner.getResult(0).getType());
    values[inner.getResult(0)] = converted;
  }
  SmallVector<Value> yields;
  for (Value value : body.getTerminator()->getOperands())
    yields.push_back(blocks.expand(lookUp(value), axes).value);
  blocks.leaveLoop(yields);
  return {made.getResult(result.getResultNumber()), axes, blocks.getLevel()};
}
