// lamina-simplify-reshapes: reshapes and transposes cancel across elementwise ops and contractions.
#include "dialects/Prim/Prim.h"
#include "dialects/Prim/PrimSizes.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace lamina {
#define GEN_PASS_DEF_SIMPLIFYRESHAPES
#include "lib/Transforms/Simplify/Passes.h.inc"
} // namespace lamina

using namespace mlir;
using namespace lamina;
using namespace lamina::prim;

namespace {
// ---- shapes ----------------------------------------------------------------------------------------------------

/// A shape with its size expressions, from which types and `sizes` attributes are made.
struct Shape {
  SmallVector<int64_t> extents;
  Exprs sizes;

  bool hasExpressions() const {
    return llvm::all_of(llvm::zip(extents, sizes), [](auto dim) {
      return !ShapedType::isDynamic(std::get<0>(dim)) || !hasUnknownSize(std::get<1>(dim));
    });
  }
  RankedTensorType getType(Type elementType) const { return RankedTensorType::get(extents, elementType); }
  AffineMapAttr getSizesAttr(MLIRContext *context) const {
    return llvm::any_of(extents, ShapedType::isDynamic) ? getExprs(context, sizes) : AffineMapAttr();
  }
  void append(const Shape &other, unsigned dim) {
    extents.push_back(other.extents[dim]);
    sizes.push_back(other.sizes[dim]);
  }
};

/// For each coarse dimension the fine dimensions (a range) whose product it is.
using Groups = SmallVector<std::pair<unsigned, unsigned>>;

/// The groups, if every coarse dimension is a product of one or more neighbouring fine ones.
std::optional<Groups> getGroups(ArrayRef<AffineExpr> fine, ArrayRef<AffineExpr> coarse) {
  if (coarse.empty() || fine.size() < coarse.size())
    return std::nullopt;
  Groups groups;
  unsigned next = 0;
  for (AffineExpr size : coarse) {
    unsigned begin = next;
    do {
      if (next == fine.size())
        return std::nullopt;
      ++next;
    } while (getNumElements(fine.slice(begin, next - begin), size.getContext()) != simplifySize(size));
    groups.push_back({begin, next});
  }
  for (; next < fine.size(); ++next) {
    if (fine[next] != 1)
      return std::nullopt;
    groups.back().second = next + 1;
  }
  return groups;
}

bool isElementwise(Operation *op) {
  return op && isa_and_present<PrimDialect>(op->getDialect()) && op->hasTrait<OpTrait::Elementwise>();
}

/// What all patterns share.
struct Context {
  SizeAnalysis &sizes;
  Pass::Statistic &reshapes, &transposes;

  Shape getShape(Value value) {
    return {SmallVector<int64_t>(cast<RankedTensorType>(value.getType()).getShape()), Exprs(sizes.getSizes(value))};
  }
};

Value createReshape(OpBuilder &builder, Location loc, Value value, const Shape &shape) {
  return ReshapeOp::create(builder, loc, shape.getType(getElementTypeOrSelf(value)), value,
                           shape.getSizesAttr(builder.getContext()));
}

/// `op` on other operands, with results of another shape.
Operation *recreate(OpBuilder &builder, Operation *op, ValueRange operands, ArrayRef<int64_t> extents) {
  Type type = RankedTensorType::get(extents, getElementTypeOrSelf(op->getResult(0)));
  OperationState state(op->getLoc(), op->getName(), operands, type, op->getAttrs());
  return builder.create(state);
}

/// Whether every element of the value is the same by its definition, so that it can be made in any shape.
bool isSplat(Value value) {
  auto constant = value.getDefiningOp<ConstantOp>();
  auto dense = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
  return dense && dense.isSplat();
}

Value createSplat(OpBuilder &builder, Value splat, const Shape &shape) {
  auto constant = splat.getDefiningOp<ConstantOp>();
  auto dense = cast<DenseElementsAttr>(constant.getValue());
  RankedTensorType type = shape.getType(dense.getElementType());
  if (type.hasStaticShape())
    return ConstantOp::create(builder, constant.getLoc(), type, dense.resizeSplat(type));
  auto scalar = RankedTensorType::get({}, dense.getElementType());
  Value value = ConstantOp::create(builder, constant.getLoc(), scalar, dense.resizeSplat(scalar));
  return BroadcastOp::create(builder, constant.getLoc(), type, value, ArrayRef<int64_t>{},
                             shape.getSizesAttr(builder.getContext()));
}

/// The value in a shape that splits its dimensions: for a splat, a broadcast or a merged value without a reshape of it.
Value expand(OpBuilder &builder, Context &context, Value value, const Shape &fine, const Groups &groups) {
  if (isSplat(value))
    return createSplat(builder, value, fine);
  if (auto reshape = value.getDefiningOp<ReshapeOp>())
    if (context.sizes.getSizes(reshape.getOperand()) == ArrayRef<AffineExpr>(fine.sizes) &&
        reshape.getOperand().getType().getShape() == ArrayRef<int64_t>(fine.extents))
      return reshape.getOperand();
  if (auto broadcast = value.getDefiningOp<BroadcastOp>()) {
    // The operand's dimensions split as those that they become; one of size 1 is new in the result.
    Shape operand;
    SmallVector<int64_t> dims;
    for (int64_t dim : broadcast.getDims()) {
      auto [begin, end] = groups[dim];
      size_t before = dims.size();
      for (unsigned i = begin; i < end; ++i) {
        if (fine.extents[i] == 1 && (i + 1 < end || dims.size() > before))
          continue;
        operand.append(fine, i);
        dims.push_back(i);
      }
    }
    Value source = broadcast.getOperand();
    if (operand.extents.size() != static_cast<size_t>(broadcast.getOperand().getType().getRank()))
      source = createReshape(builder, value.getLoc(), source, operand);
    return BroadcastOp::create(builder, value.getLoc(), fine.getType(getElementTypeOrSelf(value)), source, dims,
                               fine.getSizesAttr(builder.getContext()));
  }
  return createReshape(builder, value.getLoc(), value, fine);
}

/// Whether `expand` can do without a reshape that stays: all but values merged from other shapes.
bool canExpand(Context &context, Value value, ArrayRef<AffineExpr> fine) {
  auto reshape = value.getDefiningOp<ReshapeOp>();
  return !reshape || context.sizes.getSizes(reshape.getOperand()) == fine;
}

template <typename OpType> struct Pattern : OpRewritePattern<OpType> {
  Pattern(MLIRContext *mlirContext, Context &context) : OpRewritePattern<OpType>(mlirContext), context(context) {}
  Context &context;
};

// ---- reshapes --------------------------------------------------------------------------------------------------

/// A reshape to the sizes that its operand has is the operand.
struct DropIdentityReshape : Pattern<ReshapeOp> {
  using Pattern::Pattern;
  LogicalResult matchAndRewrite(ReshapeOp op, PatternRewriter &rewriter) const override {
    if (op.getOperand().getType() != op.getType() ||
        context.sizes.getSizes(op.getOperand()) != context.sizes.getSizes(op.getResult()))
      return failure();
    rewriter.replaceOp(op, op.getOperand());
    ++context.reshapes;
    return success();
  }
};

/// split(f(x, y)) is f(split(x), split(y)), where nothing else uses f(x, y).
struct HoistSplit : Pattern<ReshapeOp> {
  using Pattern::Pattern;
  LogicalResult matchAndRewrite(ReshapeOp op, PatternRewriter &rewriter) const override {
    Operation *producer = op.getOperand().getDefiningOp();
    bool broadcast = isa_and_present<BroadcastOp>(producer);
    if (!(broadcast || isElementwise(producer)) || !producer->hasOneUse())
      return failure();
    Shape fine = context.getShape(op.getResult());
    std::optional<Groups> groups = getGroups(fine.sizes, context.sizes.getSizes(op.getOperand()));
    if (!groups || !fine.hasExpressions())
      return failure();
    if (broadcast) {
      rewriter.replaceOp(op, expand(rewriter, context, op.getOperand(), fine, *groups));
      ++context.reshapes;
      return success();
    }
    if (!llvm::all_of(producer->getOperands(), [&](Value value) { return canExpand(context, value, fine.sizes); }))
      return failure();
    rewriter.setInsertionPoint(producer);
    SmallVector<Value> operands;
    for (Value operand : producer->getOperands())
      operands.push_back(expand(rewriter, context, operand, fine, *groups));
    rewriter.replaceOp(op, recreate(rewriter, producer, operands, fine.extents));
    ++context.reshapes;
    return success();
  }
};

/// split(concatenate(x, y)) is concatenate(split(x), split(y)), where their dimension stays whole.
struct HoistSplitAboveConcatenate : Pattern<ReshapeOp> {
  using Pattern::Pattern;
  LogicalResult matchAndRewrite(ReshapeOp op, PatternRewriter &rewriter) const override {
    auto concatenate = op.getOperand().getDefiningOp<ConcatenateOp>();
    if (!concatenate || !concatenate->hasOneUse())
      return failure();
    Shape fine = context.getShape(op.getResult());
    std::optional<Groups> groups = getGroups(fine.sizes, context.sizes.getSizes(op.getOperand()));
    unsigned dim = concatenate.getDim();
    if (!groups || !fine.hasExpressions() || (*groups)[dim].second - (*groups)[dim].first != 1)
      return failure();
    unsigned split = (*groups)[dim].first;
    SmallVector<Value> operands;
    for (Value operand : concatenate.getOperands()) {
      Shape own = context.getShape(operand), shape = fine;
      if (!own.hasExpressions())
        return failure();
      shape.extents[split] = own.extents[dim];
      shape.sizes[split] = own.sizes[dim];
      operands.push_back(createReshape(rewriter, op.getLoc(), operand, shape));
    }
    rewriter.replaceOpWithNewOp<ConcatenateOp>(op, op.getType(), operands, split);
    ++context.reshapes;
    return success();
  }
};

/// f(merge(x), y) is merge(f(x, split(y))).
struct SinkMerge : RewritePattern {
  SinkMerge(MLIRContext *mlirContext, Context &context)
      : RewritePattern(MatchAnyOpTypeTag(), 1, mlirContext), context(context) {}
  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (!isElementwise(op))
      return failure();
    for (Value operand : op->getOperands()) {
      auto reshape = operand.getDefiningOp<ReshapeOp>();
      if (!reshape)
        continue;
      Shape fine = context.getShape(reshape.getOperand());
      // Equal ranks have equal sizes, or the reshape is no merge.
      if (fine.extents.size() == static_cast<size_t>(reshape.getType().getRank()))
        continue;
      std::optional<Groups> groups = getGroups(fine.sizes, context.sizes.getSizes(operand));
      Shape coarse = context.getShape(op->getResult(0));
      if (!groups || !fine.hasExpressions() || !coarse.hasExpressions() ||
          !llvm::all_of(op->getOperands(), [&](Value value) { return canExpand(context, value, fine.sizes); }))
        continue;
      SmallVector<Value> operands;
      for (Value value : op->getOperands())
        operands.push_back(expand(rewriter, context, value, fine, *groups));
      Operation *computed = recreate(rewriter, op, operands, fine.extents);
      rewriter.replaceOp(op, createReshape(rewriter, op->getLoc(), computed->getResult(0), coarse));
      ++context.reshapes;
      return success();
    }
    return failure();
  }
  Context &context;
};

// ---- contractions ----------------------------------------------------------------------------------------------

/// One side of a dot_general: its operand and dimension numbers.
struct Side {
  Value operand;
  SmallVector<int64_t> batch, contract;
  SmallVector<int64_t> getFree() const {
    SmallVector<int64_t> free;
    for (int64_t dim = 0; dim < cast<RankedTensorType>(operand.getType()).getRank(); ++dim)
      if (!llvm::is_contained(batch, dim) && !llvm::is_contained(contract, dim))
        free.push_back(dim);
    return free;
  }
};

std::pair<Side, Side> getSides(DotGeneralOp op) {
  return {Side{op.getLhs(), SmallVector<int64_t>(op.getLhsBatch()), SmallVector<int64_t>(op.getLhsContract())},
          Side{op.getRhs(), SmallVector<int64_t>(op.getRhsBatch()), SmallVector<int64_t>(op.getRhsContract())}};
}

/// The product `old` of other operands.
DotGeneralOp createDot(OpBuilder &builder, DotGeneralOp old, Type type, const Side &lhs, const Side &rhs) {
  return DotGeneralOp::create(builder, old.getLoc(), type, lhs.operand, rhs.operand, lhs.batch, rhs.batch, lhs.contract,
                              rhs.contract, old.getTf32());
}

/// dot(merge(x), y) is merge(dot(x, y)) with more free and batch dimensions; y's batch dimensions are split to match.
struct SinkMergeBelowDot : Pattern<DotGeneralOp> {
  using Pattern::Pattern;
  LogicalResult matchAndRewrite(DotGeneralOp op, PatternRewriter &rewriter) const override {
    auto [lhs, rhs] = getSides(op);
    for (bool first : {true, false})
      if (succeeded(rewrite(op, first ? lhs : rhs, first ? rhs : lhs, first, rewriter)))
        return success();
    return failure();
  }

  LogicalResult rewrite(DotGeneralOp op, const Side &side, const Side &other, bool isLhs,
                        PatternRewriter &rewriter) const {
    auto reshape = side.operand.getDefiningOp<ReshapeOp>();
    if (!reshape || reshape.getOperand().getType().getRank() == reshape.getType().getRank())
      return failure();
    Shape fine = context.getShape(reshape.getOperand());
    std::optional<Groups> groups = getGroups(fine.sizes, context.sizes.getSizes(side.operand));
    Shape result = context.getShape(op.getResult());
    if (!groups || !fine.hasExpressions() || !result.hasExpressions())
      return failure();
    auto isSplit = [&](int64_t dim) { return (*groups)[dim].second - (*groups)[dim].first != 1; };
    if (llvm::any_of(side.contract, isSplit))
      return failure();

    // The other side, its batch dimensions split alike.
    Shape otherShape = context.getShape(other.operand), otherFine;
    SmallVector<SmallVector<int64_t>> otherDims;
    for (int64_t dim = 0; dim < static_cast<int64_t>(otherShape.extents.size()); ++dim) {
      SmallVector<int64_t> &dims = otherDims.emplace_back();
      const int64_t *batch = llvm::find(other.batch, dim);
      unsigned count = 1;
      if (batch != other.batch.end()) {
        auto [begin, end] = (*groups)[side.batch[batch - other.batch.begin()]];
        count = end - begin;
        if (count > 1)
          for (unsigned i = begin; i < end; ++i)
            otherFine.append(fine, i);
      }
      if (count == 1)
        otherFine.append(otherShape, dim);
      for (unsigned i = 0; i < count; ++i)
        dims.push_back(otherFine.extents.size() - count + i);
    }
    Side newOther = {other.operand, {}, {}}, newSide = {reshape.getOperand(), {}, {}};
    Groups otherGroups;
    for (ArrayRef<int64_t> dims : otherDims)
      otherGroups.push_back({static_cast<unsigned>(dims.front()), static_cast<unsigned>(dims.back() + 1)});
    if (otherFine.extents.size() != otherShape.extents.size()) {
      if (!canExpand(context, other.operand, otherFine.sizes))
        return failure();
      newOther.operand = expand(rewriter, context, other.operand, otherFine, otherGroups);
    }
    auto split = [](ArrayRef<int64_t> dims, const Groups &groups) {
      SmallVector<int64_t> result;
      for (int64_t dim : dims)
        for (unsigned i = groups[dim].first; i < groups[dim].second; ++i)
          result.push_back(i);
      return result;
    };
    newSide.batch = split(side.batch, *groups);
    newSide.contract = split(side.contract, *groups);
    newOther.batch = split(other.batch, otherGroups);
    newOther.contract = split(other.contract, otherGroups);

    const Side &newLhs = isLhs ? newSide : newOther, &newRhs = isLhs ? newOther : newSide;
    const Shape &lhsShape = isLhs ? fine : otherFine, &rhsShape = isLhs ? otherFine : fine;
    Shape shape;
    for (int64_t dim : newLhs.batch)
      shape.append(lhsShape, dim);
    for (int64_t dim : newLhs.getFree())
      shape.append(lhsShape, dim);
    for (int64_t dim : newRhs.getFree())
      shape.append(rhsShape, dim);
    Value dot = createDot(rewriter, op, shape.getType(op.getType().getElementType()), newLhs, newRhs);
    rewriter.replaceOp(op, createReshape(rewriter, op.getLoc(), dot, result));
    ++context.reshapes;
    return success();
  }
};

/// dot(transpose(x), y) reads x by other dimension numbers, where the free dimensions keep their order.
struct AbsorbTranspose : Pattern<DotGeneralOp> {
  using Pattern::Pattern;
  LogicalResult matchAndRewrite(DotGeneralOp op, PatternRewriter &rewriter) const override {
    auto [lhs, rhs] = getSides(op);
    bool changed = absorb(lhs);
    changed |= absorb(rhs);
    if (!changed)
      return failure();
    rewriter.replaceOp(op, createDot(rewriter, op, op.getType(), lhs, rhs));
    ++context.transposes;
    return success();
  }

  static bool absorb(Side &side) {
    auto transpose = side.operand.getDefiningOp<TransposeOp>();
    if (!transpose)
      return false;
    auto map = [&](ArrayRef<int64_t> dims) {
      return llvm::map_to_vector(dims, [&](int64_t dim) { return transpose.getPermutation()[dim]; });
    };
    if (!llvm::is_sorted(map(side.getFree())))
      return false;
    side = {transpose.getOperand(), SmallVector<int64_t>(map(side.batch)), SmallVector<int64_t>(map(side.contract))};
    return true;
  }
};

// ---- transposes ------------------------------------------------------------------------------------------------

/// f(transpose(x), transpose(y)) is transpose(f(x, y)); splats and broadcasts are made in the other order.
struct SinkTranspose : RewritePattern {
  SinkTranspose(MLIRContext *mlirContext, Context &context)
      : RewritePattern(MatchAnyOpTypeTag(), 1, mlirContext), context(context) {}
  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (!isElementwise(op))
      return failure();
    TransposeOp first;
    for (Value operand : op->getOperands()) {
      if (auto transpose = operand.getDefiningOp<TransposeOp>()) {
        if (first && first.getPermutation() != transpose.getPermutation())
          return failure();
        first = first ? first : transpose;
      } else if (!isSplat(operand) && !operand.getDefiningOp<BroadcastOp>()) {
        return failure();
      }
    }
    if (!first)
      return failure();
    ArrayRef<int64_t> permutation = first.getPermutation();
    Shape shape = context.getShape(first.getOperand());
    if (!shape.hasExpressions())
      return failure();
    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      if (auto transpose = operand.getDefiningOp<TransposeOp>())
        operands.push_back(transpose.getOperand());
      else if (isSplat(operand))
        operands.push_back(createSplat(rewriter, operand, shape));
      else
        operands.push_back(untranspose(rewriter, operand.getDefiningOp<BroadcastOp>(), permutation, shape));
    }
    Operation *computed = recreate(rewriter, op, operands, shape.extents);
    rewriter.replaceOpWithNewOp<TransposeOp>(op, op->getResult(0).getType(), computed->getResult(0), permutation);
    ++context.transposes;
    return success();
  }

  /// The broadcast whose transpose is `broadcast`.
  static Value untranspose(OpBuilder &builder, BroadcastOp broadcast, ArrayRef<int64_t> permutation,
                           const Shape &shape) {
    // Operand dimension k becomes dimension permutation[dims[k]], and these must increase.
    SmallVector<int64_t> dims = llvm::map_to_vector(broadcast.getDims(), [&](int64_t dim) { return permutation[dim]; });
    SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(dims.size()));
    llvm::sort(order, [&](int64_t a, int64_t b) { return dims[a] < dims[b]; });
    Value source = broadcast.getOperand();
    if (!llvm::is_sorted(dims)) {
      RankedTensorType type = broadcast.getOperand().getType();
      auto extents = llvm::map_to_vector(order, [&](int64_t dim) { return type.getDimSize(dim); });
      source = TransposeOp::create(builder, broadcast.getLoc(), type.clone(extents), source, order);
      llvm::sort(dims);
    }
    return BroadcastOp::create(builder, broadcast.getLoc(), shape.getType(broadcast.getType().getElementType()), source,
                               dims, shape.getSizesAttr(builder.getContext()));
  }
  Context &context;
};

// ---- pass ------------------------------------------------------------------------------------------------------

/// Keeps the analysis free of values that are gone.
struct ForgetErased : RewriterBase::Listener {
  explicit ForgetErased(SizeAnalysis &sizes) : sizes(sizes) {}
  void notifyOperationErased(Operation *op) override {
    for (Value result : op->getResults())
      sizes.forget(result);
  }
  SizeAnalysis &sizes;
};

struct SimplifyReshapesPass : lamina::impl::SimplifyReshapesBase<SimplifyReshapesPass> {
  void runOnOperation() override {
    SizeAnalysis sizes(getOperation());
    Context context{sizes, numReshapes, numTransposes};
    RewritePatternSet patterns(&getContext());
    patterns.add<DropIdentityReshape, HoistSplit, HoistSplitAboveConcatenate, SinkMerge, SinkMergeBelowDot,
                 AbsorbTranspose, SinkTranspose>(&getContext(), context);
    ForgetErased listener(sizes);
    GreedyRewriteConfig config;
    config.setListener(&listener);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns), config)))
      getOperation()->emitWarning("lamina-simplify-reshapes did not come to an end; reshapes may be left");
  }
};
} // namespace
