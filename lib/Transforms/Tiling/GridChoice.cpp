// The grid of a kernel: candidates are the dimensions that all outputs share, tiles follow from the kind of work.
#include "lib/Transforms/Tiling/GridChoice.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace lamina;

Exprs lamina::getArgumentSizes(kernel::FuncOp func, unsigned arg) {
  if (auto sizes = func.getArgAttrOfType<AffineMapAttr>(arg, "prim.sizes"))
    return Exprs(sizes.getValue().getResults());
  return getStaticSizes(cast<RankedTensorType>(func.getArgument(arg).getType()));
}

namespace {
/// Assumed where a size is only known at run time.
constexpr int64_t kUnknownSize = 512;

class Chooser {
public:
  Chooser(kernel::FuncOp func, DimClasses &classes, const TileTarget &target)
      : func(func), classes(classes), target(target) {}

  SmallVector<GridDim> run() {
    collectHeavyOps();
    collectCandidates();
    keepShared();
    if (target.blockTiles)
      tileBlocks();
    else if (linalg::LinalgOp op = findMarked("lamina.contraction"); op && func->hasAttr("kernel.online"))
      tileOnline(op);
    else if (linalg::LinalgOp op = findMarked("lamina.convolution"))
      tileConvolution(op);
    else if (linalg::LinalgOp op = findMarked("lamina.contraction"))
      tileContraction(op);
    else if (!heavy.empty())
      tileReduction();
    else
      tilePointwise();
    // A dimension of one tile is no grid dimension; but an online kernel has a program's loop even if it is one.
    auto isOneTile = [](const GridDim &dim) {
      auto size = dyn_cast<AffineConstantExpr>(dim.size);
      return dim.tile == 0 || (size && size.getValue() != 0 && dim.tile >= size.getValue());
    };
    bool isOnline = func->hasAttr("kernel.online") && !grid.empty() && llvm::all_of(grid, isOneTile);
    if (isOnline)
      grid.erase(grid.begin(), grid.end() - 1);
    else
      llvm::erase_if(grid, isOneTile);
    if (target.blockTiles)
      for (GridDim &dim : grid)
        dim.tile = llvm::bit_floor(static_cast<uint64_t>(dim.tile));
    auto isIn = [&](ArrayRef<unsigned> side, unsigned i) {
      return grid.size() > 1 && llvm::is_contained(side, grid[grid.size() - i].dimClass);
    };
    if ((isIn(rowClasses, 1) && isIn(columnClasses, 2)) || (isIn(rowClasses, 2) && isIn(columnClasses, 1)))
      func->setAttr("kernel.grouped", UnitAttr::get(func.getContext()));
    return grid;
  }

private:
  void collectHeavyOps();
  void collectCandidates();
  void keepShared();
  SmallVector<GridDim *> getTransposedDims();
  int64_t getWholeElements();
  void tilePointwise();
  void tileReduction();
  void tileContraction(linalg::LinalgOp op);
  void tileConvolution(linalg::LinalgOp op);
  void tileOnline(linalg::LinalgOp op);
  linalg::LinalgOp getConvolutionProduct();
  void tileProduct(linalg::LinalgOp op);
  void tileBlocks();
  linalg::LinalgOp findMarked(StringRef mark);
  SmallVector<unsigned> getLoopClasses(linalg::LinalgOp op) {
    SmallVector<unsigned> result;
    for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
      result.push_back(classes.getClass(op, loop));
    return result;
  }
  std::optional<int64_t> getStatic(AffineExpr size) {
    if (auto constant = dyn_cast<AffineConstantExpr>(size))
      return constant.getValue();
    return std::nullopt;
  }
  int64_t getEstimate(AffineExpr size) { return getStatic(size).value_or(kUnknownSize); }
  /// The least number of programs that keeps all threads busy to the end.
  int64_t getWantedPrograms() { return target.threads == 1 ? 1 : 2 * target.threads; }

  kernel::FuncOp func;
  DimClasses &classes;
  const TileTarget &target;
  SmallVector<linalg::LinalgOp> heavy;
  SmallVector<GridDim> grid;
  /// Dimensions of the sides of a matrix product in blocks.
  SmallVector<unsigned> rowClasses, columnClasses;
};

linalg::LinalgOp Chooser::findMarked(StringRef mark) {
  for (linalg::LinalgOp op : heavy)
    if (op->hasAttr(mark))
      return op;
  return nullptr;
}

/// Ops with reductions: those that a program must not repeat for another's sake.
void Chooser::collectHeavyOps() {
  for (auto op : func.getBody().front().getOps<linalg::LinalgOp>())
    if (op.getNumReductionLoops())
      heavy.push_back(op);
}

void Chooser::collectCandidates() {
  Operation *terminator = func.getBody().front().getTerminator();
  ValueRange results = terminator->getOperands();
  if (results.empty())
    return;
  unsigned widest = 0;
  auto rankOf = [](Value value) { return cast<RankedTensorType>(value.getType()).getRank(); };
  for (unsigned i = 1; i < results.size(); ++i)
    if (rankOf(results[i]) > rankOf(results[widest]))
      widest = i;
  auto classesOf = [&](Value value) {
    SmallVector<unsigned> result;
    for (unsigned dim = 0; dim < rankOf(value); ++dim)
      result.push_back(classes.getClass(value, dim));
    return result;
  };
  Exprs sizes = getArgumentSizes(func, func.getNumIns() + widest);
  for (auto [dim, dimClass] : llvm::enumerate(classesOf(results[widest]))) {
    bool isShared = llvm::all_of(results, [&](Value result) { return llvm::count(classesOf(result), dimClass) == 1; });
    if (isShared && !classes.isWhole(dimClass))
      grid.push_back({dimClass, sizes[dim]});
  }
}

/// Drops dimensions over which a program would repeat a reduction that has other grid dimensions.
void Chooser::keepShared() {
  for (linalg::LinalgOp op : heavy) {
    SmallVector<unsigned> loops = getLoopClasses(op);
    auto isIn = [&](const GridDim &dim) { return llvm::is_contained(loops, dim.dimClass); };
    if (llvm::any_of(grid, isIn))
      llvm::erase_if(grid, [&](const GridDim &dim) { return !isIn(dim); });
  }
}

/// Dimensions other than the last along which some input is contiguous.
SmallVector<GridDim *> Chooser::getTransposedDims() {
  SmallVector<GridDim *> result;
  for (auto op : func.getBody().front().getOps<linalg::LinalgOp>())
    for (OpOperand *operand : op.getDpsInputOperands()) {
      AffineMap map = op.getMatchingIndexingMap(operand);
      auto last = map.getNumResults() > 1 ? dyn_cast<AffineDimExpr>(map.getResults().back()) : nullptr;
      if (!last)
        continue;
      unsigned dimClass = classes.getClass(op, last.getPosition());
      for (GridDim &dim : MutableArrayRef<GridDim>(grid).drop_back())
        if (dim.dimClass == dimClass && map.isFunctionOfDim(last.getPosition()) && !llvm::is_contained(result, &dim))
          result.push_back(&dim);
    }
  return result;
}

/// Whole inner dimensions, up to the number of elements that a program is given. Where an input is contiguous along
/// another dimension, a program takes whole cache lines of that one too.
void Chooser::tilePointwise() {
  int64_t left = std::max<int64_t>(1, target.pointwiseElements / getWholeElements());
  if (grid.size() > 1)
    for (GridDim *dim : getTransposedDims()) {
      dim->tile = std::max<int64_t>(1, std::min(getStatic(dim->size).value_or(left), 4 * target.vectorLanes));
      left = std::max<int64_t>(1, left / dim->tile);
    }
  for (GridDim &dim : llvm::reverse(grid)) {
    if (dim.tile)
      continue;
    int64_t size = getStatic(dim.size).value_or(left);
    dim.tile = std::max<int64_t>(1, std::min(size, left));
    left /= dim.tile;
  }
}

/// The most elements of an output along dimensions that are not the grid's.
int64_t Chooser::getWholeElements() {
  int64_t whole = 1;
  for (unsigned i = 0; i < func.getOuts(); ++i) {
    Value result = func.getBody().front().getTerminator()->getOperand(i);
    int64_t elements = 1;
    for (auto [dim, size] : llvm::enumerate(getArgumentSizes(func, func.getNumIns() + i)))
      if (llvm::none_of(grid, [&](const GridDim &each) { return each.dimClass == classes.getClass(result, dim); }))
        elements *= std::max<int64_t>(1, getEstimate(size));
    whole = std::max(whole, elements);
  }
  return whole;
}

/// Along rows: one row, or several short ones. Across rows: a block of columns, so that whole vectors are reduced at
/// once.
void Chooser::tileReduction() {
  if (grid.empty())
    return;
  int64_t work = 1;
  bool isAcross = false;
  for (linalg::LinalgOp op : heavy) {
    int64_t elements = 1;
    SmallVector<int64_t> ranges = op.getStaticLoopRanges();
    for (auto [loop, dimClass] : llvm::enumerate(getLoopClasses(op)))
      if (llvm::none_of(grid, [&](const GridDim &dim) { return dim.dimClass == dimClass; }))
        elements *= ranges[loop] == ShapedType::kDynamic ? kUnknownSize : std::max<int64_t>(1, ranges[loop]);
    work = std::max(work, elements);
    for (OpOperand *operand : op.getDpsInputOperands()) {
      AffineMap map = op.getMatchingIndexingMap(operand);
      if (map.getNumResults() == 0)
        continue;
      auto last = dyn_cast<AffineDimExpr>(map.getResults().back());
      isAcross |= last && classes.getClass(op, last.getPosition()) == grid.back().dimClass &&
                  map.getNumResults() > op.getMatchingIndexingMap(op.getDpsInitOperand(0)).getNumResults();
    }
  }
  int64_t left = std::max<int64_t>(1, target.reduceElements / work);
  if (isAcross)
    left = std::clamp<int64_t>(left, 4 * target.vectorLanes, 16 * target.vectorLanes);
  for (GridDim &dim : llvm::reverse(grid)) {
    dim.tile = std::max<int64_t>(1, std::min(getStatic(dim.size).value_or(left), left));
    left = isAcross ? 1 : left / dim.tile;
  }
}

/// One batch entry; as many columns as keep the right operand's panel in half of the L2 cache; all rows, if the columns
/// give enough programs, because each program packs its panel once.
void Chooser::tileContraction(linalg::LinalgOp op) {
  AffineMap lhs = op.getIndexingMapsArray()[0], rhs = op.getIndexingMapsArray()[1];
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  int64_t depth = 1;
  for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray()))
    if (kind == utils::IteratorType::reduction)
      depth *= ranges[loop] == ShapedType::kDynamic ? kUnknownSize : std::max<int64_t>(1, ranges[loop]);
  SmallVector<unsigned> loops = getLoopClasses(op);
  auto roleOf = [&](const GridDim &dim) {
    bool inLhs = false, inRhs = false;
    for (auto [loop, dimClass] : llvm::enumerate(loops))
      if (dimClass == dim.dimClass) {
        inLhs |= lhs.isFunctionOfDim(loop);
        inRhs |= rhs.isFunctionOfDim(loop);
      }
    return std::make_pair(inLhs, inRhs);
  };
  int64_t wanted = getWantedPrograms(), programs = 1;
  SmallVector<GridDim *> rows, columns;
  for (GridDim &dim : grid) {
    auto [inLhs, inRhs] = roleOf(dim);
    if (inLhs == inRhs) {
      dim.tile = 1;
      programs *= getEstimate(dim.size);
    } else {
      (inLhs ? rows : columns).push_back(&dim);
    }
  }
  // Only the last of several row or column dimensions is cut; programs take one of each of the others.
  auto takeOuter = [&](SmallVector<GridDim *> &dims) {
    while (dims.size() > 1) {
      dims.front()->tile = 1;
      programs *= getEstimate(dims.front()->size);
      dims.erase(dims.begin());
    }
  };
  int64_t unit = 4 * target.vectorLanes;
  // Columns that come in panels: inner ones are whole, and the outermost counts panels.
  int64_t panel = 1;
  while (columns.size() > 1 && getStatic(columns.back()->size) && panel * *getStatic(columns.back()->size) <= 4 * unit)
    panel *= getStatic(columns.pop_back_val()->size).value();
  takeOuter(columns);
  if (!columns.empty()) {
    GridDim &dim = *columns.front();
    int64_t step = panel == 1 ? unit : 1;
    int64_t bytes = std::max<int64_t>(1, getElementTypeOrSelf(op->getOperand(1).getType()).getIntOrFloatBitWidth() / 8);
    int64_t fits =
        std::max<int64_t>(step, target.l2Bytes / 2 / std::max<int64_t>(1, depth * bytes * panel) / step * step);
    int64_t share = llvm::alignTo(
        llvm::divideCeil(getEstimate(dim.size), llvm::divideCeil(wanted, std::max<int64_t>(1, programs))), step);
    dim.tile = std::min(fits, std::max(step, share));
    programs *= llvm::divideCeil(getEstimate(dim.size), dim.tile);
  }
  if (rows.size() > 1 && programs < wanted)
    takeOuter(rows);
  if (rows.size() == 1 && programs < wanted) {
    GridDim &dim = *rows.front();
    int64_t parts = llvm::divideCeil(wanted, std::max<int64_t>(1, programs));
    dim.tile = std::max<int64_t>(32, llvm::alignTo(llvm::divideCeil(getEstimate(dim.size), parts), 8));
  }
}

/// Rows of one batch entry: as many as share each block of columns without leaving threads idle.
void Chooser::tileOnline(linalg::LinalgOp op) {
  constexpr int64_t most = 64, least = 16;
  AffineMap rhs = op.getIndexingMapsArray()[1];
  GridDim *rows = nullptr;
  int64_t programs = 1;
  for (GridDim &dim : grid) {
    dim.tile = 1;
    programs *= getEstimate(dim.size);
    bool inRhs = false;
    for (auto [loop, dimClass] : llvm::enumerate(getLoopClasses(op)))
      inRhs |= dimClass == dim.dimClass && rhs.isFunctionOfDim(loop);
    if (!inRhs)
      rows = &dim;
  }
  if (!rows)
    return;
  rows->tile = std::clamp(llvm::bit_floor(static_cast<uint64_t>(programs / getWantedPrograms() + 1)),
                          static_cast<uint64_t>(least), static_cast<uint64_t>(most));
}

/// The convolution, if it is a matrix product of output channels by places: not one with few channels in a group, nor
/// one that is not summed in f32.
linalg::LinalgOp Chooser::getConvolutionProduct() {
  constexpr int64_t kLeastChannels = 16;
  linalg::LinalgOp op = findMarked("lamina.convolution");
  if (!op)
    return nullptr;
  AffineMap image = op.getIndexingMapsArray()[0], weights = op.getIndexingMapsArray()[1];
  int64_t channels = 0;
  for (GridDim &dim : grid)
    for (auto [loop, dimClass] : llvm::enumerate(getLoopClasses(op)))
      if (dimClass == dim.dimClass && weights.isFunctionOfDim(loop) && !image.isFunctionOfDim(loop))
        channels = getEstimate(dim.size);
  bool isSummed = getElementTypeOrSelf(op->getResult(0).getType()).isF32();
  return channels >= kLeastChannels && isSummed ? op : nullptr;
}

/// A block of rows by a block of columns of one batch entry.
void Chooser::tileProduct(linalg::LinalgOp op) {
  AffineMap lhs = op.getIndexingMapsArray()[0], rhs = op.getIndexingMapsArray()[1];
  SmallVector<unsigned> loops = getLoopClasses(op);
  SmallVector<GridDim *> rows, columns;
  BlockProduct product{1, 1, 1, 1, 4};
  for (GridDim &dim : llvm::reverse(grid)) {
    bool inLhs = false, inRhs = false;
    for (auto [loop, dimClass] : llvm::enumerate(loops))
      if (dimClass == dim.dimClass) {
        inLhs |= lhs.isFunctionOfDim(loop);
        inRhs |= rhs.isFunctionOfDim(loop);
      }
    int64_t size = std::max<int64_t>(1, getEstimate(dim.size));
    dim.tile = 1;
    if (inLhs == inRhs) {
      product.batch *= size;
      continue;
    }
    (inLhs ? rows : columns).push_back(&dim);
    (inLhs ? rowClasses : columnClasses).push_back(dim.dimClass);
    (inLhs ? product.rows : product.columns) *= size;
  }
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray()))
    if (kind == utils::IteratorType::reduction)
      product.depth *= ranges[loop] == ShapedType::kDynamic ? kUnknownSize : std::max<int64_t>(1, ranges[loop]);
  for (Value input : {op->getOperand(0), op->getOperand(1)})
    product.elementBytes = std::min<int64_t>(
        product.elementBytes, std::max(1u, getElementTypeOrSelf(input.getType()).getIntOrFloatBitWidth() / 8));
  bool isOnline = func->hasAttr("kernel.online");
  if (isOnline)
    for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray()))
      if (kind == utils::IteratorType::parallel && !lhs.isFunctionOfDim(loop) &&
          llvm::none_of(grid, [&](const GridDim &dim) { return dim.dimClass == loops[loop]; }))
        product.columns *= ranges[loop] == ShapedType::kDynamic ? kUnknownSize : std::max<int64_t>(1, ranges[loop]);

  auto given = func->getAttrOfType<DenseI64ArrayAttr>("kernel.tile");
  BlockTile tile = given ? BlockTile{given[0], given[1], given[2]}
                         : chooseBlockTile(product, target.machine, isOnline ? target.onlineElements : 0);
  func->setAttr("kernel.tile", DenseI64ArrayAttr::get(func.getContext(), {tile.rows, tile.columns, tile.depth}));
  // Each side's inner dimensions, until there are enough elements.
  auto cut = [&](ArrayRef<GridDim *> side, int64_t left) {
    for (GridDim *dim : side) {
      dim->tile = left;
      left = std::max<int64_t>(1, left / llvm::PowerOf2Ceil(getStatic(dim->size).value_or(left)));
    }
  };
  cut(rows, tile.rows);
  cut(columns, tile.columns);
}

/// Matrix products in blocks; else as for other targets, with tiles rounded down to powers of two.
void Chooser::tileBlocks() {
  linalg::LinalgOp op = findMarked("lamina.contraction");
  if (!op)
    op = getConvolutionProduct();
  if (op)
    return tileProduct(op);
  int64_t left = target.pointwiseElements;
  if (findMarked("lamina.convolution"))
    left /= 8;
  else if (!heavy.empty())
    return tileReduction();
  // What every program has whole counts too.
  left = std::max<int64_t>(1, left / getWholeElements());
  for (GridDim &dim : llvm::reverse(grid)) {
    dim.tile = std::max<int64_t>(1, std::min(getStatic(dim.size).value_or(left), left));
    left = std::max<int64_t>(1, left / llvm::PowerOf2Ceil(dim.tile));
  }
}

/// One image, all channels, and a block of output rows.
void Chooser::tileConvolution(linalg::LinalgOp op) {
  SmallVector<unsigned> loops = getLoopClasses(op);
  unsigned numParallel = op.getNumParallelLoops(), numReduction = op.getNumReductionLoops();
  unsigned firstSpatial = numParallel - (numReduction - 1);
  int64_t wanted = getWantedPrograms(), programs = 1, channels = 1;
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  for (unsigned loop : llvm::seq(1u, firstSpatial))
    channels *= ranges[loop] == ShapedType::kDynamic ? kUnknownSize : ranges[loop];
  for (GridDim &dim : grid)
    if (loops[0] == dim.dimClass) {
      dim.tile = 1;
      programs *= getEstimate(dim.size);
    }
  for (GridDim &dim : grid) {
    if (loops[firstSpatial] != dim.dimClass)
      continue;
    int64_t rowBytes = 4 * channels;
    for (unsigned loop : llvm::seq(firstSpatial + 1, numParallel))
      rowBytes *= ranges[loop] == ShapedType::kDynamic ? 64 : std::max<int64_t>(1, ranges[loop]);
    int64_t size = getStatic(dim.size).value_or(64);
    int64_t fits = target.l2Bytes / 4 / std::max<int64_t>(1, rowBytes);
    int64_t share = llvm::divideCeil(size, llvm::divideCeil(wanted, std::max<int64_t>(1, programs)));
    // Neighbours compute the rows that both read, so that a block is not too thin.
    dim.tile = std::max<int64_t>(std::min<int64_t>(4, std::max<int64_t>(1, size)), std::min(fits, share));
  }
}
} // namespace

SmallVector<GridDim> lamina::chooseGrid(kernel::FuncOp func, DimClasses &classes, const TileTarget &target) {
  return Chooser(func, classes, target).run();
}
