// lamina-split-reductions: reduces in two steps where one step would have too few programs.
#include "dialects/Prim/Prim.h"
#include "dialects/Prim/PrimSizes.h"
#include "lib/Support/PassOptions.h"
#include "lib/Transforms/Fusion/Online.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Pass/Pass.h"

namespace lamina {
#define GEN_PASS_DECL_SPLITREDUCTIONS
#define GEN_PASS_DEF_SPLITREDUCTIONS
#include "lib/Transforms/Fusion/Passes.h.inc"
} // namespace lamina

using namespace mlir;
using namespace lamina;
using namespace lamina::prim;

/// The first step leaves at most this many elements of a split dimension for the second.
static constexpr int64_t kMaxParts = 512;

/// A product's part is at least this long.
static constexpr int64_t kLeastDepth = 128;

/// The largest divisor of `size` up to kMaxParts.
static int64_t chooseParts(int64_t size) {
  for (int64_t parts = kMaxParts; parts > 1; --parts)
    if (size % parts == 0)
      return parts;
  return 1;
}

namespace {

struct SplitReductions : lamina::impl::SplitReductionsBase<SplitReductions> {
  using SplitReductionsBase::SplitReductionsBase;

  LogicalResult initialize(MLIRContext *context) override {
    return OptionCheck(*this, context)
        .atLeast(minParallelism, 1)
        .atLeast(launchElements, 0)
        .atLeast(productTile, 0)
        .atLeast(sizeHint, 1);
  }

  void runOnOperation() override {
    SizeAnalysis sizes(getOperation());
    SmallVector<ReduceOp> reductions;
    getOperation()->walk([&](ReduceOp op) { reductions.push_back(op); });
    for (ReduceOp op : reductions)
      split(op, sizes);
    if (productTile == 0)
      return;
    SmallVector<DotGeneralOp> products;
    getOperation()->walk([&](DotGeneralOp op) { products.push_back(op); });
    for (DotGeneralOp op : products)
      splitProduct(op, sizes);
  }

  int64_t estimate(RankedTensorType type, int64_t dim) {
    return type.isDynamicDim(dim) ? sizeHint : type.getDimSize(dim);
  }

  /// A product of few rows and columns and a long contracted dimension: parts of that are a batch of products, which
  /// are added up.
  void splitProduct(DotGeneralOp op, SizeAnalysis &sizes) {
    RankedTensorType result = op.getType(), lhs = op.getLhs().getType();
    if (!result.getElementType().isF32() || isOnline(op) || isScores(op))
      return;
    // The programs there are: tiles of what is free of each side, for each batch entry.
    int64_t programs = 1, batch = op.getLhsBatch().size();
    int64_t lhsFree = lhs.getRank() - batch - op.getLhsContract().size();
    int64_t rows = 1, columns = 1;
    for (int64_t dim = 0; dim < result.getRank(); ++dim)
      (dim < batch ? programs : dim < batch + lhsFree ? rows : columns) *= std::max<int64_t>(1, estimate(result, dim));
    programs *= llvm::divideCeil(rows, productTile) * llvm::divideCeil(columns, productTile);
    const auto *longest = llvm::max_element(op.getLhsContract(),
                                            [&](int64_t a, int64_t b) { return estimate(lhs, a) < estimate(lhs, b); });
    if (longest == op.getLhsContract().end() || lhs.isDynamicDim(*longest))
      return;
    // As many parts as there are programs for them, if they are long enough and save more than a launch.
    int64_t size = lhs.getDimSize(*longest), most = minParallelism / 2 / programs, parts = 1;
    for (int64_t count = 2; count <= most && size / count >= kLeastDepth; ++count)
      if (size % count == 0)
        parts = count;
    int64_t walked = 2 * productTile * size;
    if (parts == 1 || walked - walked / parts <= launchElements + 2 * parts * productTile * productTile)
      return;

    OpBuilder builder(op);
    MLIRContext *context = op.getContext();
    auto split = [&](Value operand, int64_t dim) -> Value {
      Exprs shape(sizes.getSizes(operand));
      shape[dim] = getAffineConstantExpr(size / parts, context);
      shape.insert(shape.begin() + dim, getAffineConstantExpr(parts, context));
      RankedTensorType type = getTensorType(shape, getElementTypeOrSelf(operand));
      return ReshapeOp::create(builder, op.getLoc(), type, operand,
                               type.hasStaticShape() ? AffineMapAttr() : getExprs(context, shape));
    };
    /// Dimension numbers after dimension `at` was split.
    auto shifted = [](ArrayRef<int64_t> dims, int64_t at) {
      return llvm::map_to_vector(dims, [&](int64_t dim) -> int64_t { return dim >= at ? dim + 1 : dim; });
    };
    int64_t left = *longest, right = op.getRhsContract()[longest - op.getLhsContract().begin()];
    SmallVector<int64_t> lhsBatch = shifted(op.getLhsBatch(), left), rhsBatch = shifted(op.getRhsBatch(), right);
    lhsBatch.insert(lhsBatch.begin(), left);
    rhsBatch.insert(rhsBatch.begin(), right);
    Exprs shape(sizes.getSizes(op.getResult()));
    shape.insert(shape.begin(), getAffineConstantExpr(parts, context));
    Value product =
        DotGeneralOp::create(builder, op.getLoc(), getTensorType(shape, result.getElementType()),
                             split(op.getLhs(), left), split(op.getRhs(), right), lhsBatch, rhsBatch,
                             shifted(op.getLhsContract(), left), shifted(op.getRhsContract(), right), op.getTf32());
    Value sum = ReduceOp::create(builder, op.getLoc(), product, CombinerAttr::get(context, Combiner::sum),
                                 builder.getDenseI64ArrayAttr({0}));
    op.getResult().replaceAllUsesWith(sum);
    op->erase();
    ++numSplit;
  }

  void split(ReduceOp op, SizeAnalysis &sizes) {
    auto type = cast<RankedTensorType>(op.getOperand().getType());
    int64_t kept = 1, all = 1;
    for (int64_t i = 0; i < type.getRank(); ++i) {
      int64_t size = type.isDynamicDim(i) ? sizeHint : type.getDimSize(i);
      all *= size;
      if (!llvm::is_contained(op.getDims(), i))
        kept *= size;
    }
    // As in the grouping: what the programs there are walk one after the other, against all of them and another launch.
    int64_t programs = std::max<int64_t>(kept, 1);
    if (programs >= minParallelism || all / programs <= all / minParallelism + launchElements)
      return;
    OpBuilder builder(op);
    Value operand = op.getOperand();
    Exprs shape(sizes.getSizes(operand));
    SmallVector<int64_t> dims(op.getDims());
    llvm::sort(dims);
    llvm::erase_if(dims, [&](int64_t dim) { return type.getDimSize(dim) == 1; });
    if (dims.empty())
      return;
    int64_t outer = dims.front(), size = type.getDimSize(outer);
    // One dimension alone, or one with far more elements than the second step should see, is split in two.
    if (dims.size() == 1 || (ShapedType::isStatic(size) && size > kMaxParts)) {
      if (ShapedType::isDynamic(size))
        return;
      int64_t parts = chooseParts(size);
      if (parts < minParallelism) {
        if (dims.size() == 1)
          return;
      } else {
        MLIRContext *context = op.getContext();
        shape[outer] = getAffineConstantExpr(size / parts, context);
        shape.insert(shape.begin() + outer, getAffineConstantExpr(parts, context));
        RankedTensorType reshaped = getTensorType(shape, type.getElementType());
        operand = ReshapeOp::create(builder, op.getLoc(), reshaped, operand,
                                    reshaped.hasStaticShape() ? AffineMapAttr() : getExprs(context, shape));
        for (int64_t &dim : dims)
          ++dim;
        dims.insert(dims.begin(), outer);
      }
    }
    // Narrow floats round once, at the end.
    Type element = type.getElementType();
    bool narrow = isa<Float16Type, BFloat16Type>(element);
    auto withElement = [](Value value, Type newElement) {
      return cast<RankedTensorType>(value.getType()).clone(newElement);
    };
    if (narrow)
      operand = ConvertOp::create(builder, op.getLoc(), withElement(operand, builder.getF32Type()), operand);
    auto inner = ReduceOp::create(builder, op.getLoc(), operand, op.getCombinerAttr(),
                                  builder.getDenseI64ArrayAttr(ArrayRef<int64_t>(dims).drop_front()));
    // The kept dimensions before `outer` are all of lower number.
    Value result = ReduceOp::create(builder, op.getLoc(), inner.getResult(), op.getCombinerAttr(),
                                    builder.getDenseI64ArrayAttr({outer}));
    if (narrow)
      result = ConvertOp::create(builder, op.getLoc(), withElement(result, element), result);
    op.getResult().replaceAllUsesWith(result);
    op->erase();
    ++numSplit;
  }
};

} // namespace
