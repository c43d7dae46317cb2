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

/// softmax(x) along a dimension: exp(x - shift) / denominator.
struct Softmax {
  Value x;
  ReduceOp max, sum;
  Value denominator; // of each row: `sum` itself, or a choice between it and another value
};

Value skipConversions(Value value) {
  while (auto convert = value.getDefiningOp<ConvertOp>()) {
    if (!isa<FloatType>(getElementTypeOrSelf(convert.getOperand().getType())))
      break;
    value = convert.getOperand();
  }
  return value;
}

/// What is repeated along dimension `dim`, and along no other.
Value getRepeated(Value value, int64_t dim) {
  auto broadcast = value.getDefiningOp<BroadcastOp>();
  if (!broadcast)
    return {};
  int64_t rank = broadcast.getType().getRank();
  SmallVector<int64_t> others;
  for (int64_t i = 0; i < rank; ++i)
    if (i != dim)
      others.push_back(i);
  return broadcast.getDims() == ArrayRef<int64_t>(others) ? broadcast.getOperand() : Value();
}

ReduceOp getReduction(Value value, Combiner combiner, int64_t dim) {
  auto reduce = value.getDefiningOp<ReduceOp>();
  return reduce && reduce.getCombiner() == combiner && reduce.getDims() == ArrayRef<int64_t>{dim} ? reduce : ReduceOp();
}

/// The reduction that `value` is, or that it is one of two choices by row.
ReduceOp findReduction(Value value, Combiner combiner, int64_t dim) {
  if (ReduceOp reduce = getReduction(value, combiner, dim))
    return reduce;
  if (auto select = value.getDefiningOp<SelectOp>())
    for (Value choice : select.getOperands().drop_front())
      if (ReduceOp reduce = getReduction(choice, combiner, dim))
        return reduce;
  return {};
}

/// Matches `value` as a softmax along `dim` in f32.
std::optional<Softmax> matchSoftmax(Value value, int64_t dim) {
  auto div = skipConversions(value).getDefiningOp<DivOp>();
  if (!div || !getElementTypeOrSelf(div.getType()).isF32())
    return std::nullopt;
  auto exp = div.getLhs().getDefiningOp<ExpOp>();
  Value denominator = getRepeated(div.getRhs(), dim);
  if (!exp || !denominator)
    return std::nullopt;
  auto sub = exp.getOperand().getDefiningOp<SubOp>();
  Value shift = sub ? getRepeated(sub.getRhs(), dim) : Value();
  if (!shift)
    return std::nullopt;
  Softmax found;
  found.x = sub.getLhs();
  found.max = findReduction(shift, Combiner::max, dim);
  found.sum = findReduction(denominator, Combiner::sum, dim);
  found.denominator = denominator;
  if (!found.max || !found.sum || found.max.getOperand() != found.x || found.sum.getOperand() != exp.getResult())
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

  /// softmax(x) v = (e v) / sum(e), e = exp(x - max(x)): the division comes last, and both sums run over the same rows.
  bool rewrite(DotGeneralOp dot, SizeAnalysis &sizes) {
    if (dot.getLhsContract().size() != 1)
      return false;
    std::optional<Softmax> softmax = matchSoftmax(dot.getLhs(), dot.getLhsContract()[0]);
    if (!softmax || !getElementTypeOrSelf(dot.getType()).isF32())
      return false;
    int64_t along = dot.getLhsContract()[0];
    Value weights = dot.getLhs();
    // Where each dimension of a row's values lies in the result.
    SmallVector<int64_t> places;
    int64_t free = dot.getLhsBatch().size();
    for (int64_t i = 0; i < cast<RankedTensorType>(weights.getType()).getRank(); ++i) {
      if (i == along)
        continue;
      auto batch = llvm::find(dot.getLhsBatch(), i);
      places.push_back(batch == dot.getLhsBatch().end() ? free++ : batch - dot.getLhsBatch().begin());
    }
    if (!llvm::is_sorted(places))
      return false;

    OpBuilder b(dot);
    Location loc = dot.getLoc();
    auto splat = [&](Value like, float number) -> Value {
      auto scalar = RankedTensorType::get({}, b.getF32Type());
      Value value = ConstantOp::create(b, loc, scalar, DenseElementsAttr::get(scalar, number));
      return repeat(b, value, like, {}, sizes);
    };
    // A row that is masked as a whole has the maximum -inf; shifted by 0 instead, its terms are 0 and not NaN.
    Value max = softmax->max.getResult();
    Value infinite = splat(max, -std::numeric_limits<float>::infinity());
    Value masked = CompareOp::create(b, loc, cast<RankedTensorType>(max.getType()).clone(b.getI1Type()),
                                     Comparison::eq, max, infinite);
    Value shift = SelectOp::create(b, loc, max.getType(), masked, splat(max, 0.0f), max);
    SmallVector<int64_t> rowDims;
    for (int64_t i = 0; i < cast<RankedTensorType>(weights.getType()).getRank(); ++i)
      if (i != along)
        rowDims.push_back(i);
    Value e = SubOp::create(b, loc, softmax->x, repeat(b, shift, softmax->x, rowDims, sizes));
    e = ExpOp::create(b, loc, e);

    auto sum = cast<ReduceOp>(b.clone(*softmax->sum));
    sum->setOperand(0, e);
    Value denominator = sum.getResult();
    if (softmax->denominator != softmax->sum.getResult()) {
      IRMapping mapping;
      mapping.map(softmax->sum.getResult(), denominator);
      denominator = b.clone(*softmax->denominator.getDefiningOp(), mapping)->getResult(0);
    }
    Type element = getElementTypeOrSelf(weights.getType());
    if (!element.isF32())
      e = ConvertOp::create(b, loc, cast<RankedTensorType>(e.getType()).clone(element), e);
    auto product = cast<DotGeneralOp>(b.clone(*dot));
    product->setOperand(0, e);
    Value result = DivOp::create(b, loc, product.getResult(), repeat(b, denominator, dot, places, sizes));
    markOnline(softmax->max);
    markOnline(sum);
    markOnline(product);
    dot.replaceAllUsesWith(result);
    return true;
  }

  /// `value` repeated to the shape of `like`.
  static Value repeat(OpBuilder &b, Value value, Value like, ArrayRef<int64_t> dims, SizeAnalysis &sizes) {
    auto shape = cast<RankedTensorType>(like.getType()).clone(getElementTypeOrSelf(value.getType()));
    if (value.getType() == shape)
      return value;
    AffineMapAttr attr =
        shape.hasStaticShape() ? AffineMapAttr() : getExprs(b.getContext(), sizes.getSizes(like));
    return BroadcastOp::create(b, value.getLoc(), shape, value, dims, attr);
  }
};

} // namespace
