// Contractions: a loop along the contracted dimension around tt.dot.
#include "lib/Conversion/TiledToTriton/ProgramEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace lamina;

static constexpr int64_t kMaxScoresDepth = 256;

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
  const Axis *sides[2] = {};
  SmallVector<std::pair<unsigned, Extent>> contracted;
  for (unsigned loop = 0; loop < given.size(); ++loop) {
    if (!given[loop]) {
      contracted.push_back({loop, getLoopExtent(op, loop)});
      continue;
    }
    if (given[loop].axes.empty())
      continue;
    const Axis *&side = sides[inRhs.test(loop) ? 1 : 0];
    if (given[loop].axes.size() != 1 || inLhs.test(loop) == inRhs.test(loop) || side)
      return {};
    side = given[loop].axes.front();
  }
  if (!sides[0] || !sides[1] || sides[0]->size < 16 || sides[1]->size < 16 || contracted.empty())
    return {};
  ++numDots;
  if (sides[0]->order > sides[1]->order) {
    std::swap(sides[0], sides[1]);
    std::swap(operands[0], operands[1]);
  }

  auto type = RankedTensorType::get({sides[0]->size, sides[1]->size}, sum.getType());
  Indices loops = given;
  /// The operands with `depth` between rows and columns, zeros where it is outside its extent.
  auto multiply = [&](const Axis *depth, Value total) -> Value {
    AxisBlock mask = blocks.getMask(depth);
    Value values[2];
    for (unsigned i = 0; i < 2; ++i) {
      AxisBlock block = getBodyValue(op, operands[i], loops);
      if (mask && !isLoaded(op, operands[i]))
        block = blocks.select(mask, block, blocks.zero(block.getElementType()));
      SmallVector<const Axis *, 2> order{sides[0], depth};
      if (i == 1)
        order = {depth, sides[1]};
      values[i] = blocks.layOut(block, order);
    }
    OpBuilder b = blocks.at(blocks.getLevel());
    return tt::DotOp::create(b, op.getLoc(), type, values[0], values[1], total);
  };
  SmallVector<const Axis *, 3> axes{sides[0], sides[1]};
  if (AxisBlock index = getOnlineIndex(op, contracted, axes)) {
    loops[contracted.front().first] = index;
    AxisBlock total = blocks.expand(readOperand(op, *op.getDpsInitOperand(0), given), axes);
    return {multiply(index.axes.front(), total.value), axes, blocks.getLevel()};
  }

  // One element of each contracted dimension but the last, a block of that.
  SmallVector<Loop> chunked;
  for (auto [loop, extent] : contracted)
    chunked.push_back({loop, extent, 1});
  // Scores of attention take all of their depth at once.
  chunked.back().chunk = kernel->hasAttr("kernel.online") ? kMaxScoresDepth : options.depth;
  if (auto bound = chunked.back().extent.bound; bound && *bound < chunked.back().chunk)
    chunked.back().chunk = std::max<int64_t>(16, llvm::PowerOf2Ceil(*bound));
  SmallVector<Value> carried{blocks.constant(cast<TypedAttr>(Builder(op.getContext()).getZeroAttr(type))).value};
  // The contracted axis lies between rows and columns, so that neither operand is transposed.
  double order = nextOrder;
  nextOrder = (sides[0]->order + sides[1]->order) / 2;
  runLoops(chunked, loops, carried, [&](SmallVector<Value> &carried) {
    nextOrder = order;
    const Axis *depth = loops[chunked.back().dim].axes.front();
    carried = {multiply(depth, carried[0])};
  });
  AxisBlock result{carried[0], axes, blocks.getLevel()};
  AxisBlock init = readOperand(op, *op.getDpsInitOperand(0), given);
  return matchPattern(init.value, m_PosZeroFloat()) ? result : blocks.make<arith::AddFOp>(init, result);
}
