// Kernels whose reductions run online: one loop over blocks of the reduced dimension.
#include "lib/Transforms/Tiling/Online.h"
#include "lib/Transforms/Tiling/MaskBounds.h"
#include "mlir/Analysis/FlatLinearValueConstraints.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace lamina;

namespace {

class OnlineEmitter {
public:
  OnlineEmitter(kernel::FuncOp func, DimClasses &classes, TilePuller &puller, OpBuilder &builder,
                ArrayRef<ClassTile> tiles)
      : func(func), classes(classes), puller(puller), builder(builder), tiles(tiles) {}

  void run(int64_t block, bool wholeBlocks);

private:
  struct Total {
    linalg::LinalgOp op;
    unsigned result;
    bool isMax;
    Tile tile;
    Value value() const { return op->getResult(result); }
  };

  void collect();
  bool reduces(linalg::LinalgOp op) {
    for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray()))
      if (kind == utils::IteratorType::reduction && classes.getClass(op, loop) == along)
        return true;
    return false;
  }
  std::optional<ClassTile> findTile(unsigned dimClass) {
    for (const ClassTile &tile : tiles)
      if (tile.dimClass == dimClass)
        return tile;
    return std::nullopt;
  }
  Tile getValueTile(Value value);
  Tile getLoops(linalg::LinalgOp op, OpFoldResult offset, OpFoldResult size);
  SmallVector<Attribute> getPlaces();
  OpFoldResult getExtent();
  std::pair<OpFoldResult, OpFoldResult> getRange(int64_t multiple);
  std::pair<Value, Value> combineMax(Value before, Value ofBlock);
  Value scale(Value sum, const Total &of, Value factor, const Total &max);

  kernel::FuncOp func;
  DimClasses &classes;
  TilePuller &puller;
  OpBuilder &builder;
  ArrayRef<ClassTile> tiles;
  unsigned along = ~0u;
  SmallVector<Total> totals;
};

Operation *getCombiner(linalg::LinalgOp op, unsigned result) {
  return op.getBlock()->getTerminator()->getOperand(result).getDefiningOp();
}

/// The running results, in the order of the ops.
void OnlineEmitter::collect() {
  auto ops = func.getBody().front().getOps<linalg::LinalgOp>();
  for (linalg::LinalgOp op : ops)
    for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray()))
      for (unsigned i = 0; i < op->getNumResults(); ++i)
        if (kind == utils::IteratorType::reduction && isa_and_nonnull<arith::MaximumFOp>(getCombiner(op, i)) &&
            !op.getMatchingIndexingMap(op.getDpsInitOperand(i)).isFunctionOfDim(loop))
          along = classes.getClass(op, loop);
  for (linalg::LinalgOp op : ops) {
    if (!reduces(op))
      continue;
    for (OpResult result : op->getResults()) {
      unsigned i = result.getResultNumber();
      Tile tile = getValueTile(result);
      bool isTotal = true;
      for (unsigned dim = 0; dim < tile.sizes.size(); ++dim)
        isTotal &= classes.getClass(result, dim) != along;
      if (isTotal)
        totals.push_back({op, i, isa_and_nonnull<arith::MaximumFOp>(getCombiner(op, i)), tile});
    }
  }
}

Tile OnlineEmitter::getValueTile(Value value) {
  Tile tile = puller.getWhole(value);
  for (unsigned dim = 0; dim < tile.sizes.size(); ++dim)
    if (auto part = findTile(classes.getClass(value, dim))) {
      tile.offsets[dim] = part->offset;
      tile.sizes[dim] = part->size;
    }
  return tile;
}

Tile OnlineEmitter::getLoops(linalg::LinalgOp op, OpFoldResult offset, OpFoldResult size) {
  Tile loops;
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop) {
    unsigned dimClass = classes.getClass(op, loop);
    auto part = dimClass == along ? ClassTile{along, offset, size} : findTile(dimClass);
    loops.offsets.push_back(part ? part->offset : OpFoldResult(builder.getIndexAttr(0)));
    loops.sizes.push_back(part ? part->size : OpFoldResult());
  }
  puller.completeLoops(op, loops);
  return loops;
}

/// How far the reduced dimension goes.
OpFoldResult OnlineEmitter::getExtent() {
  linalg::LinalgOp op = totals.front().op;
  for (OpOperand &operand : op->getOpOperands())
    for (auto [dim, expr] : llvm::enumerate(op.getMatchingIndexingMap(&operand).getResults()))
      if (auto loop = dyn_cast<AffineDimExpr>(expr); loop && classes.getClass(op, loop.getPosition()) == along)
        return puller.getDimSize(operand.get(), dim);
  llvm_unreachable("a reduced dimension is some operand's");
}

/// The part of the reduced dimension that a mask made of indices leaves some row of this program, begin and end rounded
/// to a multiple: what lies beyond is masked all the same.
std::pair<OpFoldResult, OpFoldResult> OnlineEmitter::getRange(int64_t multiple) {
  MLIRContext *context = builder.getContext();
  Location loc = func.getLoc();
  auto max = llvm::find_if(totals, [](const Total &total) { return total.isMax; });
  OpFoldResult begin = builder.getIndexAttr(0), end = getExtent();
  Tile loops = getLoops(max->op, begin, end);
  unsigned count = max->op.getNumLoops(), reduced = 0;
  while (classes.getClass(max->op, reduced) != along)
    ++reduced;
  for (const IndexCondition &condition : findMaskConditions(max->op, max->result)) {
    SmallVector<int64_t> flat;
    if (failed(getFlattenedAffineExpr(condition.expr, count, condition.symbols.size(), &flat)) ||
        flat.size() != count + condition.symbols.size() + 1 || std::abs(flat[reduced]) != 1)
      continue;
    // n <= g, or n >= -g, where g is the rest of the expression at its largest in the program's tile.
    bool isUpper = flat[reduced] < 0;
    AffineExpr g = getAffineConstantExpr(flat.back(), context);
    SmallVector<OpFoldResult> operands;
    auto addTerm = [&](int64_t factor, OpFoldResult operand) {
      g = g + factor * getAffineSymbolExpr(operands.size(), context);
      operands.push_back(operand);
    };
    for (unsigned loop = 0; loop < count; ++loop) {
      if (loop == reduced || flat[loop] == 0)
        continue;
      addTerm(flat[loop], loops.offsets[loop]);
      if (flat[loop] > 0) {
        addTerm(flat[loop], loops.sizes[loop]);
        g = g - flat[loop];
      }
    }
    for (auto [i, symbol] : llvm::enumerate(condition.symbols))
      addTerm(flat[count + i], symbol);
    AffineExpr other = getAffineSymbolExpr(operands.size(), context);
    operands.push_back(isUpper ? end : begin);
    AffineMap choices = AffineMap::get(0, operands.size(), {isUpper ? g + 1 : -g, other}, context);
    if (isUpper)
      end = affine::makeComposedFoldedAffineMin(builder, loc, choices, operands);
    else
      begin = affine::makeComposedFoldedAffineMax(builder, loc, choices, operands);
  }
  if (multiple > 1) {
    AffineExpr d = getAffineDimExpr(0, context), s = getAffineSymbolExpr(0, context),
               zero = getAffineConstantExpr(0, context);
    auto map = [&](ArrayRef<AffineExpr> exprs) { return AffineMap::get(1, 1, exprs, context); };
    OpFoldResult extent = getExtent();
    begin =
        affine::makeComposedFoldedAffineApply(builder, loc, map({d.floorDiv(multiple) * multiple}), {begin, extent});
    end = affine::makeComposedFoldedAffineMax(builder, loc, map({d, zero}), {end, extent});
    end = affine::makeComposedFoldedAffineMin(builder, loc, map({d.ceilDiv(multiple) * multiple, s}), {end, extent});
  }
  return {begin, end};
}

/// The maximum so far and a block's become the maximum, in the place of the former, and exp(before - after), which is 0
/// before any term was finite.
std::pair<Value, Value> OnlineEmitter::combineMax(Value before, Value ofBlock) {
  Location loc = before.getLoc();
  auto type = cast<RankedTensorType>(before.getType());
  AffineMap identity = builder.getMultiDimIdentityMap(type.getRank());
  Value place =
      tensor::EmptyOp::create(builder, loc, tensor::getMixedSizes(builder, loc, before), type.getElementType());
  SmallVector<utils::IteratorType> kinds(type.getRank(), utils::IteratorType::parallel);
  auto body = [](OpBuilder &b, Location loc, ValueRange args) {
    auto constant = [&](double number) -> Value {
      return arith::ConstantOp::create(b, loc, b.getFloatAttr(args[0].getType(), number));
    };
    Value after = arith::MaximumFOp::create(b, loc, args[2], args[0]);
    Value empty = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, args[2],
                                        constant(-std::numeric_limits<double>::infinity()));
    Value factor = math::ExpOp::create(b, loc, arith::SubFOp::create(b, loc, args[2], after));
    factor = arith::SelectOp::create(b, loc, empty, constant(0.0), factor);
    linalg::YieldOp::create(b, loc, ValueRange{factor, after});
  };
  auto op = linalg::GenericOp::create(builder, loc, TypeRange{type, type}, ValueRange{ofBlock},
                                      ValueRange{place, before}, SmallVector<AffineMap>(3, identity), kinds, body);
  return {op.getResult(1), op.getResult(0)};
}

/// A sum so far times the factor of its row.
Value OnlineEmitter::scale(Value sum, const Total &of, Value factor, const Total &max) {
  auto type = cast<RankedTensorType>(sum.getType());
  SmallVector<AffineExpr> rows;
  for (int64_t dim = 0; dim < cast<RankedTensorType>(factor.getType()).getRank(); ++dim)
    for (int64_t at = 0; at < type.getRank(); ++at)
      if (classes.getClass(of.value(), at) == classes.getClass(max.value(), dim))
        rows.push_back(builder.getAffineDimExpr(at));
  AffineMap identity = builder.getMultiDimIdentityMap(type.getRank());
  AffineMap row = AffineMap::get(type.getRank(), 0, rows, builder.getContext());
  SmallVector<utils::IteratorType> kinds(type.getRank(), utils::IteratorType::parallel);
  auto body = [](OpBuilder &b, Location loc, ValueRange args) {
    linalg::YieldOp::create(b, loc, arith::MulFOp::create(b, loc, args[1], args[0]).getResult());
  };
  return linalg::GenericOp::create(builder, sum.getLoc(), type, ValueRange{factor}, sum,
                                   ArrayRef<AffineMap>{row, identity}, kinds, body)
      .getResult(0);
}

/// Of each total, which of the widest one's dimensions its dimensions are.
SmallVector<Attribute> OnlineEmitter::getPlaces() {
  SmallVector<unsigned> space;
  SmallVector<Attribute> places;
  for (bool isCollected : {false, true})
    for (const Total &total : totals) {
      SmallVector<int64_t> dims;
      for (unsigned dim = 0; dim < total.tile.sizes.size(); ++dim) {
        unsigned dimClass = classes.getClass(total.value(), dim);
        if (!llvm::is_contained(space, dimClass))
          space.push_back(dimClass);
        dims.push_back(llvm::find(space, dimClass) - space.begin());
      }
      if (isCollected)
        places.push_back(builder.getDenseI64ArrayAttr(dims));
    }
  return places;
}

void OnlineEmitter::run(int64_t block, bool wholeBlocks) {
  collect();
  if (totals.empty())
    return; // there is but one term
  Location loc = func.getLoc();
  SmallVector<Value> starts;
  for (const Total &total : totals)
    starts.push_back(puller.makeInit(total.value(), total.tile));
  auto [begin, end] = getRange(wholeBlocks ? block : 1);
  auto index = [&](OpFoldResult value) { return getValueOrCreateConstantIndexOp(builder, loc, value); };
  auto loop = scf::ForOp::create(builder, loc, index(begin), index(end), index(builder.getIndexAttr(block)), starts);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    OpFoldResult offset = loop.getInductionVar(), size = builder.getIndexAttr(block);
    // Whole blocks of a dimension that they divide need no masks for tails.
    auto first = getConstantIntValue(begin), last = getConstantIntValue(wholeBlocks ? getExtent() : end);
    if ((!first && !wholeBlocks) || !last || (*last - (wholeBlocks ? 0 : *first)) % block != 0) {
      AffineExpr d, s;
      bindDims(builder.getContext(), d);
      bindSymbols(builder.getContext(), s);
      AffineMap least = AffineMap::get(1, 1, {builder.getAffineConstantExpr(block), s - d}, builder.getContext());
      size = affine::makeComposedFoldedAffineMin(builder, loc, least, {offset, end});
    }
    // Tiles of a block are no use after the loop.
    TilePuller inner(func, builder);
    SmallVector<Value> carried(loop.getRegionIterArgs());
    const Total *max = nullptr;
    Value factor;
    for (unsigned first = 0; first < totals.size();) {
      linalg::LinalgOp op = totals[first].op;
      unsigned last = first;
      while (last < totals.size() && totals[last].op == op)
        ++last;
      Tile loops = getLoops(op, offset, size);
      SmallVector<Value> inits(op->getNumResults());
      for (unsigned i = first; i < last; ++i)
        if (!totals[i].isMax)
          inits[totals[i].result] = factor ? scale(carried[i], totals[i], factor, *max) : carried[i];
      Operation *clone = inner.makeLinalg(op, loops, inits);
      clone->setAttr("kernel.online", builder.getUnitAttr());
      for (unsigned i = first; i < last; ++i) {
        Value result = clone->getResult(totals[i].result);
        if (totals[i].isMax) {
          max = &totals[i];
          std::tie(result, factor) = combineMax(carried[i], result);
          inner.setTile(totals[i].value(), totals[i].tile, result);
        }
        carried[i] = result;
      }
      first = last;
    }
    scf::YieldOp::create(builder, loc, carried);
  }
  loop->setAttr("kernel.online", builder.getArrayAttr(getPlaces()));
  for (auto [total, result] : llvm::zip_equal(totals, loop.getResults()))
    puller.setTile(total.value(), total.tile, result);
}

} // namespace

void lamina::emitOnlineReductions(kernel::FuncOp func, DimClasses &classes, TilePuller &puller, OpBuilder &builder,
                                  ArrayRef<ClassTile> tiles, int64_t block, bool wholeBlocks) {
  OnlineEmitter(func, classes, puller, builder, tiles).run(block, wholeBlocks);
}
