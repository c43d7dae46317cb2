// Contractions: a loop along the contracted dimension around tt.dot.
#include "lib/Conversion/TiledToTriton/ProgramEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace lamina;

/// The least size that tt.dot takes, and the most elements of its result whose sums a program can keep in registers.
static constexpr int64_t kLeast = 16, kMostAccumulators = 32768;
static constexpr int64_t kMaxScoresDepth = 256;
/// Of Triton's enumeration of the precisions of f32 operands.
static constexpr int32_t kTf32 = 0;

static Value skipExtension(Value value) {
  if (auto extend = value.getDefiningOp<arith::ExtFOp>())
    if (extend.getIn().getType().isF16() || extend.getIn().getType().isBF16())
      return extend.getIn();
  return value;
}

/// Whether the value is read from memory as it is, with zeros at inactive elements.
static bool isLoaded(linalg::GenericOp op, Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || argument.getOwner() != op.getBody())
    return false;
  Value tensor = op->getOperand(argument.getArgNumber());
  while (auto slice = tensor.getDefiningOp<tensor::ExtractSliceOp>())
    tensor = slice.getSource();
  return isa<BlockArgument>(tensor) && !getElementTypeOrSelf(tensor.getType()).isInteger(1);
}

/// Rows or columns of one dimension are padded to what tt.dot takes; those of several are not, since all would be.
void ProgramEmitter::padContractions() {
  kernel.walk([&](linalg::GenericOp op) {
    if (!op->hasAttr("lamina.contraction"))
      return;
    AffineMap lhs = op.getIndexingMapsArray()[0], rhs = op.getIndexingMapsArray()[1];
    unsigned counts[2] = {0, 0};
    for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray()))
      if (kind == utils::IteratorType::parallel && lhs.isFunctionOfDim(loop) != rhs.isFunctionOfDim(loop) &&
          op.getStaticLoopRanges()[loop] != 1)
        ++counts[rhs.isFunctionOfDim(loop)];
    if (counts[0] <= 1 && counts[1] <= 1)
      minBlock = kLeast;
  });
}

/// Descriptors are made by each program, which takes it about half a microsecond; what they save must be more.
bool ProgramEmitter::wantsDescriptors(linalg::GenericOp op, ArrayRef<Loop> loops) {
  constexpr int64_t kLeastIterations = 32;
  if (kernel->hasAttr("kernel.online"))
    return false;
  if (auto given = kernel->getAttrOfType<BoolAttr>("kernel.descriptors"))
    return given.getValue();
  Type element = getElementTypeOrSelf(op->getOperand(0).getType());
  if (!options.descriptors || (element.getIntOrFloatBitWidth() > 16 && !op->hasAttr("lamina.tf32")))
    return false;
  int64_t iterations = 1;
  for (const Loop &loop : loops)
    iterations *= llvm::divideCeil(loop.extent.bound.value_or(0), loop.chunk);
  return iterations >= kLeastIterations;
}

/// Null if the contraction has no form as tt.dot: the accumulator is not f32, or one side has no rows or columns in
/// this program.
AxisBlock ProgramEmitter::contract(linalg::GenericOp op, const Indices &given) {
  auto sum = op.getBody()->getTerminator()->getOperand(0).getDefiningOp<arith::AddFOp>();
  if (op.getNumResults() != 1 || !sum || !sum.getType().isF32())
    return {};
  Value state = op.getRegionOutputArgs()[0];
  auto product = (sum.getLhs() == state ? sum.getRhs() : sum.getLhs()).getDefiningOp<arith::MulFOp>();
  if (!product || (sum.getLhs() != state && sum.getRhs() != state))
    return {};
  Value operands[2] = {product.getLhs(), product.getRhs()},
        narrow[2] = {skipExtension(operands[0]), skipExtension(operands[1])};
  if (narrow[0].getType() == narrow[1].getType())
    std::copy(narrow, narrow + 2, operands);

  // The loops that each operand depends on.
  auto getLoops = [&](Value value) {
    llvm::SmallBitVector used(op.getNumLoops());
    SmallVector<Value> work{value};
    while (!work.empty()) {
      Value next = work.pop_back_val();
      if (next.getParentBlock() != op.getBody())
        continue;
      if (auto argument = dyn_cast<BlockArgument>(next)) {
        AffineMap map = op.getMatchingIndexingMap(&op->getOpOperand(argument.getArgNumber()));
        for (unsigned loop = 0; loop < used.size(); ++loop)
          if (map.isFunctionOfDim(loop))
            used.set(loop);
        continue;
      }
      if (auto index = next.getDefiningOp<linalg::IndexOp>())
        used.set(index.getDim());
      llvm::append_range(work, next.getDefiningOp()->getOperands());
    }
    return used;
  };
  llvm::SmallBitVector inLhs = getLoops(operands[0]), inRhs = getLoops(operands[1]);
  SmallVector<const Axis *, 3> sides[2];
  SmallVector<std::pair<unsigned, Extent>> contracted;
  for (unsigned loop = 0; loop < given.size(); ++loop) {
    if (!given[loop]) {
      contracted.push_back({loop, getLoopExtent(op, loop)});
      continue;
    }
    if (given[loop].axes.empty())
      continue;
    SmallVector<const Axis *, 3> &side = sides[inRhs.test(loop) ? 1 : 0];
    const Axis *axis = given[loop].axes.front();
    if (given[loop].axes.size() != 1 || inLhs.test(loop) == inRhs.test(loop) || llvm::is_contained(sides[0], axis) ||
        llvm::is_contained(sides[1], axis))
      return {};
    side.push_back(axis);
  }
  auto isEarlier = [](const Axis *a, const Axis *b) { return a->order < b->order; };
  int64_t counts[2] = {1, 1};
  for (unsigned i = 0; i < 2; ++i) {
    llvm::sort(sides[i], isEarlier);
    for (const Axis *axis : sides[i])
      counts[i] *= axis->size;
  }
  if (counts[0] < kLeast || counts[1] < kLeast || counts[0] * counts[1] > kMostAccumulators || contracted.empty())
    return {};
  ++numDots;
  if (isEarlier(sides[1].front(), sides[0].front())) {
    std::swap(sides[0], sides[1]);
    std::swap(operands[0], operands[1]);
    std::swap(counts[0], counts[1]);
  }

  auto type = RankedTensorType::get({counts[0], counts[1]}, sum.getType());
  Indices loops = given;
  bool describe = false;
  /// The operands with `depth` between rows and columns, zeros where it is outside its extent.
  auto multiply = [&](const Axis *depth, Value total) -> Value {
    AxisBlock mask = blocks.getMask(depth);
    Value values[2];
    for (unsigned i = 0; i < 2; ++i) {
      describedAxis = describe && isLoaded(op, operands[i]) ? depth : nullptr;
      AxisBlock block = getBodyValue(op, operands[i], loops);
      describedAxis = nullptr;
      if (mask && !isLoaded(op, operands[i]))
        block = blocks.select(mask, block, blocks.zero(block.getElementType()));
      SmallVector<const Axis *, 3> order(sides[i]);
      order.insert(i == 0 ? order.end() : order.begin(), depth);
      SmallVector<int64_t, 2> shape{counts[i], depth->size};
      if (i == 1)
        std::swap(shape[0], shape[1]);
      values[i] = blocks.reshape(blocks.layOut(block, order), shape);
    }
    OpBuilder b = blocks.at(blocks.getLevel());
    auto dot = tt::DotOp::create(b, op.getLoc(), type, values[0], values[1], total);
    if (op->hasAttr("lamina.tf32"))
      dot->setAttr("inputPrecision", b.getI32IntegerAttr(kTf32));
    return dot;
  };
  SmallVector<const Axis *, 3> axes(sides[0]);
  llvm::append_range(axes, sides[1]);
  if (AxisBlock index = getOnlineIndex(op, contracted, axes)) {
    loops[contracted.front().first] = index;
    AxisBlock start = readOperand(op, *op.getDpsInitOperand(0), given);
    Value total = blocks.reshape(blocks.layOut(start, axes), {counts[0], counts[1]});
    return blocks.fromLayout(multiply(index.axes.front(), total), axes);
  }

  // One element of each contracted dimension but the longest, a block of that, which is the innermost loop.
  auto lengthOf = [](const Loop &loop) { return loop.extent.bound.value_or(INT64_MAX); };
  SmallVector<Loop> chunked;
  for (auto [loop, extent] : contracted)
    chunked.push_back({loop, extent, 1});
  auto longest = std::max_element(chunked.begin(), chunked.end(),
                                  [&](const Loop &a, const Loop &b) { return lengthOf(a) <= lengthOf(b); });
  std::rotate(longest, longest + 1, chunked.end());
  // Scores of attention take all of their depth at once.
  auto tile = kernel->getAttrOfType<DenseI64ArrayAttr>("kernel.tile");
  chunked.back().chunk = kernel->hasAttr("kernel.online") ? kMaxScoresDepth : tile ? tile[2] : options.depth;
  if (auto bound = chunked.back().extent.bound; bound && *bound < chunked.back().chunk)
    chunked.back().chunk = std::max<int64_t>(kLeast, llvm::PowerOf2Ceil(*bound));
  describe = wantsDescriptors(op, chunked);
  SmallVector<Value> carried{blocks.constant(cast<TypedAttr>(Builder(op.getContext()).getZeroAttr(type))).value};
  // The contracted axis lies between rows and columns, so that neither operand is transposed; no two axes of a block
  // have one place.
  double order = nextOrder;
  if (isEarlier(sides[0].back(), sides[1].front()))
    nextOrder = (sides[0].back()->order + sides[1].front()->order) / 2;
  else
    ++order;
  runLoops(chunked, loops, carried, [&](SmallVector<Value> &carried) {
    nextOrder = order;
    const Axis *depth = loops[chunked.back().dim].axes.front();
    carried = {multiply(depth, carried[0])};
  });
  AxisBlock result = blocks.fromLayout(carried[0], axes);
  AxisBlock init = readOperand(op, *op.getDpsInitOperand(0), given);
  return matchPattern(init.value, m_PosZeroFloat()) ? result : blocks.make<arith::AddFOp>(init, result);
}
