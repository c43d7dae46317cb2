// A contraction or convolution as loops and linear addresses: the form that the lowering works on.
#include "lib/Transforms/Contraction/Problem.h"
#include "lib/Support/MemRefSizes.h"
#include "mlir/Analysis/FlatLinearValueConstraints.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"

using namespace mlir;
using namespace lamina::contraction;

Value Operand::view(Emitter &e, Index start, ArrayRef<Index> sizes, ArrayRef<Index> viewStrides) const {
  SmallVector<int64_t> shape, strides;
  SmallVector<Value> unused;
  SmallVector<Index> size(sizes), stride(viewStrides);
  dispatchIndexOpFoldResults(size, unused, shape);
  dispatchIndexOpFoldResults(stride, unused, strides);
  int64_t staticOffset = getConstantIntValue(start).value_or(ShapedType::kDynamic);
  auto layout = StridedLayoutAttr::get(e.b.getContext(), staticOffset, strides);
  auto type = MemRefType::get(shape, element, layout, cast<BaseMemRefType>(buffer.getType()).getMemorySpace());
  return memref::ReinterpretCastOp::create(e.b, e.loc, type, buffer, start, size, stride);
}

void Problem::transpose() {
  std::swap(a, b);
  std::swap(m, n);
}

bool Problem::mergeable(const Operand &operand, unsigned outer, unsigned inner) const {
  if (llvm::is_contained(operand.contiguous, std::make_pair(outer, inner)))
    return true;
  auto outerStride = getConstantIntValue(operand.strides[outer]);
  auto innerStride = getConstantIntValue(operand.strides[inner]), innerSize = size(inner);
  return outerStride && innerStride && innerSize && *outerStride == *innerStride * *innerSize;
}

void Problem::merge(Emitter &e, SmallVector<unsigned> &group, unsigned outer, unsigned inner) {
  sizes[inner] = e.mul(sizes[outer], sizes[inner]);
  bool bounded = bounds[outer] != ShapedType::kDynamic && bounds[inner] != ShapedType::kDynamic;
  bounds[inner] = bounded ? bounds[outer] * bounds[inner] : ShapedType::kDynamic;
  for (Operand *operand : {&a, &b, &c})
    for (auto &pair : operand->contiguous) {
      if (pair.second == inner)
        pair.second = ~0u; // its size has changed
      if (pair.second == outer)
        pair.second = inner;
    }
  llvm::erase(group, outer);
}

void Problem::collapse(Emitter &e) {
  auto inAll = [&](unsigned outer, unsigned inner, ArrayRef<const Operand *> operands) {
    return llvm::all_of(operands, [&](const Operand *operand) { return mergeable(*operand, outer, inner); });
  };
  auto collapseGroup = [&](SmallVector<unsigned> &group, ArrayRef<const Operand *> operands) {
    for (bool changed = true; changed;) {
      changed = false;
      for (unsigned i = 0; i < group.size() && !changed; ++i)
        for (unsigned j = 0; j < group.size() && !changed; ++j) {
          unsigned outer = group[i], inner = group[j];
          if (i == j || !inAll(outer, inner, operands))
            continue;
          merge(e, group, outer, inner);
          changed = true;
        }
    }
  };
  collapseGroup(batch, {&a, &b, &c});
  collapseGroup(m, {&a, &c});
  collapseGroup(n, {&b, &c});
  collapseGroup(k, {&a, &b});
}

/// Vectors in a row of the widest panel: more would leave no registers for rows of C.
static constexpr int64_t kMaxPanelVectors = 4;

void Problem::findPanels(Emitter &e, int64_t lanes) {
  if (!batch.empty() || n.empty() || n.size() > 2 || k.empty())
    return;
  auto isStride = [&](unsigned loop, int64_t stride) { return getConstantIntValue(b.strides[loop]) == stride; };
  // Where rows alternate, a loop of size 2 goes through the pair.
  auto *found = llvm::find_if(k, [&](unsigned loop) { return size(loop) == 2 && isStride(loop, 1); });
  bool paired = found != k.end();
  unsigned pair = paired ? *found : 0;
  int64_t together = paired ? 2 : 1;
  auto findRows = [&](unsigned inner) -> std::optional<unsigned> {
    auto width = size(inner);
    if (!width || *width <= 0 || *width > kMaxPanelVectors * lanes || *width % lanes != 0 || !isStride(inner, together))
      return std::nullopt;
    for (unsigned loop : k)
      if (isStride(loop, *width * together) && (!paired || mergeable(a, loop, pair)))
        return loop;
    return std::nullopt;
  };
  SmallVector<std::pair<std::optional<unsigned>, unsigned>> candidates;
  if (n.size() == 1)
    candidates.push_back({std::nullopt, n[0]});
  else
    candidates = {{n[0], n[1]}, {n[1], n[0]}};
  for (auto [outer, inner] : candidates) {
    std::optional<unsigned> rows = findRows(inner);
    if (!rows || (outer && !mergeable(c, *outer, inner)))
      continue;
    packedColumns = *size(inner);
    packedRows = together;
    packedStride = outer ? b.strides[*outer] : e.constant(0);
    if (outer)
      merge(e, n, *outer, inner);
    if (paired) {
      merge(e, k, *rows, pair);
      b.strides[pair] = e.constant(packedColumns);
      rows = pair;
    }
    llvm::erase(k, *rows);
    k.push_back(*rows);
    return;
  }
}

/// The extension by which `value` is made from a block argument of number `argument`.
static std::optional<Extension> traceInput(Value value, Block *block, unsigned &argument) {
  Extension extension = Extension::None;
  if (Operation *op = value.getDefiningOp()) {
    if (isa<arith::ExtFOp>(op))
      extension = Extension::Float;
    else if (isa<arith::ExtSIOp>(op))
      extension = Extension::Signed;
    else if (isa<arith::ExtUIOp>(op))
      extension = Extension::Unsigned;
    else
      return std::nullopt;
    value = op->getOperand(0);
  }
  auto blockArgument = dyn_cast<BlockArgument>(value);
  if (!blockArgument || blockArgument.getOwner() != block || blockArgument.getArgNumber() > 1)
    return std::nullopt;
  argument = blockArgument.getArgNumber();
  return extension;
}

/// Reads c + ext(a) * ext(b) from the body.
static LogicalResult matchBody(linalg::LinalgOp op, Match &match) {
  Block *block = op.getBlock();
  if (block->getNumArguments() != 3 || block->getTerminator()->getNumOperands() != 1)
    return failure();
  Operation *sum = block->getTerminator()->getOperand(0).getDefiningOp();
  if (!sum || !isa<arith::AddFOp, arith::AddIOp>(sum))
    return failure();
  Value product;
  for (unsigned i : {0u, 1u})
    if (sum->getOperand(i) == block->getArgument(2))
      product = sum->getOperand(1 - i);
  if (!product || !product.getDefiningOp())
    return failure();
  Operation *mul = product.getDefiningOp();
  bool isFloat = isa<arith::AddFOp>(sum);
  if (isFloat ? !isa<arith::MulFOp>(mul) : !isa<arith::MulIOp>(mul))
    return failure();
  unsigned lhs, rhs;
  auto lhsExtension = traceInput(mul->getOperand(0), block, lhs),
       rhsExtension = traceInput(mul->getOperand(1), block, rhs);
  if (!lhsExtension || !rhsExtension || lhs == rhs)
    return failure();
  match.extensions[lhs] = *lhsExtension;
  match.extensions[rhs] = *rhsExtension;
  match.accumulator = block->getArgument(2).getType();
  // Sums in half precision would round at another place than eager's do.
  return success(isFloat ? match.accumulator.isF32() || match.accumulator.isF64()
                         : match.accumulator.isIntOrFloat() && match.accumulator.getIntOrFloatBitWidth() >= 8);
}

/// The coefficients of each loop in `expr`, and the constant last; fails if it is not linear.
static FailureOr<SmallVector<int64_t>> coefficients(AffineExpr expr, unsigned loops) {
  SmallVector<int64_t> flat;
  if (failed(getFlattenedAffineExpr(expr, loops, 0, &flat)) || flat.size() != loops + 1)
    return failure();
  return flat;
}

FailureOr<Match> lamina::contraction::matchProblem(linalg::LinalgOp op) {
  Match match;
  if (!op.hasPureBufferSemantics() || op.getNumDpsInputs() != 2 || op.getNumDpsInits() != 1 ||
      failed(matchBody(op, match)))
    return failure();
  unsigned loops = op.getNumLoops();
  SmallVector<bool> uses[3];
  for (OpOperand &operand : op->getOpOperands()) {
    unsigned number = operand.getOperandNumber();
    auto type = dyn_cast<MemRefType>(operand.get().getType());
    SmallVector<int64_t> strides;
    int64_t offset;
    if (!type || failed(type.getStridesAndOffset(strides, offset)))
      return failure();
    uses[number].assign(loops, false);
    AffineMap map = op.getMatchingIndexingMap(&operand);
    if (number == 2 && !map.isProjectedPermutation())
      return failure();
    for (AffineExpr expr : map.getResults()) {
      auto flat = coefficients(expr, loops);
      if (failed(flat))
        return failure();
      for (unsigned loop = 0; loop < loops; ++loop) {
        if ((*flat)[loop] < 0)
          return failure();
        if ((*flat)[loop] != 0)
          uses[number][loop] = true;
      }
    }
  }
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  for (unsigned loop = 0; loop < loops; ++loop) {
    bool inA = uses[0][loop], inB = uses[1][loop], inC = uses[2][loop];
    if (inC != (iterators[loop] == utils::IteratorType::parallel))
      return failure();
    if (inA && inB && inC)
      match.batch.push_back(loop);
    else if (inA && !inB && inC)
      match.m.push_back(loop);
    else if (!inA && inB && inC)
      match.n.push_back(loop);
    else if (inA && inB && !inC)
      match.k.push_back(loop);
    else
      return failure();
  }
  // Without a mark, leave what a loop vectorizer does well: elementwise ops and sums of elementwise products.
  bool marked = op->hasAttr("lamina.contraction") || op->hasAttr("lamina.convolution");
  if (!marked && (match.k.empty() || (match.m.empty() && match.n.empty())))
    return failure();
  return match;
}

static Operand buildOperand(Emitter &e, Value buffer, AffineMap map, Extension extension) {
  Operand operand;
  auto type = cast<MemRefType>(buffer.getType());
  operand.element = type.getElementType();
  operand.extension = extension;
  auto metadata = memref::ExtractStridedMetadataOp::create(e.b, e.loc, buffer);
  operand.buffer = metadata.getBaseBuffer();
  operand.offset = metadata.getConstifiedMixedOffset();
  SmallVector<Index> strides = metadata.getConstifiedMixedStrides();
  operand.strides.assign(map.getNumDims(), e.constant(0));
  for (auto [expr, stride] : llvm::zip_equal(map.getResults(), strides)) {
    SmallVector<int64_t> flat = *coefficients(expr, map.getNumDims());
    for (unsigned loop = 0; loop < map.getNumDims(); ++loop)
      if (flat[loop])
        operand.strides[loop] = e.add(operand.strides[loop], e.mul(stride, e.constant(flat[loop])));
    operand.offset = e.add(operand.offset, e.mul(stride, e.constant(flat.back())));
  }
  if (type.getLayout().isIdentity())
    for (unsigned i = 1; i < map.getNumResults(); ++i) {
      auto outer = dyn_cast<AffineDimExpr>(map.getResult(i - 1)), inner = dyn_cast<AffineDimExpr>(map.getResult(i));
      if (outer && inner)
        operand.contiguous.push_back({outer.getPosition(), inner.getPosition()});
    }
  return operand;
}

Problem lamina::contraction::buildProblem(Emitter &e, linalg::LinalgOp op, const Match &match) {
  Problem problem;
  unsigned loops = op.getNumLoops();
  problem.accumulator = match.accumulator;
  problem.batch = match.batch;
  problem.m = match.m;
  problem.n = match.n;
  problem.k = match.k;
  problem.sizes.assign(loops, Index());
  problem.bounds.assign(loops, ShapedType::kDynamic);
  // A loop's size is the size of a dimension that it alone walks.
  for (OpOperand &operand : op->getOpOperands()) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    for (unsigned i = 0; i < map.getNumResults(); ++i) {
      auto dim = dyn_cast<AffineDimExpr>(map.getResult(i));
      if (!dim)
        continue;
      unsigned loop = dim.getPosition();
      if (problem.sizes[loop] && getConstantIntValue(problem.sizes[loop]))
        continue;
      int64_t extent = cast<MemRefType>(operand.get().getType()).getDimSize(i);
      if (ShapedType::isStatic(extent)) {
        problem.sizes[loop] = e.constant(extent);
        problem.bounds[loop] = extent;
        continue;
      }
      if (!problem.sizes[loop])
        problem.sizes[loop] = getMemRefSize(e.b, e.loc, operand.get(), i);
      if (problem.bounds[loop] == ShapedType::kDynamic) {
        auto bound = ValueBoundsConstraintSet::computeConstantBound(
            presburger::BoundType::UB, ValueBoundsConstraintSet::Variable(operand.get(), i), nullptr,
            /*closedUB=*/true);
        if (succeeded(bound))
          problem.bounds[loop] = *bound;
      }
    }
  }
  auto map = [&](unsigned i) { return op.getMatchingIndexingMap(&op->getOpOperand(i)); };
  problem.a = buildOperand(e, op->getOperand(0), map(0), match.extensions[0]);
  problem.b = buildOperand(e, op->getOperand(1), map(1), match.extensions[1]);
  problem.c = buildOperand(e, op->getOperand(2), map(2), Extension::None);
  auto dropUnit = [&](SmallVector<unsigned> &group) {
    llvm::erase_if(group, [&](unsigned loop) { return problem.size(loop) == 1; });
  };
  for (auto *group : {&problem.batch, &problem.m, &problem.n, &problem.k})
    dropUnit(*group);
  return problem;
}
