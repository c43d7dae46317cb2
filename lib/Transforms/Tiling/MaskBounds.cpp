// Which part of a reduced dimension a mask made of indices leaves.
#include "lib/Transforms/Tiling/MaskBounds.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace lamina;

namespace {

class Finder {
public:
  explicit Finder(linalg::LinalgOp op) : op(op), context(op.getContext()) {}

  /// `value` is a term: masked where a select gives -inf.
  void addTerm(Value value) {
    // No conversion between floats changes an infinity.
    while (isa_and_nonnull<arith::ExtFOp, arith::TruncFOp>(value.getDefiningOp()))
      value = value.getDefiningOp()->getOperand(0);
    auto select = value.getDefiningOp<arith::SelectOp>();
    if (!select)
      return;
    bool maskedTrue = matchPattern(select.getTrueValue(), m_NegInfFloat());
    bool maskedFalse = matchPattern(select.getFalseValue(), m_NegInfFloat());
    if (maskedTrue == maskedFalse)
      return;
    addNeeded(select.getCondition(), /*negated=*/maskedTrue);
    addTerm(maskedTrue ? select.getFalseValue() : select.getTrueValue());
  }

  SmallVector<IndexCondition> conditions;

private:
  /// `condition` (or its negation) holds wherever the term counts.
  void addNeeded(Value condition, bool negated) {
    Operation *def = condition.getDefiningOp();
    if (!def)
      return;
    if (auto both = dyn_cast<arith::AndIOp>(def); both && !negated) {
      addNeeded(both.getLhs(), false);
      addNeeded(both.getRhs(), false);
    } else if (auto either = dyn_cast<arith::OrIOp>(def); either && negated) {
      addNeeded(either.getLhs(), true);
      addNeeded(either.getRhs(), true);
    } else if (auto flip = dyn_cast<arith::XOrIOp>(def); flip && matchPattern(flip.getRhs(), m_One())) {
      addNeeded(flip.getLhs(), !negated);
    } else if (auto choice = dyn_cast<arith::SelectOp>(def)) {
      bool plain = matchPattern(choice.getTrueValue(), m_One()) && matchPattern(choice.getFalseValue(), m_Zero());
      bool inverse = matchPattern(choice.getTrueValue(), m_Zero()) && matchPattern(choice.getFalseValue(), m_One());
      if (plain || inverse)
        addNeeded(choice.getCondition(), negated != inverse);
    } else if (auto compare = dyn_cast<arith::CmpIOp>(def)) {
      addComparison(compare, negated);
    }
  }

  void addComparison(arith::CmpIOp compare, bool negated) {
    using Predicate = arith::CmpIPredicate;
    SmallVector<Value> symbols;
    AffineExpr lhs = toAffine(compare.getLhs(), symbols), rhs = toAffine(compare.getRhs(), symbols);
    if (!lhs || !rhs)
      return;
    Predicate predicate = compare.getPredicate();
    if (negated)
      predicate = arith::invertPredicate(predicate);
    switch (predicate) {
    case Predicate::sge:
      return conditions.push_back({lhs - rhs, symbols});
    case Predicate::sgt:
      return conditions.push_back({lhs - rhs - 1, symbols});
    case Predicate::sle:
      return conditions.push_back({rhs - lhs, symbols});
    case Predicate::slt:
      return conditions.push_back({rhs - lhs - 1, symbols});
    default:
      return;
    }
  }

  /// A linear expression over the loops. 64-bit sums of indices do not wrap.
  AffineExpr toAffine(Value value, SmallVector<Value> &symbols) {
    APInt constant;
    if (matchPattern(value, m_ConstantInt(&constant)))
      return getAffineConstantExpr(constant.getSExtValue(), context);
    Operation *def = value.getDefiningOp();
    if (value.getType().isIndex() && (!def || !op->isProperAncestor(def))) {
      symbols.push_back(value);
      return getAffineSymbolExpr(symbols.size() - 1, context);
    }
    if (!def || !op->isProperAncestor(def))
      return {};
    if (auto index = dyn_cast<linalg::IndexOp>(def))
      return getAffineDimExpr(index.getDim(), context);
    if (isa<arith::IndexCastOp>(def)) {
      Type narrow = value.getType().isIndex() ? def->getOperand(0).getType() : value.getType();
      return narrow.isInteger(64) ? toAffine(def->getOperand(0), symbols) : AffineExpr();
    }
    if (!isa<arith::AddIOp, arith::SubIOp>(def) || !(value.getType().isInteger(64) || value.getType().isIndex()))
      return {};
    AffineExpr lhs = toAffine(def->getOperand(0), symbols), rhs = toAffine(def->getOperand(1), symbols);
    if (!lhs || !rhs)
      return {};
    return isa<arith::AddIOp>(def) ? lhs + rhs : lhs - rhs;
  }

  linalg::LinalgOp op;
  MLIRContext *context;
};

} // namespace

SmallVector<IndexCondition> lamina::findMaskConditions(linalg::LinalgOp op, unsigned result) {
  Finder finder(op);
  auto combiner = op.getBlock()->getTerminator()->getOperand(result).getDefiningOp<arith::MaximumFOp>();
  Value total = op.getRegionOutputArgs()[result];
  if (combiner)
    finder.addTerm(combiner.getLhs() == total ? combiner.getRhs() : combiner.getLhs());
  return finder.conditions;
}
