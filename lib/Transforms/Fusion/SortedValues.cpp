// Sorts as kernels make them: of two results, only the indices.
#include "lib/Transforms/Fusion/SortedValues.h"
#include "dialects/Prim/Prim.h"
#include "dialects/Prim/PrimSizes.h"

using namespace mlir;
using namespace lamina;

Value lamina::getKernelValue(Operation *op) {
  auto sort = dyn_cast<prim::SortOp>(op);
  return sort ? Value(sort.getIndices()) : Value(op->getResult(0));
}

void lamina::gatherSortedValues(func::FuncOp func) {
  for (auto sort : llvm::make_early_inc_range(func.getOps<prim::SortOp>())) {
    if (sort.getValues().use_empty())
      continue;
    OpBuilder builder(sort->getContext());
    builder.setInsertionPointAfter(sort);
    Location loc = sort.getLoc();
    SizeAnalysis analysis(func);
    ArrayRef<AffineExpr> sizes = analysis.getSizes(sort.getOperand());
    RankedTensorType type = sort.getIndices().getType();
    AffineMapAttr sizesAttr = type.hasStaticShape() ? AffineMapAttr() : getExprs(type.getContext(), sizes);
    SmallVector<Value> indices;
    SmallVector<int64_t> dims;
    for (int64_t dim = 0; dim < type.getRank(); ++dim) {
      dims.push_back(dim);
      bool isSorted = dim == static_cast<int64_t>(sort.getDim());
      indices.push_back(isSorted ? Value(sort.getIndices())
                                 : Value(prim::IotaOp::create(builder, loc, type, dim, sizesAttr)));
    }
    Value values = prim::GatherOp::create(builder, loc, sort.getValues().getType(), sort.getOperand(), indices, dims);
    sort.getValues().replaceAllUsesWith(values);
  }
}
