// lamina-tile-kernels: one scf.forall around a kernel, with the tiles of its outputs inside.
#include "dialects/Prim/PrimSizes.h"
#include "lib/Support/PassOptions.h"
#include "lib/Transforms/Tiling/GridChoice.h"
#include "lib/Transforms/Tiling/Online.h"
#include "lib/Transforms/Tiling/TilePuller.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace lamina;

namespace lamina {
#define GEN_PASS_DECL_TILEKERNELS
#define GEN_PASS_DEF_TILEKERNELS
#include "lib/Transforms/Tiling/Passes.h.inc"
} // namespace lamina

namespace {
struct TileKernels : lamina::impl::TileKernelsBase<TileKernels> {
  using Base::Base;

  LogicalResult initialize(MLIRContext *context) override {
    return OptionCheck(*this, context)
        .atLeast(vectorLanes, 1)
        .atLeast(l2Bytes, 1)
        .atLeast(threads, 1)
        .atLeast(pointwiseElements, 1)
        .atLeast(reduceElements, 1)
        .atLeast(onlineElements, 1)
        .atLeast(multiprocessors, 1)
        .atLeast(matrixOps, 1)
        .atLeast(vectorOps, 1)
        .atLeast(loadBytes, 1)
        .atLeast(sharedBytes, 1);
  }

  void runOnOperation() override {
    auto func = dyn_cast<kernel::FuncOp>(getOperation().getOperation());
    if (!func)
      return;
    if (failed(check(func)))
      return signalPassFailure();
    if (auto scatters = func.getBody().front().getOps<kernel::ScatterOp>(); !scatters.empty()) {
      ++numTiled;
      return shareUpdates(func, *scatters.begin());
    }
    DimClasses classes(func);
    TileTarget target{vectorLanes, l2Bytes, threads, pointwiseElements, reduceElements, blockTiles, {}, onlineElements};
    target.machine = {multiprocessors, matrixOps, vectorOps, loadBytes, sharedBytes};
    if (auto elements = func->getAttrOfType<IntegerAttr>("kernel.elements"))
      target.pointwiseElements = target.reduceElements = elements.getInt();
    SmallVector<GridDim> grid;
    if (classes.isTileable())
      grid = chooseGrid(func, classes, target);
    MLIRContext *context = &getContext();
    if (grid.empty()) {
      ++numSingle;
      func->setAttr("kernel.grid", getExprs(context, ArrayRef<int64_t>{1}));
      writeToOutputs(func);
      return;
    }
    ++numTiled;
    Exprs programs;
    for (const GridDim &dim : grid)
      programs.push_back(dim.size.ceilDiv(dim.tile));
    func->setAttr("kernel.grid", getExprs(context, programs));
    tile(func, classes, grid);
  }

  LogicalResult check(kernel::FuncOp func) {
    if (func->hasAttr("kernel.grid"))
      return func.emitOpError("is tiled already");
    for (auto [i, type] : llvm::enumerate(func.getArgumentTypes()))
      if (!isa<RankedTensorType>(type))
        return func.emitOpError("argument ") << i << " is no tensor; kernels are tiled before they are bufferized";
    for (Operation &op : func.getBody().front())
      if (op.getName().getDialectNamespace() == "prim")
        return op.emitOpError("is not tiled; lamina-convert-prim-to-linalg comes first");
    return success();
  }

  void shareUpdates(kernel::FuncOp func, kernel::ScatterOp scatter) {
    auto given = func->getAttrOfType<IntegerAttr>("kernel.elements");
    AffineExpr all = getNumElements(Exprs(scatter.getSizes().getResults()), &getContext());
    int64_t elements = given ? given.getInt() : pointwiseElements;
    if (auto known = dyn_cast<AffineConstantExpr>(all))
      elements = std::min<int64_t>(elements, llvm::PowerOf2Ceil(std::max<int64_t>(1, known.getValue())));
    elements = llvm::bit_floor(static_cast<uint64_t>(elements));
    scatter.setElements(elements);
    func->setAttr("kernel.grid", getExprs(&getContext(), {all.ceilDiv(elements)}));
  }

  /// A kernel of one program: what starts from an empty tensor and is returned starts from the output argument.
  void writeToOutputs(kernel::FuncOp func) {
    Operation *terminator = func.getBody().front().getTerminator();
    for (auto [i, result] : llvm::enumerate(terminator->getOperands())) {
      BlockArgument out = func.getArgument(func.getNumIns() + i);
      OpOperand *start = findStart(result);
      if (!start || !out.use_empty() || start->get().getType() != out.getType())
        continue;
      start->set(out);
    }
  }

  /// The operand at which a returned tensor begins, if that is an empty tensor.
  OpOperand *findStart(Value value) {
    OpOperand *operand = nullptr;
    while (Operation *op = value.getDefiningOp()) {
      unsigned number = cast<OpResult>(value).getResultNumber();
      if (isa<tensor::EmptyOp>(op))
        return operand;
      if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
        operand = linalgOp.getDpsInitOperand(number);
      else if (auto loop = dyn_cast<scf::ForOp>(op))
        operand = &loop.getInitsMutable()[number];
      else
        return nullptr;
      value = operand->get();
      if (value.getDefiningOp<linalg::FillOp>() && !value.hasOneUse()) {
        // A fill of several readers is made again for this one.
        OpBuilder b(value.getDefiningOp());
        value = b.clone(*value.getDefiningOp())->getResult(0);
        operand->set(value);
      }
    }
    return nullptr;
  }

  void tile(kernel::FuncOp func, DimClasses &classes, ArrayRef<GridDim> grid) {
    Block &block = func.getBody().front();
    Operation *terminator = block.getTerminator();
    OpBuilder builder(terminator);
    Location loc = func.getLoc();
    TilePuller puller(func, builder);
    SmallVector<OpFoldResult> lows, highs, steps;
    for (const GridDim &dim : grid) {
      lows.push_back(builder.getIndexAttr(0));
      highs.push_back(puller.getSize(dim.size));
      steps.push_back(builder.getIndexAttr(dim.tile));
    }
    SmallVector<Value> results = llvm::to_vector(terminator->getOperands());
    SmallVector<Tile> tiles;
    for (Value result : results)
      tiles.push_back(puller.getWhole(result));

    auto outs = func.getArguments().drop_front(func.getNumIns());
    auto forall = scf::ForallOp::create(builder, loc, lows, highs, steps, ValueRange(outs), std::nullopt);
    builder.setInsertionPoint(forall.getTerminator());
    AffineExpr size = builder.getAffineSymbolExpr(0), offset = builder.getAffineDimExpr(0);
    SmallVector<ClassTile> taken;
    for (auto [i, dim] : llvm::enumerate(grid)) {
      Value iv = forall.getInductionVar(i);
      OpFoldResult extent = steps[i];
      auto total = getConstantIntValue(highs[i]);
      if (!total || *total % dim.tile)
        extent = affine::makeComposedFoldedAffineMin(
            builder, loc, AffineMap::get(1, 1, {builder.getAffineConstantExpr(dim.tile), size - offset}, &getContext()),
            {OpFoldResult(iv), highs[i]});
      taken.push_back({dim.dimClass, OpFoldResult(iv), extent});
      for (auto [result, tile] : llvm::zip_equal(results, tiles))
        for (unsigned d = 0; d < tile.sizes.size(); ++d)
          if (classes.getClass(result, d) == dim.dimClass) {
            tile.offsets[d] = iv;
            tile.sizes[d] = extent;
          }
    }
    for (auto [result, tile, out] : llvm::zip_equal(results, tiles, forall.getRegionIterArgs())) {
      SmallVector<OpFoldResult> strides(tile.sizes.size(), builder.getIndexAttr(1));
      Value place = tensor::ExtractSliceOp::create(builder, loc, out, tile.offsets, tile.sizes, strides);
      puller.setDestination(result, tile, place);
    }
    if (func->hasAttr("kernel.online"))
      emitOnlineReductions(func, classes, puller, builder, taken, onlineElements, blockTiles);
    SmallVector<Value> parts;
    for (auto [result, tile] : llvm::zip_equal(results, tiles))
      parts.push_back(puller.getTile(result, tile));
    builder.setInsertionPointToEnd(forall.getTerminator().getBody());
    for (auto [part, tile, out] : llvm::zip_equal(parts, tiles, forall.getRegionIterArgs())) {
      SmallVector<OpFoldResult> strides(tile.sizes.size(), builder.getIndexAttr(1));
      tensor::ParallelInsertSliceOp::create(builder, loc, part, out, tile.offsets, tile.sizes, strides);
    }
    terminator->setOperands(forall.getResults());
    eraseUnused(block);
  }

  void eraseUnused(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (op.use_empty() && !isa<scf::ForallOp>(op) && !op.hasTrait<OpTrait::IsTerminator>())
        op.erase();
  }
};
} // namespace
