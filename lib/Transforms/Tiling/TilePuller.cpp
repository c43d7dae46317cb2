// Tiles on demand: linalg ops by their indexing maps, views by arithmetic on offsets.
#include "lib/Transforms/Tiling/TilePuller.h"
#include "lib/Conversion/PrimToLinalg/Scan.h"
#include "lib/Conversion/PrimToLinalg/Sort.h"
#include "lib/Transforms/Tiling/DimClasses.h"
#include "lib/Transforms/Tiling/GridChoice.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace lamina;

// ---- sizes

OpFoldResult TilePuller::getSize(AffineExpr expr) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return builder.getIndexAttr(constant.getValue());
  OpFoldResult &known = knownSizes[expr];
  if (known)
    return known;
  SmallVector<OpFoldResult> operands;
  unsigned count = 0;
  expr.walk([&](AffineExpr e) {
    if (auto symbol = dyn_cast<AffineSymbolExpr>(e))
      count = std::max(count, symbol.getPosition() + 1);
  });
  for (unsigned i = 0; i < count; ++i) {
    Value &symbol = symbols[i];
    if (!symbol) {
      OpBuilder entry = OpBuilder::atBlockBegin(&func.getBody().front());
      symbol = kernel::SymbolOp::create(entry, func.getLoc(), entry.getIndexType(), i);
    }
    operands.push_back(symbol);
  }
  return known =
             affine::makeComposedFoldedAffineApply(builder, func.getLoc(), AffineMap::get(0, count, expr), operands);
}

OpFoldResult TilePuller::getDimSize(Value value, unsigned dim) {
  auto type = cast<RankedTensorType>(value.getType());
  if (!type.isDynamicDim(dim))
    return builder.getIndexAttr(type.getDimSize(dim));
  if (auto arg = dyn_cast<BlockArgument>(value); arg && arg.getOwner()->getParentOp() == func)
    return getSize(getArgumentSizes(func, arg.getArgNumber())[dim]);
  Operation *op = value.getDefiningOp();
  if (auto empty = dyn_cast_or_null<tensor::EmptyOp>(op))
    return empty.getMixedSizes()[dim];
  if (auto linalgOp = dyn_cast_or_null<linalg::LinalgOp>(op))
    return getDimSize(linalgOp.getDpsInitOperand(cast<OpResult>(value).getResultNumber())->get(), dim);
  if (auto loop = dyn_cast_or_null<scf::ForOp>(op))
    return getDimSize(loop.getInitArgs()[cast<OpResult>(value).getResultNumber()], dim);
  if (auto expand = dyn_cast_or_null<tensor::ExpandShapeOp>(op))
    return expand.getMixedOutputShape()[dim];
  if (auto extract = dyn_cast_or_null<tensor::ExtractSliceOp>(op)) {
    llvm::SmallBitVector dropped = extract.getDroppedDims();
    SmallVector<OpFoldResult> sizes = extract.getMixedSizes();
    for (unsigned source = 0, kept = 0; source < sizes.size(); ++source)
      if (!dropped.test(source) && kept++ == dim)
        return sizes[source];
  }
  if (auto collapse = dyn_cast_or_null<tensor::CollapseShapeOp>(op)) {
    OpFoldResult product = builder.getIndexAttr(1);
    AffineExpr a, b;
    bindSymbols(builder.getContext(), a, b);
    for (int64_t source : collapse.getReassociationIndices()[dim])
      product = affine::makeComposedFoldedAffineApply(builder, value.getLoc(), a * b,
                                                      {product, getDimSize(collapse.getSrc(), source)});
    return product;
  }
  return tensor::getMixedSize(builder, value.getLoc(), value, dim);
}

Tile TilePuller::getWhole(Value value) {
  Tile tile;
  for (int64_t dim = 0; dim < cast<RankedTensorType>(value.getType()).getRank(); ++dim) {
    tile.offsets.push_back(builder.getIndexAttr(0));
    tile.sizes.push_back(getDimSize(value, dim));
  }
  return tile;
}

// ---- tiles

Value TilePuller::slice(Value tensor, const Tile &tile) {
  if (tile == getWhole(tensor))
    return tensor;
  SmallVector<OpFoldResult> strides(tile.offsets.size(), builder.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(builder, tensor.getLoc(), tensor, tile.offsets, tile.sizes, strides);
}

Value TilePuller::getTile(Value value, const Tile &tile) {
  for (auto &[at, result] : known.lookup(value))
    if (at == tile)
      return result;
  Value result = compute(value, tile);
  known[value].push_back({tile, result});
  return result;
}

Value TilePuller::compute(Value value, const Tile &tile) {
  Operation *op = value.getDefiningOp();
  if (auto extract = dyn_cast_or_null<tensor::ExtractSliceOp>(op))
    return tileSlice(value, tile);
  if (isExternal(value))
    return slice(value, tile);
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    return tileLinalg(linalgOp, cast<OpResult>(value).getResultNumber(), tile);
  if (isa<tensor::EmptyOp>(op))
    return tileInit(value, value, tile);
  if (auto scan = matchScan(op)) {
    auto [info, operand] = *scan;
    Value init = tileInit(cast<scf::ForOp>(op).getInitArgs()[1], value, tile);
    return buildScan(builder, op->getLoc(), getTile(operand, tile), info, init);
  }
  if (auto sort = matchSort(op)) {
    auto [info, operand] = *sort;
    Value init = tileInit(cast<scf::ForOp>(op).getInitArgs()[0], value, tile);
    return buildSort(builder, op->getLoc(), getTile(operand, tile), info, init);
  }
  return tileReshape(op, tile);
}

/// The slice of the source that the tile covers; of an argument in one op.
Value TilePuller::tileSlice(Value value, const Tile &tile) {
  auto extract = cast<tensor::ExtractSliceOp>(value.getDefiningOp());
  Location loc = extract.getLoc();
  AffineExpr a, b, c;
  bindSymbols(builder.getContext(), a, b, c);
  auto apply = [&](AffineExpr expr, ArrayRef<OpFoldResult> operands) {
    return affine::makeComposedFoldedAffineApply(builder, loc, expr, operands);
  };
  llvm::SmallBitVector dropped = extract.getDroppedDims();
  Tile inner, inSource;
  SmallVector<OpFoldResult> strides = extract.getMixedStrides();
  unsigned next = 0;
  for (auto [dim, offset] : llvm::enumerate(extract.getMixedOffsets())) {
    OpFoldResult zero = builder.getIndexAttr(0), one = builder.getIndexAttr(1);
    OpFoldResult at = dropped.test(dim) ? zero : tile.offsets[next], size = dropped.test(dim) ? one : tile.sizes[next];
    next += !dropped.test(dim);
    inner.offsets.push_back(zero);
    inner.sizes.push_back(size);
    inSource.offsets.push_back(apply(a + b * c, {offset, at, strides[dim]}));
    inSource.sizes.push_back(isConstantIntValue(strides[dim], 1) ? size : apply((a - 1) * b + 1, {size, strides[dim]}));
  }
  SmallVector<int64_t> shape;
  for (OpFoldResult size : tile.sizes)
    shape.push_back(getConstantIntValue(size).value_or(ShapedType::kDynamic));
  auto type = RankedTensorType::get(shape, extract.getType().getElementType());
  if (isExternal(extract.getSource()) && !extract.getSource().getDefiningOp<tensor::ExtractSliceOp>())
    return tensor::ExtractSliceOp::create(builder, loc, type, extract.getSource(), inSource.offsets, inner.sizes,
                                          strides);
  Value source = getTile(extract.getSource(), inSource);
  if (source.getType() == type &&
      llvm::all_of(strides, [](OpFoldResult stride) { return isConstantIntValue(stride, 1); }))
    return source;
  return tensor::ExtractSliceOp::create(builder, loc, type, source, inner.offsets, inner.sizes, strides);
}

/// Groups of several dimensions are whole, by the choice of the grid; other dimensions pass through.
Value TilePuller::tileReshape(Operation *op, const Tile &tile) {
  Location loc = op->getLoc();
  Value source = op->getOperand(0);
  Tile inner = getWhole(source);
  auto typeOf = [&](Type elementType) {
    SmallVector<int64_t> shape;
    for (OpFoldResult size : tile.sizes)
      shape.push_back(getConstantIntValue(size).value_or(ShapedType::kDynamic));
    return RankedTensorType::get(shape, elementType);
  };
  Type elementType = getElementTypeOrSelf(source.getType());
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
    auto groups = expand.getReassociationIndices();
    for (auto [dim, group] : llvm::enumerate(groups))
      if (group.size() == 1) {
        inner.offsets[dim] = tile.offsets[group.front()];
        inner.sizes[dim] = tile.sizes[group.front()];
      }
    return tensor::ExpandShapeOp::create(builder, loc, typeOf(elementType), getTile(source, inner), groups, tile.sizes);
  }
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
    auto groups = collapse.getReassociationIndices();
    for (auto [dim, group] : llvm::enumerate(groups))
      if (group.size() == 1) {
        inner.offsets[group.front()] = tile.offsets[dim];
        inner.sizes[group.front()] = tile.sizes[dim];
      }
    return tensor::CollapseShapeOp::create(builder, loc, getTile(source, inner), groups);
  }
  return tensor::CastOp::create(builder, loc, typeOf(elementType), getTile(cast<tensor::CastOp>(op).getSource(), tile));
}

/// A place for the tile of `value`: its destination where it is one of the kernel's outputs. `init` is what it starts
/// from.
Value TilePuller::tileInit(Value init, Value value, const Tile &tile) {
  if (auto fill = init.getDefiningOp<linalg::FillOp>()) {
    Value place = tileInit(fill.getOutputs().front(), value, tile);
    return linalg::FillOp::create(builder, fill.getLoc(), fill.getInputs().front(), place).getResult(0);
  }
  if (!init.getDefiningOp<tensor::EmptyOp>())
    return getTile(init, tile);
  for (Destination &destination : destinations)
    if (destination.value == value && destination.tile == tile)
      return destination.tensor;
  return tensor::EmptyOp::create(builder, init.getLoc(), tile.sizes, getElementTypeOrSelf(init.getType()));
}

Tile TilePuller::mapTile(AffineMap map, const Tile &loops) {
  Tile tile;
  for (AffineExpr expr : map.getResults()) {
    if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
      tile.offsets.push_back(loops.offsets[dim.getPosition()]);
      tile.sizes.push_back(loops.sizes[dim.getPosition()]);
      continue;
    }
    // From the first to the last position that is read; coefficients are positive.
    AffineMap at = AffineMap::get(map.getNumDims(), 0, expr);
    SmallVector<AffineExpr> lasts, zeros;
    for (unsigned dim = 0; dim < map.getNumDims(); ++dim) {
      lasts.push_back(builder.getAffineDimExpr(dim) - 1);
      zeros.push_back(builder.getAffineConstantExpr(0));
    }
    AffineExpr extent = expr.replaceDims(lasts) - expr.replaceDims(zeros) + 1;
    tile.offsets.push_back(affine::makeComposedFoldedAffineApply(builder, func.getLoc(), at, loops.offsets));
    tile.sizes.push_back(affine::makeComposedFoldedAffineApply(
        builder, func.getLoc(), AffineMap::get(map.getNumDims(), 0, extent), loops.sizes));
  }
  return tile;
}

/// The clone has the body of `op`, with loop indices shifted, and with temporaries that it reads at computed indices
/// made whole.
void TilePuller::cloneBody(linalg::LinalgOp op, Operation *clone, ArrayRef<OpFoldResult> offsets) {
  IRMapping mapping;
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  for (Value value : captured)
    if (isa<RankedTensorType>(value.getType()) && !isExternal(value)) {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPoint(clone);
      mapping.map(value, getTile(value, getWhole(value)));
    }
  op->getRegion(0).cloneInto(&clone->getRegion(0), mapping);
  OpBuilder::InsertionGuard guard(builder);
  linalg::offsetIndices(builder, cast<linalg::LinalgOp>(clone), offsets);
}

Value TilePuller::tileLinalg(linalg::LinalgOp op, unsigned result, const Tile &tile) {
  // Loops that the result does not have are whole.
  Tile loops;
  loops.offsets.assign(op.getNumLoops(), builder.getIndexAttr(0));
  loops.sizes.assign(op.getNumLoops(), nullptr);
  AffineMap resultMap = op.getMatchingIndexingMap(op.getDpsInitOperand(result));
  for (auto [dim, expr] : llvm::enumerate(resultMap.getResults())) {
    unsigned loop = cast<AffineDimExpr>(expr).getPosition();
    loops.offsets[loop] = tile.offsets[dim];
    loops.sizes[loop] = tile.sizes[dim];
  }
  completeLoops(op, loops);
  return makeLinalg(op, loops)->getResult(result);
}

void TilePuller::completeLoops(linalg::LinalgOp op, Tile &loops) {
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<RankedTensorType>(operand.get().getType()))
      continue;
    for (auto [dim, expr] : llvm::enumerate(op.getMatchingIndexingMap(&operand).getResults()))
      if (auto loop = dyn_cast<AffineDimExpr>(expr); loop && !loops.sizes[loop.getPosition()])
        loops.sizes[loop.getPosition()] = getDimSize(operand.get(), dim);
  }
}

Value TilePuller::makeInit(Value value, const Tile &tile) {
  auto op = cast<linalg::LinalgOp>(value.getDefiningOp());
  return tileInit(op.getDpsInitOperand(cast<OpResult>(value).getResultNumber())->get(), value, tile);
}

Operation *TilePuller::makeLinalg(linalg::LinalgOp op, const Tile &loops, ArrayRef<Value> inits) {
  for (auto &[at, clone] : tiledOps[op])
    if (at == loops)
      return clone;

  SmallVector<Value> operands;
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<RankedTensorType>(operand.get().getType())) {
      operands.push_back(operand.get());
      continue;
    }
    Tile part = mapTile(op.getMatchingIndexingMap(&operand), loops);
    if (op.isDpsInit(&operand)) {
      unsigned number = op.getTiedOpResult(&operand).getResultNumber();
      bool isGiven = !inits.empty() && inits[number];
      operands.push_back(isGiven ? inits[number] : tileInit(operand.get(), op.getTiedOpResult(&operand), part));
    } else
      operands.push_back(getTile(operand.get(), part));
  }
  SmallVector<Type> types;
  for (Value init : ValueRange(operands).take_back(op.getNumDpsInits()))
    types.push_back(init.getType());
  Operation *clone = cloneWithoutRegions(builder, op, types, operands);
  cloneBody(op, clone, loops.offsets);
  tiledOps[op].push_back({loops, clone});
  return clone;
}
