// lamina-convert-tiled-to-triton: the pass around the emitter of programs.
#include "lib/Conversion/TiledToTriton/ProgramEmitter.h"
#include "lib/Support/PassOptions.h"
#include "lib/Transforms/Tiling/GridChoice.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Transforms/LoopInvariantCodeMotionUtils.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/ConstantRange.h"

using namespace mlir;
using namespace lamina;

namespace lamina {
#define GEN_PASS_DECL_CONVERTTILEDTOTRITON
#define GEN_PASS_DEF_CONVERTTILEDTOTRITON
#include "lib/Conversion/TiledToTriton/Passes.h.inc"
} // namespace lamina

namespace {
/// Whether the memory of a value of the host function begins at a multiple of 16 bytes, if the function's arguments do.
bool isAligned(Value value) {
  auto isMultiple = [](AffineMapAttr offset, int64_t of) { return offset.getValue().getResult(0).isMultipleOf(of); };
  Operation *op = value.getDefiningOp();
  if (auto view = dyn_cast_or_null<kernel::ViewOp>(op)) {
    int64_t bytes = std::max(1u, getElementTypeOrSelf(value.getType()).getIntOrFloatBitWidth() / 8);
    return isMultiple(view.getOffsetAttr(), std::max<int64_t>(1, 16 / bytes)) && isAligned(view.getOperand());
  }
  if (auto alloc = dyn_cast_or_null<kernel::AllocOp>(op))
    return isMultiple(alloc.getOffsetAttr(), 16);
  return true;
}

/// The values that an expression may have, saturated, for symbols of given ranges; sizes are never negative.
llvm::ConstantRange rangeOf(AffineExpr expr, ArrayRef<llvm::ConstantRange> symbols) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return llvm::ConstantRange(APInt(64, constant.getValue(), /*isSigned=*/true));
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return symbols[symbol.getPosition()];
  auto binary = cast<AffineBinaryOpExpr>(expr);
  llvm::ConstantRange lhs = rangeOf(binary.getLHS(), symbols), rhs = rangeOf(binary.getRHS(), symbols);
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return lhs.sadd_sat(rhs);
  case AffineExprKind::Mul:
    return lhs.smul_sat(rhs);
  case AffineExprKind::CeilDiv:
    return lhs.sadd_sat(rhs).sdiv(rhs);
  case AffineExprKind::FloorDiv:
    return lhs.sdiv(rhs);
  default:
    return lhs.srem(rhs);
  }
}

/// The ranges of a host function's symbols.
SmallVector<llvm::ConstantRange> getSymbolRanges(Operation *host) {
  SmallVector<llvm::ConstantRange> ranges;
  if (auto symbols = host->getAttrOfType<ArrayAttr>("prim.symbols"))
    for (auto symbol : symbols.getAsRange<DictionaryAttr>()) {
      auto bound = [&](StringRef key, int64_t otherwise) {
        auto attr = symbol.getAs<IntegerAttr>(key);
        return APInt(64, attr ? attr.getInt() : otherwise, /*isSigned=*/true);
      };
      ranges.push_back(llvm::ConstantRange::getNonEmpty(bound("min", 0), bound("max", INT64_MAX) + 1));
    }
  return ranges;
}

/// Of a kernel's symbols where no launch is known.
SmallVector<llvm::ConstantRange> anySizes(kernel::FuncOp kernel) {
  return SmallVector<llvm::ConstantRange>(kernel.getNumSymbols(),
                                          llvm::ConstantRange::getNonEmpty(APInt(64, 0), APInt::getSignedMinValue(64)));
}

/// What is the same in each iteration of a loop comes before it; also loads, such as those of the rows of scores, if
/// the loop stores nothing: masks keep them inside their tensors there too.
void hoistInvariants(tt::FuncOp program) {
  program.walk([](scf::ForOp loop) {
    bool stores = false;
    loop.getBody()->walk([&](tt::StoreOp) { stores = true; });
    moveLoopInvariantCode(
        loop.getLoopRegions(), [&](Value value, Region *) { return loop.isDefinedOutsideOfLoop(value); },
        [&](Operation *op, Region *) {
          return (isMemoryEffectFree(op) && isSpeculatable(op)) || (isa<tt::LoadOp>(op) && !stores);
        },
        [&](Operation *op, Region *) { loop.moveOutOfLoop(op); });
  });
}

struct ConvertTiledToTriton : lamina::impl::ConvertTiledToTritonBase<ConvertTiledToTriton> {
  using Base::Base;

  LogicalResult initialize(MLIRContext *context) override {
    return OptionCheck(*this, context)
        .powerOfTwo(maxElements)
        .powerOfTwo(chunkElements)
        .powerOfTwo(depth)
        .oneOf(indexBits, {32, 64}, "32 or 64");
  }

  void runOnOperation() override {
    // Which arguments of each kernel are not aligned in some launch; and kernels of which some launch may have more
    // elements than 32 bits count.
    llvm::StringMap<llvm::SmallDenseSet<unsigned>> misaligned;
    llvm::StringSet<> wide;
    getOperation().walk([&](kernel::LaunchOp launch) {
      SmallVector<llvm::ConstantRange> outer = getSymbolRanges(launch->getParentOp()), ranges;
      for (AffineExpr expr : launch.getSymbols().getResults())
        ranges.push_back(rangeOf(expr, outer));
      auto kernel = SymbolTable::lookupNearestSymbolFrom<kernel::FuncOp>(launch, launch.getKernelAttr());
      if (kernel && isWide(kernel, ranges))
        wide.insert(launch.getKernel());
      auto operands = llvm::to_vector(llvm::concat<Value>(launch.getIns(), launch.getOuts()));
      for (auto [i, operand] : llvm::enumerate(operands))
        if (!isAligned(operand))
          misaligned[launch.getKernel()].insert(i);
    });
    for (auto kernel : llvm::make_early_inc_range(getOperation().getOps<kernel::FuncOp>())) {
      if (!kernel->hasAttr("kernel.grid")) {
        kernel.emitOpError("is not tiled");
        return signalPassFailure();
      }
      if (failed(convert(kernel, misaligned[kernel.getSymName()],
                         wide.contains(kernel.getSymName()) || isWide(kernel, anySizes(kernel)))))
        return signalPassFailure();
      ++numKernels;
    }
  }

  /// Whether the ranges of a kernel's symbols allow an argument with more elements than 32 bits count; one of which
  /// there is no bound is not taken to have so many.
  bool isWide(kernel::FuncOp kernel, ArrayRef<llvm::ConstantRange> symbols) {
    for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
      if (!isa<RankedTensorType>(kernel.getArgument(i).getType()))
        continue; // what convert refuses
      Exprs sizes = getArgumentSizes(kernel, i);
      auto strides = kernel.getArgAttrOfType<AffineMapAttr>(i, "kernel.strides");
      llvm::ConstantRange last{APInt(64, 0)}, count{APInt(64, 1)};
      for (auto [dim, size] : llvm::enumerate(sizes)) {
        llvm::ConstantRange extent = rangeOf(size, symbols);
        count = count.smul_sat(extent);
        if (strides)
          last = last.sadd_sat(extent.smul_sat(rangeOf(strides.getValue().getResult(dim), symbols)));
      }
      if (isMany(strides ? last : count))
        return true;
    }
    // Or as many updates.
    return llvm::any_of(kernel.getOps<kernel::ScatterOp>(), [&](kernel::ScatterOp scatter) {
      llvm::ConstantRange count{APInt(64, 1)};
      for (AffineExpr size : scatter.getSizes().getResults())
        count = count.smul_sat(rangeOf(size, symbols));
      return isMany(count);
    });
  }

  static bool isMany(const llvm::ConstantRange &count) {
    const APInt most = count.getSignedMax();
    return most.sgt(INT32_MAX) && !most.isMaxSignedValue();
  }

  LogicalResult convert(kernel::FuncOp kernel, const llvm::SmallDenseSet<unsigned> &misaligned, bool isWide) {
    OpBuilder b(kernel);
    auto indexType = b.getIntegerType(isWide ? 64 : indexBits);
    SmallVector<Type> types;
    for (Type type : kernel.getArgumentTypes()) {
      Type element = getElementTypeOrSelf(type);
      if (!isa<RankedTensorType>(type) || !isa<IntegerType, FloatType>(element))
        return kernel.emitOpError("has an argument of type ") << type << ", which Triton has not";
      types.push_back(tt::PtrType::get(&getContext(), element.isInteger(1) ? b.getI8Type() : element));
    }
    types.append(kernel.getNumSymbols(), indexType);
    std::string name = kernel.getSymName().str();
    kernel.setSymName(name + "__tiled");
    auto program = tt::FuncOp::create(b, kernel.getLoc(), name, b.getFunctionType(types, {}));
    b.createBlock(&program.getBody(), {}, types, SmallVector<Location>(types.size(), kernel.getLoc()));
    for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
      if (!misaligned.contains(i))
        program.setArgAttr(i, "tt.divisibility", b.getI32IntegerAttr(16));
    program->setAttr("kernel.grid", kernel->getAttr("kernel.grid"));
    program->setAttr("kernel.outs", kernel->getAttr("outs"));
    for (StringRef kept :
         {"kernel.tile", "kernel.elements", "kernel.descriptors", "kernel.num_warps", "kernel.num_stages"})
      if (Attribute attr = kernel->getAttr(kept))
        program->setAttr(kept, attr);
    program->setAttr("kernel.index_bits", b.getI64IntegerAttr(indexType.getWidth()));
    ProgramEmitter emitter(kernel, program, indexType, {maxElements, chunkElements, depth, descriptors});
    if (failed(emitter.run()))
      return failure();
    hoistInvariants(program);
    numDots += emitter.numDots;
    numDescribed += emitter.numDescribed;
    if (emitter.numDots)
      program->setAttr("kernel.descriptors", b.getBoolAttr(emitter.numDescribed));
    kernel.erase();
    return success();
  }
};
} // namespace
