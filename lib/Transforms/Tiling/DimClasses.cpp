// Classes of dimensions by union-find over the indexing maps of a kernel.
#include "lib/Transforms/Tiling/DimClasses.h"
#include "lib/Conversion/PrimToLinalg/Scan.h"
#include "lib/Conversion/PrimToLinalg/Sort.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace lamina;

bool lamina::isExternal(Value tensor) {
  Operation *op = tensor.getDefiningOp();
  if (!op || op->hasTrait<OpTrait::ConstantLike>())
    return true;
  if (isa<tensor::ExtractSliceOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::CastOp>(op))
    return isExternal(op->getOperand(0));
  return false;
}

unsigned DimClasses::idOf(const void *owner, unsigned dim) {
  auto [it, isNew] = ids.try_emplace({owner, dim}, parents.size());
  if (isNew)
    parents.push_back(it->second);
  return it->second;
}

unsigned DimClasses::find(unsigned id) {
  while (parents[id] != id)
    id = parents[id] = parents[parents[id]];
  return id;
}

void DimClasses::needWhole(Value value) {
  for (int64_t dim = 0; dim < cast<RankedTensorType>(value.getType()).getRank(); ++dim)
    wholeIds.push_back(idOf(value.getAsOpaquePointer(), dim));
}

void DimClasses::addLinalg(linalg::LinalgOp op) {
  auto tie = [&](Value value, AffineMap map) {
    for (auto [dim, expr] : llvm::enumerate(map.getResults()))
      if (auto loop = dyn_cast<AffineDimExpr>(expr))
        join(idOf(value.getAsOpaquePointer(), dim), idOf(op.getOperation(), loop.getPosition()));
  };
  for (OpOperand &operand : op->getOpOperands())
    if (isa<RankedTensorType>(operand.get().getType()) && !(readsApart && isExternal(operand.get())))
      tie(operand.get(), op.getMatchingIndexingMap(&operand));
  for (OpResult result : op->getResults())
    tie(result, op.getMatchingIndexingMap(op.getDpsInitOperand(result.getResultNumber())));
  for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray()))
    if (kind == utils::IteratorType::reduction)
      wholeIds.push_back(idOf(op.getOperation(), loop));
  op->walk([&](tensor::ExtractOp extract) {
    if (!isExternal(extract.getTensor()))
      needWhole(extract.getTensor());
  });
}

/// Dimensions that are split or merged stay whole.
void DimClasses::addReshape(Value expanded, Value collapsed, ArrayRef<SmallVector<int64_t, 2>> groups) {
  for (auto [dim, group] : llvm::enumerate(groups)) {
    unsigned id = idOf(collapsed.getAsOpaquePointer(), dim);
    if (group.size() == 1) {
      join(id, idOf(expanded.getAsOpaquePointer(), group.front()));
      continue;
    }
    wholeIds.push_back(id);
    for (int64_t part : group)
      wholeIds.push_back(idOf(expanded.getAsOpaquePointer(), part));
  }
}

/// An op that needs one dimension whole and has the others of its operand.
void DimClasses::addAlong(Value result, Value operand, int64_t whole) {
  for (int64_t dim = 0; dim < cast<RankedTensorType>(result.getType()).getRank(); ++dim)
    join(idOf(result.getAsOpaquePointer(), dim), idOf(operand.getAsOpaquePointer(), dim));
  wholeIds.push_back(idOf(result.getAsOpaquePointer(), whole));
}

void DimClasses::add(Operation *op) {
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    return addLinalg(linalgOp);
  if (llvm::none_of(op->getResultTypes(), llvm::IsaPred<RankedTensorType>))
    return;
  // A view of an argument is there as a whole; its dimensions have no owner in the kernel.
  if (op->getNumResults() == 1 && isExternal(op->getResult(0)))
    return;
  if (auto scan = matchScan(op)) {
    addAlong(op->getResult(1), scan->second, scan->first.dim);
  } else if (auto sort = matchSort(op)) {
    addAlong(op->getResult(0), sort->second, sort->first.dim);
  } else if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
    llvm::SmallBitVector dropped = slice.getDroppedDims();
    unsigned next = 0;
    for (auto [dim, offset, size, stride] :
         llvm::enumerate(slice.getMixedOffsets(), slice.getMixedSizes(), slice.getMixedStrides())) {
      if (dropped.test(dim))
        continue;
      unsigned kept = next++;
      int64_t sourceSize = slice.getSourceType().getDimSize(dim), resultSize = slice.getType().getDimSize(kept);
      if (isConstantIntValue(offset, 0) && isConstantIntValue(stride, 1) && sourceSize == resultSize &&
          sourceSize != ShapedType::kDynamic)
        join(idOf(slice.getSource().getAsOpaquePointer(), dim), idOf(slice.getResult().getAsOpaquePointer(), kept));
    }
  } else if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
    addReshape(expand.getResult(), expand.getSrc(), expand.getReassociationIndices());
  } else if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
    addReshape(collapse.getSrc(), collapse.getResult(), collapse.getReassociationIndices());
  } else if (!isa<tensor::EmptyOp>(op)) {
    tileable = false;
  }
}

DimClasses::DimClasses(kernel::FuncOp func) {
  for (auto op : func.getBody().front().getOps<linalg::LinalgOp>())
    readsApart |= op->hasAttr("lamina.contraction");
  for (Operation &op : func.getBody().front().without_terminator())
    add(&op);
  for (unsigned id : wholeIds)
    whole.insert(find(id));
}
