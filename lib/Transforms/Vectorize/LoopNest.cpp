// Reads the iteration space of a linalg op, and chooses the loop to vectorize.
#include "lib/Transforms/Vectorize/LoopNest.h"
#include "lib/Support/MemRefSizes.h"
#include "lib/Transforms/Vectorize/BodyCloner.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace lamina;

bool Access::dependsOn(unsigned dim) const { return linear ? constantOf(strides[dim]) != 0 : map.isFunctionOfDim(dim); }

std::optional<int64_t> Access::stepAlong(unsigned dim) const {
  if (!linear)
    return map.isFunctionOfDim(dim) ? std::nullopt : std::optional<int64_t>(0);
  return constantOf(strides[dim]);
}

/// Adds the multiples of dimensions in `expr` to `factors` and returns the constant, or nothing if it is not linear.
static std::optional<int64_t> readLinear(AffineExpr expr, int64_t scale, MutableArrayRef<int64_t> factors) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue() * scale;
  if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
    factors[dim.getPosition()] += scale;
    return 0;
  }
  auto op = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!op)
    return std::nullopt;
  if (expr.getKind() == AffineExprKind::Add) {
    auto lhs = readLinear(op.getLHS(), scale, factors), rhs = readLinear(op.getRHS(), scale, factors);
    return lhs && rhs ? std::optional<int64_t>(*lhs + *rhs) : std::nullopt;
  }
  if (expr.getKind() == AffineExprKind::Mul)
    if (auto factor = dyn_cast<AffineConstantExpr>(op.getRHS()))
      return readLinear(op.getLHS(), scale * factor.getValue(), factors);
  return std::nullopt;
}

void LoopNest::readAccesses(OpBuilder &b) {
  Location loc = op.getLoc();
  unsigned numDims = op.getNumLoops();
  DenseMap<Value, FlatMemory> known;
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    Access access;
    access.operand = operand.getOperandNumber();
    if (!known.contains(operand.get()))
      known[operand.get()] = FlatMemory::get(b, loc, operand.get());
    access.memory = known[operand.get()];
    access.map = op.getMatchingIndexingMap(&operand);
    access.strides.assign(numDims, b.getIndexAttr(0));
    access.memrefDims.assign(numDims, {-1, -1});
    access.start = access.memory.offset;
    for (auto [index, expr] : llvm::enumerate(access.map.getResults())) {
      SmallVector<int64_t> factors(numDims, 0);
      std::optional<int64_t> constant = readLinear(expr, 1, factors);
      if (!constant) {
        access.linear = false;
        break;
      }
      OpFoldResult stride = access.memory.strides[index];
      if (*constant != 0)
        access.start =
            addIndex(b, loc, access.start, toValue(b, loc, mulIndex(b, loc, stride, b.getIndexAttr(*constant))));
      for (unsigned dim = 0; dim < numDims; ++dim) {
        if (factors[dim] == 0)
          continue;
        OpFoldResult term = mulIndex(b, loc, stride, b.getIndexAttr(factors[dim]));
        if (constantOf(access.strides[dim]) == 0) {
          access.strides[dim] = term;
          access.memrefDims[dim] =
              isa<AffineDimExpr>(expr) ? std::pair<int, int>(index, index) : std::pair<int, int>(-1, -1);
          continue;
        }
        // A diagonal: the dimension moves along two dimensions of the buffer at once.
        access.memrefDims[dim] = {-1, -1};
        auto lhs = constantOf(access.strides[dim]), rhs = constantOf(term);
        access.strides[dim] =
            lhs && rhs ? OpFoldResult(b.getIndexAttr(*lhs + *rhs))
                       : OpFoldResult(addIndex(b, loc, toValue(b, loc, access.strides[dim]), toValue(b, loc, term)));
      }
    }
    accesses.push_back(std::move(access));
  }
}

static std::optional<vector::CombiningKind> combiningKind(Operation *op) {
  using Kind = vector::CombiningKind;
  return TypeSwitch<Operation *, std::optional<Kind>>(op)
      .Case<arith::AddFOp, arith::AddIOp>([](auto) { return Kind::ADD; })
      .Case<arith::MulFOp, arith::MulIOp>([](auto) { return Kind::MUL; })
      .Case<arith::MaximumFOp>([](auto) { return Kind::MAXIMUMF; })
      .Case<arith::MinimumFOp>([](auto) { return Kind::MINIMUMF; })
      .Case<arith::MaxNumFOp>([](auto) { return Kind::MAXNUMF; })
      .Case<arith::MinNumFOp>([](auto) { return Kind::MINNUMF; })
      .Case<arith::MaxSIOp>([](auto) { return Kind::MAXSI; })
      .Case<arith::MinSIOp>([](auto) { return Kind::MINSI; })
      .Case<arith::MaxUIOp>([](auto) { return Kind::MAXUI; })
      .Case<arith::MinUIOp>([](auto) { return Kind::MINUI; })
      .Case<arith::OrIOp>([](auto) { return Kind::OR; })
      .Case<arith::AndIOp>([](auto) { return Kind::AND; })
      .Case<arith::XOrIOp>([](auto) { return Kind::XOR; })
      .Default([](auto) { return std::nullopt; });
}

/// Whether `output` is yielded = combiner(accumulator, expression) and nothing else sees the accumulator.
static bool matchReduction(linalg::LinalgOp op, unsigned result, Output &output) {
  BlockArgument accumulator = op.getRegionOutputArgs()[result];
  Value yielded = op.getBlock()->getTerminator()->getOperand(result);
  Operation *combiner = yielded.getDefiningOp();
  if (!combiner || combiner->getBlock() != op.getBlock() || !accumulator.hasOneUse() || !yielded.hasOneUse() ||
      *accumulator.getUsers().begin() != combiner || accumulator.getType().isIndex())
    return false;
  std::optional<vector::CombiningKind> kind = combiningKind(combiner);
  if (!kind)
    return false;
  output.combiner = combiner;
  output.kind = *kind;
  output.expression = combiner->getOperand(combiner->getOperand(0) == accumulator ? 1 : 0);
  return true;
}

void LoopNest::classifyOutputs() {
  for (unsigned result = 0; result < op.getNumDpsInits(); ++result) {
    Output output;
    output.access = llvm::find_if(accesses,
                                  [&](const Access &access) {
                                    return access.operand == op.getDpsInitOperand(result)->getOperandNumber();
                                  }) -
                    accesses.begin();
    const Access &access = accesses[output.access];
    unsigned missing = 0, reductions = 0;
    bool missesParallel = false;
    for (const Loop &loop : loops) {
      reductions += loop.reduction;
      missing += !access.dependsOn(loop.dim);
      missesParallel |= !access.dependsOn(loop.dim) && !loop.reduction;
    }
    if (missing != 0 && (missesParallel || missing != reductions || !matchReduction(op, result, output)))
      sequential = true;
    outputs.push_back(output);
  }
  if (sequential)
    for (Output &output : outputs)
      output.combiner = nullptr;
}

/// Whether iterating over `outer` and then `inner` walks through memory like one longer loop over `inner`.
static bool canMerge(const Access &access, const Loop &outer, const Loop &inner) {
  if (!access.linear)
    return !access.dependsOn(outer.dim) && !access.dependsOn(inner.dim);
  std::optional<int64_t> outerStride = constantOf(access.strides[outer.dim]),
                         innerStride = constantOf(access.strides[inner.dim]);
  if (outerStride && innerStride) {
    if (*outerStride == 0 && *innerStride == 0)
      return true;
    std::optional<int64_t> size = constantOf(inner.size);
    if (size && *innerStride != 0 && *outerStride == *innerStride * *size)
      return true;
  }
  auto [outerFirst, outerLast] = access.memrefDims[outer.dim];
  auto [innerFirst, innerLast] = access.memrefDims[inner.dim];
  return access.memory.identity && outerLast >= 0 && innerFirst == outerLast + 1;
}

void LoopNest::mergeLoops(OpBuilder &b) {
  llvm::SmallDenseSet<unsigned> indexed;
  op.getBlock()->walk([&](linalg::IndexOp index) { indexed.insert(index.getDim()); });
  auto tryMerge = [&]() {
    for (unsigned o = 0; o < loops.size(); ++o)
      for (unsigned i = 0; i < loops.size(); ++i) {
        Loop &outer = loops[o], &inner = loops[i];
        if (o == i || outer.reduction != inner.reduction || indexed.contains(outer.dim) ||
            indexed.contains(inner.dim) ||
            !llvm::all_of(accesses, [&](const Access &access) { return canMerge(access, outer, inner); }))
          continue;
        inner.size = mulIndex(b, op.getLoc(), outer.size, inner.size);
        for (Access &access : accesses)
          access.memrefDims[inner.dim].first = access.memrefDims[outer.dim].first;
        loops.erase(loops.begin() + o);
        return true;
      }
    return false;
  };
  while (tryMerge()) {
  }
}

/// Bits of the widest value that the lanes compute with. Indices do not count: they are address arithmetic.
static unsigned widestBits(const LoopNest &nest) {
  unsigned bits = 8;
  auto add = [&](Type type) {
    if (type.isIntOrFloat())
      bits = std::max(bits, type.getIntOrFloatBitWidth());
  };
  for (const Access &access : nest.accesses)
    add(access.memory.element);
  // NOLINTNEXTLINE(misc-const-correctness): LinalgOp's accessors are not const.
  linalg::LinalgOp op = nest.op;
  op.getBlock()->walk([&](Operation *inner) {
    if (!isa<arith::IndexCastOp, arith::IndexCastUIOp>(inner))
      for (Type type : inner->getResultTypes())
        add(type);
  });
  return bits;
}

/// Estimate of the vector values alive at once in the body.
static unsigned liveValues(Block &body) {
  DenseMap<Value, Operation *> lastUse;
  for (Operation &op : body)
    for (Value operand : op.getOperands())
      lastUse[operand] = &op;
  unsigned live = 0, most = 1;
  for (Value argument : body.getArguments())
    live += lastUse.contains(argument);
  most = std::max(most, live);
  for (Operation &op : body) {
    if (matchPattern(&op, m_Constant()))
      continue;
    bool isMath = op.getDialect() && isa<math::MathDialect>(op.getDialect()) &&
                  !isa<math::SqrtOp, math::AbsFOp, math::AbsIOp, math::FmaOp, math::FloorOp, math::CeilOp>(op);
    most = std::max(most, live + (isMath ? 5 : 1)); // a polynomial needs some registers of its own
    for (Value operand : llvm::SmallSetVector<Value, 4>(op.operand_begin(), op.operand_end()))
      if (lastUse.lookup(operand) == &op && operand.getParentBlock() == &body && !matchPattern(operand, m_Constant()) &&
          live > 0)
        --live;
    live += op.getNumResults();
  }
  return most;
}

/// The factor of dimension `dim` in an index that the body computes, nothing if it is no constant.
static std::optional<int64_t> factorOf(const LoopNest &nest, Value index, unsigned dim) {
  // NOLINTNEXTLINE(misc-const-correctness): LinalgOp's accessors are not const.
  linalg::LinalgOp op = nest.op;
  if (index.getParentBlock() != op.getBlock())
    return 0;
  if (auto argument = dyn_cast<BlockArgument>(index)) {
    for (const Access &access : nest.accesses)
      if (op.getMatchingBlockArgument(&op->getOpOperand(access.operand)) == argument && access.dependsOn(dim))
        return std::nullopt;
    return 0;
  }
  Operation *def = index.getDefiningOp();
  if (auto dimension = dyn_cast<linalg::IndexOp>(def))
    return dimension.getDim() == dim ? 1 : 0;
  SmallVector<int64_t> factors;
  bool known = true;
  for (Value operand : def->getOperands()) {
    std::optional<int64_t> factor = factorOf(nest, operand, dim);
    known &= factor.has_value();
    factors.push_back(factor.value_or(0));
  }
  if (!known || def->getNumRegions() != 0)
    return std::nullopt;
  if (llvm::all_of(factors, [](int64_t factor) { return factor == 0; }))
    return 0;
  if (isa<arith::AddIOp>(def))
    return factors[0] + factors[1];
  if (isa<arith::SubIOp>(def))
    return factors[0] - factors[1];
  if (isa<arith::IndexCastOp>(def))
    return factors[0];
  if (isa<arith::MinSIOp, arith::MaxSIOp>(def) && (factors[0] == 0 || factors[1] == 0)) // a clamp: see loadClamped
    return factors[0] + factors[1];
  return std::nullopt;
}

/// Distance between lanes along `dim` of a load in the body.
static std::optional<int64_t> stepOf(const LoopNest &nest, memref::LoadOp load, unsigned dim) {
  auto memory = nest.bodyMemories.find(load.getMemRef());
  if (memory == nest.bodyMemories.end())
    return std::nullopt;
  int64_t step = 0;
  for (auto [index, stride] : llvm::zip(load.getIndices(), memory->second.strides)) {
    std::optional<int64_t> factor = factorOf(nest, index, dim), distance = constantOf(stride);
    if (factor == 0)
      continue;
    if (!factor || !distance)
      return std::nullopt;
    step += *factor * *distance;
  }
  return step;
}

void LoopNest::chooseVectorLoop(const VectorTarget &target) {
  Block &body = *op.getBlock();
  auto isLaneType = [](Type type) {
    return type.isIntOrIndexOrFloat() &&
           (!type.isIntOrFloat() || type.isInteger(1) || type.getIntOrFloatBitWidth() % 8 == 0) &&
           VectorType::isValidElementType(type);
  };
  if (sequential || loops.empty() || !canVectorizeBody(body) || !llvm::all_of(body.getArgumentTypes(), isLaneType))
    return;
  int64_t natural = std::max<int64_t>(1, llvm::bit_floor<uint64_t>(target.bits / widestBits(*this)));
  auto isWritten = [&](const Access &access) { return access.operand >= op.getNumDpsInputs(); };
  double arithmetic = 0.3 * std::distance(body.begin(), body.end());
  double best = 0;
  bool bestGathers = false;
  for (auto [index, loop] : llvm::enumerate(loops)) {
    std::optional<int64_t> size = constantOf(loop.size);
    double lanes = size ? std::min<int64_t>(natural, *size) : natural;
    if (lanes <= 1)
      continue;
    bool gathers = false;
    double cost = arithmetic + 1;
    for (const Access &access : accesses) {
      // An operand that does not depend on all loops is read less often than once an iteration.
      unsigned missing = llvm::count_if(loops, [&](const Loop &other) { return !access.dependsOn(other.dim); });
      double weight = 1.0 / (1 + 8 * (missing - (access.dependsOn(loop.dim) ? 0 : 1)));
      if (isWritten(access) && missing != 0)
        weight = 0.05;
      std::optional<int64_t> step = access.stepAlong(loop.dim);
      if (step == 0)
        cost += 0.1 * weight;
      else if (step == 1)
        cost += (isWritten(access) ? 1.1 : 1) * weight;
      else {
        cost += lanes * (isWritten(access) ? 1.5 : 0.75) * weight;
        gathers |= weight > 0.5;
      }
    }
    body.walk([&](memref::LoadOp load) {
      std::optional<int64_t> step = stepOf(*this, load, loop.dim);
      cost += step == 0 ? 0.1 : step == 1 ? 1 : lanes * 0.75;
      bool clamped = llvm::any_of(load.getIndices(), [](Value index) {
        return isa_and_nonnull<arith::MinSIOp, arith::MaxSIOp>(index.getDefiningOp());
      });
      gathers |= clamped || (step != 0 && step != 1);
    });
    if (loop.reduction)
      cost += 6.0 / (size ? std::max<double>(1, *size / lanes) : 16); // combining the lanes at the end
    cost /= lanes;
    if (vectorLoop < 0 || cost <= best) {
      best = cost;
      vectorLoop = index;
      bestGathers = gathers;
    }
  }
  if (vectorLoop < 0)
    return;
  int64_t unroll = target.unroll;
  unsigned live = liveValues(body);
  while (unroll > 1 && (bestGathers || live * unroll > 20 || natural * unroll > 128))
    unroll /= 2;
  lanes = natural * llvm::bit_floor<uint64_t>(std::max<int64_t>(unroll, 1));
  if (std::optional<int64_t> size = constantOf(loops[vectorLoop].size))
    lanes = std::min<int64_t>(lanes, llvm::PowerOf2Ceil(*size));
  if (lanes <= 1) {
    lanes = 1;
    vectorLoop = -1;
  }
  chooseBlockLoop(natural);
}

/// Reads along the vector loop that jump through memory, but are contiguous along another parallel loop, are done in
/// square blocks: a transpose in registers costs a quarter of the gathers.
void LoopNest::chooseBlockLoop(int64_t natural) {
  int64_t side = std::min<int64_t>(natural, 16);
  auto isLong = [&](const Loop &loop) { return constantOf(loop.size).value_or(side) >= 4; };
  if (vectorLoop < 0 || side < 4 || !isLong(loops[vectorLoop]) ||
      llvm::any_of(loops, [](const Loop &loop) { return loop.reduction; }))
    return;
  for (auto [index, access] : llvm::enumerate(accesses)) {
    if (access.operand >= op.getNumDpsInputs() || !access.linear ||
        llvm::is_contained({0, 1}, access.stepAlong(loops[vectorLoop].dim).value_or(2)))
      continue;
    for (auto [other, loop] : llvm::enumerate(loops))
      if (int(other) != vectorLoop && access.stepAlong(loop.dim) == 1 && isLong(loop) &&
          (blockLoop < 0 || blockLoop == int(other))) {
        blockLoop = other;
        transposed.push_back(index);
        break;
      }
  }
  if (blockLoop >= 0)
    lanes = side;
}

FailureOr<LoopNest> LoopNest::get(OpBuilder &b, linalg::LinalgOp op, const VectorTarget &target) {
  LoopNest nest;
  nest.op = op;
  for (Value operand : op->getOperands())
    if (auto type = dyn_cast<MemRefType>(operand.getType()); type && !type.isStrided())
      return failure();
  nest.readAccesses(b);
  op.getBlock()->walk([&](memref::LoadOp load) {
    if (load.getMemRefType().isStrided() && !nest.bodyMemories.contains(load.getMemRef()) &&
        !op->isAncestor(load.getMemRef().getParentRegion()->getParentOp()))
      nest.bodyMemories[load.getMemRef()] = FlatMemory::get(b, op.getLoc(), load.getMemRef());
  });

  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  for (unsigned dim = 0; dim < op.getNumLoops(); ++dim) {
    OpFoldResult size;
    if (!ShapedType::isDynamic(ranges[dim]))
      size = b.getIndexAttr(ranges[dim]);
    for (OpOperand &operand : op->getOpOperands()) {
      if (size)
        break;
      for (auto [index, expr] : llvm::enumerate(op.getMatchingIndexingMap(&operand).getResults()))
        if (expr == b.getAffineDimExpr(dim)) {
          size = getMemRefSize(b, op.getLoc(), operand.get(), index);
          break;
        }
    }
    if (!size)
      return failure();
    nest.sizes.push_back(size);
    if (constantOf(size) != 1)
      nest.loops.push_back({dim, size, iterators[dim] == utils::IteratorType::reduction});
  }
  nest.classifyOutputs();
  if (!nest.sequential)
    nest.mergeLoops(b);
  nest.chooseVectorLoop(target);
  return nest;
}
