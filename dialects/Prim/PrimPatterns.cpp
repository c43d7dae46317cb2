// Canonicalization patterns of the whole prim dialect.
#include "dialects/Prim/Combiners.h"
#include "dialects/Prim/PrimSizes.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace lamina;
using namespace lamina::prim;

static bool isEmpty(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && llvm::is_contained(type.getShape(), 0);
}

/// The number that a result of an op is made of where an operand has no elements, if that is so.
static TypedAttr getNumberOfNothing(Operation *op) {
  if (auto reduce = dyn_cast<ReduceOp>(op); reduce && isEmpty(reduce.getOperand()))
    return getIdentity(reduce.getCombiner(), reduce.getType().getElementType());
  if (auto window = dyn_cast<ReduceWindowOp>(op); window && isEmpty(window.getOperand()))
    return getIdentity(window.getCombiner(), window.getType().getElementType());
  if (isa<DotGeneralOp, ConvolutionOp>(op) && llvm::any_of(op->getOperands(), isEmpty)) {
    Type element = getElementTypeOrSelf(op->getResult(0));
    return cast<TypedAttr>(Builder(op).getZeroAttr(element));
  }
  return {};
}

namespace {

/// A value without elements is equal to any other of its type, so nothing needs to be computed for it; and what is
/// combined of no elements is one number.
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
      if (!type || result.use_empty())
        continue;
      TypedAttr number =
          isEmpty(result) ? TypedAttr(rewriter.getZeroAttr(type.getElementType())) : getNumberOfNothing(op);
      if (!number)
        continue;
      SizeAnalysis analysis(func);
      Exprs sizes(analysis.getSizes(result));
      if (!type.hasStaticShape() && hasUnknownSize(sizes))
        continue;
      auto scalar = RankedTensorType::get({}, type.getElementType());
      Value made;
      if (type.hasStaticShape()) {
        auto value = isEmpty(result) ? DenseElementsAttr::get(type, ArrayRef<Attribute>())
                                     : DenseElementsAttr::get(type, Attribute(number));
        made = ConstantOp::create(rewriter, op->getLoc(), type, value);
      } else {
        Value constant =
            ConstantOp::create(rewriter, op->getLoc(), scalar, DenseElementsAttr::get(scalar, Attribute(number)));
        made = BroadcastOp::create(rewriter, op->getLoc(), type, constant, ArrayRef<int64_t>{},
                                   getExprs(rewriter.getContext(), sizes));
      }
      rewriter.replaceAllUsesWith(result, made);
      changed = true;
    }
    return success(changed);
  }
};

} // namespace

void PrimDialect::getCanonicalizationPatterns(RewritePatternSet &patterns) const {
  patterns.add<DropEmpty>(getContext());
}
