// Linear forms of index expressions.
#include "lib/Conversion/PrimToLinalg/Access.h"
#include "llvm/Support/Casting.h"

using namespace mlir;
using namespace lamina;

static std::optional<LinearIndex> match(AffineExpr expr) {
  MLIRContext *context = expr.getContext();
  if (expr.isSymbolicOrConstant())
    return LinearIndex{std::nullopt, 0, expr};
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return LinearIndex{dim.getPosition(), 1, getAffineConstantExpr(0, context)};
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary || (expr.getKind() != AffineExprKind::Add && expr.getKind() != AffineExprKind::Mul))
    return std::nullopt;
  auto lhs = match(binary.getLHS()), rhs = match(binary.getRHS());
  if (!lhs || !rhs || (lhs->dim && rhs->dim))
    return std::nullopt;
  if (expr.getKind() == AffineExprKind::Add)
    return LinearIndex{lhs->dim ? lhs->dim : rhs->dim, lhs->stride + rhs->stride, lhs->offset + rhs->offset};
  if (rhs->dim)
    std::swap(lhs, rhs);
  auto factor = dyn_cast<AffineConstantExpr>(rhs->offset);
  if (!factor)
    return std::nullopt;
  return LinearIndex{lhs->dim, lhs->stride * factor.getValue(), lhs->offset * factor};
}

std::optional<LinearIndex> lamina::matchLinearIndex(AffineExpr expr) {
  auto linear = match(expr);
  if (linear && linear->dim && linear->stride <= 0)
    return std::nullopt;
  return linear;
}
