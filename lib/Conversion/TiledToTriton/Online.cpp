// Online reductions: the loop of a tiled kernel that carries totals from block to block.
#include "lib/Conversion/TiledToTriton/ProgramEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace lamina;

unsigned ProgramEmitter::getLoopLevel(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return loopLevels.lookup(argument.getOwner()->getParentOp());
  Operation *op = value.getDefiningOp();
  if (loopLevels.empty() || !loopLevels.contains(op->getParentOp()))
    return 0;
  auto known = valueLevels.find(op);
  if (known != valueLevels.end())
    return known->second;
  llvm::SetVector<Value> read(op->getOperands().begin(), op->getOperands().end());
  getUsedValuesDefinedAbove(op->getRegions(), read);
  unsigned level = 0;
  for (Value each : read)
    level = std::max(level, getLoopLevel(each));
  return valueLevels[op] = level;
}

AxisBlock ProgramEmitter::getOnlineIndex(linalg::GenericOp op, ArrayRef<std::pair<unsigned, Extent>> reduced,
                                         ArrayRef<const Axis *> used) {
  if (!op->hasAttr("kernel.online") || reduced.size() != 1)
    return {};
  if (onlineAxis)
    return blocks.getIndex(onlineAxis);
  // A loop of one block is none.
  const Extent &extent = reduced.front().second;
  AxisBlock index = extent.bound ? getWhole(extent, used) : AxisBlock();
  return index && !index.axes.empty() ? index : AxisBlock();
}

/// The loop's totals, when one of them is asked for at `given`. All are carried, each as a block of its own dimensions,
/// of which `kernel.online` says which of the widest total's they are.
AxisBlock ProgramEmitter::readOnline(scf::ForOp loop, unsigned asked, const Indices &given) {
  Type element = getElementTypeOrSelf(loop.getResult(asked).getType());
  auto places = loop->getAttrOfType<ArrayAttr>("kernel.online");
  if (!places || places.size() != loop.getNumResults())
    return fail(loop, "has no form in Triton IR", element);
  auto placesOf = [&](unsigned total) { return cast<DenseI64ArrayAttr>(places[total]).asArrayRef(); };
  // The index of each dimension of the widest total.
  Indices all;
  for (unsigned total = 0; total < places.size(); ++total)
    for (auto [dim, place] : llvm::enumerate(placesOf(total))) {
      all.resize(std::max<size_t>(all.size(), place + 1));
      if (total == asked)
        all[place] = given[dim];
    }
  auto usedAxes = [&] {
    SmallVector<AxisBlock> known;
    for (const AxisBlock &index : all)
      if (index)
        known.push_back(index);
    return blocks.join(known);
  };
  for (unsigned total = 0; total < places.size(); ++total)
    for (auto [dim, place] : llvm::enumerate(placesOf(total)))
      if (!all[place]) {
        Extent extent = getDimExtent(loop.getInitArgs()[total], dim);
        if (!extent.bound)
          return fail(loop, "carries a total of unknown size", element);
        all[place] = getWhole(extent, usedAxes());
      }
  SmallVector<Indices> indices;
  SmallVector<SmallVector<const Axis *, 3>> axes;
  SmallVector<Value> inits;
  for (unsigned total = 0; total < places.size(); ++total) {
    indices.emplace_back();
    for (int64_t place : placesOf(total))
      indices.back().push_back(all[place]);
    axes.push_back(blocks.join(indices.back()));
    inits.push_back(blocks.expand(read(loop.getInitArgs()[total], indices.back()), axes.back()).value);
  }

  AxisBlock begin = getScalar(loop.getLowerBound()), end = getScalar(loop.getUpperBound());
  int64_t step = *getConstantIntValue(loop.getStep());
  AxisBlock extent = blocks.make<arith::SubIOp>(end, begin);
  scf::ForOp made = blocks.enterLoop(extent, step, inits);
  unsigned level = blocks.getLevel();
  loopLevels[loop] = level;
  valueLevels.clear();
  scalars[loop.getInductionVar()] = blocks.add(begin, {made.getInductionVar(), {}, level});
  for (unsigned total = 0; total < places.size(); ++total) {
    AxisBlock carried{made.getRegionIterArgs()[total], axes[total], level};
    blocks.remember(getKey(loop.getRegionIterArgs()[total], indices[total]), level, [&] { return carried; });
  }
  // One axis for the block of the reduced dimension, between those of rows and columns.
  const Axis *outerAxis = onlineAxis;
  linalg::GenericOp first;
  loop.getBody()->walk([&](linalg::GenericOp op) {
    if (!first && op->hasAttr("kernel.online"))
      first = op;
  });
  unsigned reduced = 0;
  while (first.getIteratorTypesArray()[reduced] != utils::IteratorType::reduction)
    ++reduced;
  Extent width = getLoopExtent(first, reduced);
  int64_t size = getBlockSize(width);
  double low = -1, high = -1;
  for (const Axis *axis : blocks.join(all)) {
    low = high;
    high = axis->order;
  }
  bool isFull = first.getStaticLoopRanges()[reduced] == size;
  onlineAxis = blocks.makeAxis(size, (low + high) / 2, {}, isFull ? AxisBlock() : width.size);

  SmallVector<Value> yields;
  for (auto [total, yielded] : llvm::enumerate(loop.getBody()->getTerminator()->getOperands()))
    yields.push_back(blocks.expand(read(yielded, indices[total]), axes[total]).value);
  onlineAxis = outerAxis;
  loopLevels.erase(loop);
  valueLevels.clear();
  blocks.leaveLoop(yields);
  AxisBlock result;
  for (unsigned total = 0; total < places.size(); ++total) {
    AxisBlock block{made.getResult(total), axes[total], blocks.getLevel()};
    if (total == asked)
      result = block;
    else
      blocks.remember(getKey(loop.getResult(total), indices[total]), blocks.getLevel(), [&] { return block; });
  }
  return result;
}
