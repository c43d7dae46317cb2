// Canonicalization patterns of the whole prim dialect.
#include "dialects/Prim/Prim.h"
#include "dialects/Prim/PrimSizes.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace lamina;
using namespace lamina::prim;

namespace {

/// A value without elements is equal to any other of its type, so nothing needs to be computed for it.
struct DropEmpty : RewritePattern {
  explicit DropEmpty(MLIRContext *context) : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (!isa_and_present<PrimDialect>(op->getDialect()) || isa<ConstantOp>(op) || op->use_empty())
      return failure();
    if (auto broadcast = dyn_cast<BroadcastOp>(op); broadcast && broadcast.getOperand().getDefiningOp<ConstantOp>())
      return failure();
    auto func = op->getParentOfType<FunctionOpInterface>();
    if (!func)
      return failure();
    bool changed = false;
    for (Value result : op->getResults()) {
      auto type = dyn_cast<RankedTensorType>(result.getType());
      if (!type || result.use_empty() || !llvm::is_contained(type.getShape(), 0))
        continue;
      SizeAnalysis analysis(func);
      Exprs sizes(analysis.getSizes(result));
      if (!type.hasStaticShape() && hasUnknownSize(sizes))
        continue;
      Type element = type.getElementType();
      auto scalar = RankedTensorType::get({}, element);
      Value empty;
      if (type.hasStaticShape()) {
        empty = ConstantOp::create(rewriter, op->getLoc(), type, DenseElementsAttr::get(type, ArrayRef<Attribute>()));
      } else {
        auto zero = DenseElementsAttr::get(scalar, rewriter.getZeroAttr(element));
        Value constant = ConstantOp::create(rewriter, op->getLoc(), scalar, zero);
        empty = BroadcastOp::create(rewriter, op->getLoc(), type, constant, ArrayRef<int64_t>{},
                                    getExprs(rewriter.getContext(), sizes));
      }
      rewriter.replaceAllUsesWith(result, empty);
      changed = true;
    }
    return success(changed);
  }
};

} // namespace

void PrimDialect::getCanonicalizationPatterns(RewritePatternSet &patterns) const {
  patterns.add<DropEmpty>(getContext());
}
