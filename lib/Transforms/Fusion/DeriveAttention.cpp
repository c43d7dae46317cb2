// lamina-derive-attention: a softmax that is multiplied by a matrix becomes sums that one pass over its rows can make.
#include "dialects/Prim/Prim.h"
#include "dialects/Prim/PrimSizes.h"
#include "lib/Transforms/Fusion/Online.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Pass/Pass.h"

namespace lamina {
#define GEN_PASS_DECL_DERIVEATTENTION
#define GEN_PASS_DEF_DERIVEATTENTION
#include "lib/Transforms/Fusion/Passes.h.inc"
} // namespace lamina

using namespace mlir;
using namespace lamina;
using namespace lamina::prim;

namespace {

/// softmax(x) along a dimension of x: exp(x - shift) / denominator.
struct Softmax {
  Value x;
  int64_t along;
  /// What rows whose maximum is -inf are divided by instead of their sum.
  std::optional<APFloat> maskedDenominator;
};

ArrayRef<int64_t> getShape(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

/// Whether a transpose moves no dimension but those of size 1.
bool keepsOrder(TransposeOp op) {
  SmallVector<int64_t> moved;
  for (int64_t dim : op.getPermutation())
    if (getShape(op.getOperand())[dim] != 1)
      moved.push_back(dim);
  return llvm::is_sorted(moved);
}

/// The value of which `value` is another shape, its elements in the same order.
Value skipShapes(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    auto transpose = dyn_cast<TransposeOp>(op);
    if (!isa<ReshapeOp>(op) && !(transpose && keepsOrder(transpose)))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// The same, through conversions between floats too.
Value skipConversions(Value value) {
  for (;;) {
    value = skipShapes(value);
    auto convert = value.getDefiningOp<ConvertOp>();
    if (!convert || !isa<FloatType>(getElementTypeOrSelf(convert.getOperand().getType())))
      return value;
    value = convert.getOperand();
  }
}

/// The dimension of `shape` that is dimension `dim` of `other`, if elements are in the same order.
std::optional<int64_t> findDim(ArrayRef<int64_t> shape, ArrayRef<int64_t> other, int64_t dim) {
  if (shape == other)
    return dim;
  if (ShapedType::isDynamicShape(shape) || ShapedType::isDynamicShape(other))
    return std::nullopt;
  auto count = [](ArrayRef<int64_t> sizes) {
    int64_t product = 1;
    for (int64_t size : sizes)
      product *= size;
    return product;
  };
  for (int64_t at = 0; at < static_cast<int64_t>(shape.size()); ++at)
    if (shape[at] == other[dim] && count(shape.take_front(at)) == count(other.take_front(dim)) &&
        count(shape.drop_front(at + 1)) == count(other.drop_front(dim + 1)))
      return at;
  return std::nullopt;
}

/// What is repeated along dimension `dim`, and along no other.
Value getRepeated(Value value, int64_t dim) {
  auto broadcast = value.getDefiningOp<BroadcastOp>();
  if (!broadcast)
    return {};
  ArrayRef<int64_t> shape = broadcast.getType().getShape();
  for (int64_t i = 0; i < static_cast<int64_t>(shape.size()); ++i)
    if (i == dim ? llvm::is_contained(broadcast.getDims(), i)
                 : shape[i] != 1 && !llvm::is_contained(broadcast.getDims(), i))
      return {};
  for (auto [size, at] : llvm::zip_equal(getShape(broadcast.getOperand()), broadcast.getDims()))
    if (size != shape[at])
      return {};
  return skipShapes(broadcast.getOperand());
}

/// Whether `value` is a reduction of `operand` along its dimension `along`.
bool isReduction(Value value, Combiner combiner, Value operand, int64_t along) {
  auto reduce = skipShapes(value).getDefiningOp<ReduceOp>();
  return reduce && reduce.getCombiner() == combiner && reduce.getDims().size() == 1 &&
         skipShapes(reduce.getOperand()) == skipShapes(operand) &&
         findDim(getShape(operand), getShape(reduce.getOperand()), reduce.getDims()[0]) == along;
}

std::optional<APFloat> getSplat(Value value) {
  DenseElementsAttr elements;
  Value source = skipShapes(value);
  if (auto broadcast = source.getDefiningOp<BroadcastOp>())
    source = broadcast.getOperand();
  if (matchPattern(source, m_Constant(&elements)) && elements.isSplat() && isa<FloatType>(elements.getElementType()))
    return elements.getSplatValue<APFloat>();
  return std::nullopt;
}

/// The two choices, where `value` is one of them for rows whose maximum is -inf and the other for all others.
std::optional<std::pair<Value, Value>> matchGuard(Value value, Value x, int64_t along) {
  auto select = value.getDefiningOp<SelectOp>();
  auto compare = select ? skipShapes(select->getOperand(0)).getDefiningOp<CompareOp>() : CompareOp();
  if (!compare || compare.getComparison() != Comparison::eq)
    return std::nullopt;
  std::optional<APFloat> bound = getSplat(compare.getRhs());
  if (!bound || !bound->isInfinity() || !bound->isNegative() || !isReduction(compare.getLhs(), Combiner::max, x, along))
    return std::nullopt;
  return std::make_pair(select->getOperand(1), select->getOperand(2));
}

/// Matches `value` as a softmax in f32.
std::optional<Softmax> matchSoftmax(Value value, ArrayRef<int64_t> shape, int64_t dim) {
  auto div = skipConversions(value).getDefiningOp<DivOp>();
  auto exp = div ? div.getLhs().getDefiningOp<ExpOp>() : ExpOp();
  auto sub = exp ? exp.getOperand().getDefiningOp<SubOp>() : SubOp();
  if (!sub || !getElementTypeOrSelf(sub.getType()).isF32())
    return std::nullopt;
  std::optional<int64_t> along = findDim(getShape(div), shape, dim);
  if (!along)
    return std::nullopt;
  Softmax found{sub.getLhs(), *along, std::nullopt};
  Value shift = getRepeated(sub.getRhs(), *along), denominator = getRepeated(div.getRhs(), *along);
  if (!shift || !denominator)
    return std::nullopt;
  if (auto guard = matchGuard(shift, found.x, *along)) {
    std::optional<APFloat> zero = getSplat(guard->first);
    if (!zero || !zero->isZero())
      return std::nullopt;
    shift = guard->second;
  }
  if (auto guard = matchGuard(denominator, found.x, *along)) {
    found.maskedDenominator = getSplat(guard->first);
    if (!found.maskedDenominator)
      return std::nullopt;
    denominator = guard->second;
  }
  if (!isReduction(shift, Combiner::max, found.x, *along) || !isReduction(denominator, Combiner::sum, exp, *along))
    return std::nullopt;
  return found;
}

struct DeriveAttention : lamina::impl::DeriveAttentionBase<DeriveAttention> {
  using DeriveAttentionBase::DeriveAttentionBase;

  void runOnOperation() override {
    SizeAnalysis sizes(getOperation());
    SmallVector<DotGeneralOp> dots;
    getOperation()->walk([&](DotGeneralOp op) { dots.push_back(op); });
    for (DotGeneralOp dot : dots)
      if (rewrite(dot, sizes))
        ++numDerived;
  }

  /// Whether the weights, in none of their forms, are read by anything but the product: they are made anyway then.
  static bool isReadOnce(Value weights) {
    for (Value value = weights;; value = value.getDefiningOp()->getOperand(0)) {
      if (!value.hasOneUse())
        return false;
      if (isa<DivOp>(value.getDefiningOp()))
        return true;
    }
  }

  /// softmax(x) v = (e v) / sum(e), e = exp(x - max(x)): the division comes last, and both sums run over the same rows.
  bool rewrite(DotGeneralOp dot, SizeAnalysis &sizes) {
    if (dot.getLhsContract().size() != 1 || !getElementTypeOrSelf(dot.getType()).isF32())
      return false;
    Value weights = dot.getLhs();
    int64_t contracted = dot.getLhsContract()[0], rank = getShape(weights).size();
    std::optional<Softmax> softmax = matchSoftmax(weights, getShape(weights), contracted);
    if (!softmax || !isReadOnce(weights))
      return false;
    // Where each dimension of a row's values lies in the result.
    SmallVector<int64_t> places;
    int64_t free = dot.getLhsBatch().size();
    for (int64_t i = 0; i < rank; ++i) {
      if (i == contracted)
        continue;
      auto batch = llvm::find(dot.getLhsBatch(), i);
      places.push_back(batch == dot.getLhsBatch().end() ? free++ : batch - dot.getLhsBatch().begin());
    }
    if (!llvm::is_sorted(places))
      return false;

    Value x = softmax->x;
    OpBuilder b(dot);
    Location loc = dot.getLoc();
    auto splat = [&](Value like, const APFloat &number) {
      auto scalar = RankedTensorType::get({}, b.getF32Type());
      Value value = ConstantOp::create(b, loc, scalar, DenseElementsAttr::get(scalar, number));
      return repeat(b, value, like, {}, sizes);
    };
    auto reduce = [&](Value value, Combiner combiner) {
      auto op = ReduceOp::create(b, loc, value, CombinerAttr::get(b.getContext(), combiner),
                                 b.getDenseI64ArrayAttr({softmax->along}));
      markOnline(op);
      return op.getResult();
    };
    // A row that is masked as a whole has the maximum -inf; shifted by 0 instead, its terms are 0 and not NaN.
    const llvm::fltSemantics &single = APFloat::IEEEsingle();
    Value max = reduce(x, Combiner::max);
    Value infinite = splat(max, APFloat::getInf(single, /*Negative=*/true));
    Value masked = CompareOp::create(b, loc, cast<RankedTensorType>(max.getType()).clone(b.getI1Type()), Comparison::eq,
                                     max, infinite);
    Value shift = SelectOp::create(b, loc, max.getType(), masked, splat(max, APFloat::getZero(single)), max);
    SmallVector<int64_t> rowDims;
    for (int64_t i = 0; i < static_cast<int64_t>(getShape(x).size()); ++i)
      if (i != softmax->along)
        rowDims.push_back(i);
    Value e = SubOp::create(b, loc, x, repeat(b, shift, x, rowDims, sizes));
    e = ExpOp::create(b, loc, e);
    Value denominator = reduce(e, Combiner::sum);
    if (softmax->maskedDenominator)
      denominator = SelectOp::create(b, loc, denominator.getType(), masked,
                                     splat(denominator, *softmax->maskedDenominator), denominator);

    // On to the shape of the product's operand.
    Type element = getElementTypeOrSelf(weights.getType());
    if (!element.isF32())
      e = ConvertOp::create(b, loc, cast<RankedTensorType>(e.getType()).clone(element), e);
    if (e.getType() != weights.getType()) {
      e = ReshapeOp::create(b, loc, weights.getType(), e, AffineMapAttr());
      SmallVector<int64_t> rows(getShape(weights));
      rows.erase(rows.begin() + contracted);
      denominator =
          ReshapeOp::create(b, loc, RankedTensorType::get(rows, b.getF32Type()), denominator, AffineMapAttr());
    }
    auto product = cast<DotGeneralOp>(b.clone(*dot));
    product->setOperand(0, e);
    markOnline(product);
    Value result = DivOp::create(b, loc, product.getResult(), repeat(b, denominator, dot, places, sizes));
    dot.replaceAllUsesWith(result);
    markScores(x);
    return true;
  }

  /// Marks the product that `x` is made of, so that it may share the kernel.
  static void markScores(Value x) {
    SmallVector<Value> pending{x};
    llvm::SmallPtrSet<Operation *, 16> seen;
    while (!pending.empty()) {
      Operation *op = pending.pop_back_val().getDefiningOp();
      if (!op || !seen.insert(op).second)
        continue;
      if (isa<DotGeneralOp>(op))
        op->setAttr(kScoresAttr, UnitAttr::get(op->getContext()));
      else if (op->hasTrait<OpTrait::Elementwise>() || isa<BroadcastOp, TransposeOp, ReshapeOp>(op))
        llvm::append_range(pending, op->getOperands());
    }
  }

  /// `value` repeated to the shape of `like`.
  static Value repeat(OpBuilder &b, Value value, Value like, ArrayRef<int64_t> dims, SizeAnalysis &sizes) {
    auto shape = cast<RankedTensorType>(like.getType()).clone(getElementTypeOrSelf(value.getType()));
    if (value.getType() == shape)
      return value;
    AffineMapAttr attr = shape.hasStaticShape() ? AffineMapAttr() : getExprs(b.getContext(), sizes.getSizes(like));
    return BroadcastOp::create(b, value.getLoc(), shape, value, dims, attr);
  }
};

} // namespace
