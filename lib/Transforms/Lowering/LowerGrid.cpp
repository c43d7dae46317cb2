// lamina-lower-grid: kernels become functions that run a range of their programs.
#include "dialects/Kernel/Kernel.h"
#include "lib/Support/PassOptions.h"
#include "lib/Transforms/Lowering/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"

namespace lamina {
#define GEN_PASS_DEF_LOWERGRID
#include "lib/Transforms/Lowering/Passes.h.inc"
} // namespace lamina

using namespace mlir;
using namespace lamina;

namespace {

constexpr int64_t kAlignment = 64;

/// The largest value of a size, if it has a constant bound.
std::optional<int64_t> getUpperBound(Value value) {
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return constant;
  auto smaller = [](std::optional<int64_t> a, std::optional<int64_t> b) {
    return a && b ? std::min(*a, *b) : a ? a : b;
  };
  if (auto min = value.getDefiningOp<affine::AffineMinOp>()) {
    std::optional<int64_t> bound;
    for (AffineExpr expr : min.getMap().getResults())
      if (auto constant = dyn_cast<AffineConstantExpr>(expr))
        bound = smaller(bound, constant.getValue());
    if (bound)
      return bound;
  }
  if (Operation *op = value.getDefiningOp(); isa_and_nonnull<arith::MinSIOp, arith::MinUIOp>(op))
    if (auto bound = smaller(getUpperBound(op->getOperand(0)), getUpperBound(op->getOperand(1))))
      return bound;
  auto bound = ValueBoundsConstraintSet::computeConstantBound(presburger::BoundType::UB, value,
                                                              /*stopCondition=*/nullptr, /*closedUB=*/true);
  return succeeded(bound) ? std::optional<int64_t>(*bound) : std::nullopt;
}

/// One temporary, before its memory is chosen.
struct Temporary {
  Operation *op; // memref.alloc or memref.alloca
  MemRefType type;
  /// Bytes for the largest size, rounded up to the alignment; absent if the size has no bound.
  std::optional<int64_t> bound;
};

struct KernelLowering {
  kernel::FuncOp kernel;
  int64_t maxStack;
  OpBuilder builder;
  Location loc;
  func::FuncOp func = {};
  scf::ForallOp forall = {};
  SmallVector<Temporary> temporaries = {};
  bool usesScratch = false;

  KernelLowering(kernel::FuncOp kernel, int64_t maxStack)
      : kernel(kernel), maxStack(maxStack), builder(kernel.getContext()), loc(kernel.getLoc()) {}

  LogicalResult run();

private:
  LogicalResult check();
  LogicalResult collectTemporaries();
  void buildPrologue();
  void lowerForall();
  LogicalResult placeTemporaries();
  Value loadSlot(int64_t index, Type type);
  Value getSymbol(unsigned number);
  Value getExpr(AffineExpr expr);
  Value castPointer(Value pointer, Type elementType);
  Value buildArgument(Value pointer, BlockArgument arg);
  int64_t getElementBytes(Type type);
  FailureOr<Value> hoist(Value value);

  int64_t numArgs = 0;
  SmallVector<Value> symbols;
  IRMapping hoisted;
  /// What follows the prologue; everything that is hoisted goes before it.
  Operation *prologueEnd = nullptr;
};

LogicalResult KernelLowering::check() {
  for (Type type : kernel.getArgumentTypes())
    if (!isa<MemRefType>(type))
      return kernel.emitOpError("has an argument of type ") << type << "; lamina-bufferize-kernels comes first";
  for (Operation &op : kernel.getBody().front()) {
    if (auto loop = dyn_cast<scf::ForallOp>(op)) {
      if (forall)
        return loop.emitOpError("is the second grid of its kernel");
      if (!loop.getOutputs().empty())
        return loop.emitOpError("still has tensor results");
      forall = loop;
    }
  }
  auto grid = kernel->getAttrOfType<AffineMapAttr>("kernel.grid");
  if (forall && (!grid || grid.getValue().getNumResults() != static_cast<unsigned>(forall.getRank())))
    return forall.emitOpError("has ") << forall.getRank() << " dimensions, the kernel's kernel.grid has "
                                      << (grid ? grid.getValue().getNumResults() : 0);
  if (forall)
    for (Operation &op : kernel.getBody().front())
      if (&op != forall && !isa<memref::AllocOp, memref::AllocaOp, memref::DeallocOp>(op) && !isMemoryEffectFree(&op) &&
          !hasSingleEffect<MemoryEffects::Read>(&op))
        return op.emitOpError("writes memory outside of the kernel's grid: each thread would do it");
  return success();
}

int64_t KernelLowering::getElementBytes(Type type) {
  if (auto memref = dyn_cast<MemRefType>(type))
    type = memref.getElementType();
  return DataLayout::closest(func ? func.getOperation() : kernel.getOperation()).getTypeSize(type);
}

LogicalResult KernelLowering::collectTemporaries() {
  WalkResult result = kernel.walk([&](Operation *op) {
    if (!isa<memref::AllocOp, memref::AllocaOp>(op))
      return WalkResult::advance();
    auto type = cast<MemRefType>(op->getResult(0).getType());
    if (!type.getLayout().isIdentity()) {
      op->emitOpError("is a temporary with a layout");
      return WalkResult::interrupt();
    }
    for (Operation *user : op->getUsers())
      if (user->hasTrait<OpTrait::IsTerminator>() && isa<LoopLikeOpInterface>(user->getParentOp())) {
        op->emitOpError("is a temporary that lives on in the next iteration of a loop");
        return WalkResult::interrupt();
      }
    std::optional<int64_t> bytes = getElementBytes(type);
    auto dynamic = op->getOperands().begin();
    for (int64_t size : type.getShape()) {
      std::optional<int64_t> bound = ShapedType::isDynamic(size) ? getUpperBound(*dynamic++) : size;
      bytes = bytes && bound ? std::optional<int64_t>(*bytes * *bound) : std::nullopt;
    }
    if (bytes)
      bytes = llvm::alignTo(*bytes, kAlignment);
    temporaries.push_back({op, type, bytes});
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

Value KernelLowering::loadSlot(int64_t index, Type type) {
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
  Value address = LLVM::GEPOp::create(builder, loc, pointer, builder.getI64Type(), func.getArgument(0),
                                      ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(index)});
  return LLVM::LoadOp::create(builder, loc, type, address);
}

Value KernelLowering::getSymbol(unsigned number) {
  if (symbols.size() <= number)
    symbols.resize(number + 1);
  if (!symbols[number]) {
    Value value = loadSlot(numArgs + number, builder.getI64Type());
    symbols[number] = arith::IndexCastOp::create(builder, loc, builder.getIndexType(), value);
  }
  return symbols[number];
}

Value KernelLowering::getExpr(AffineExpr expr) {
  SmallVector<Value> values;
  expr.walk([&](AffineExpr e) {
    if (auto symbol = dyn_cast<AffineSymbolExpr>(e)) {
      if (values.size() <= symbol.getPosition())
        values.resize(symbol.getPosition() + 1);
      values[symbol.getPosition()] = getSymbol(symbol.getPosition());
    }
  });
  return affine::expandAffineExpr(builder, loc, expr, {}, values);
}

/// A memref with no dimensions at a pointer.
Value KernelLowering::castPointer(Value pointer, Type elementType) {
  auto i64 = builder.getI64Type();
  auto type = LLVM::LLVMStructType::getLiteral(builder.getContext(), {pointer.getType(), pointer.getType(), i64});
  Value descriptor = LLVM::PoisonOp::create(builder, loc, type);
  Value zero = LLVM::ConstantOp::create(builder, loc, i64, builder.getI64IntegerAttr(0));
  // Allocated pointer, aligned pointer, offset.
  Value fields[] = {pointer, pointer, zero};
  for (int64_t index : {0, 1, 2})
    descriptor = LLVM::InsertValueOp::create(builder, loc, descriptor, fields[index], ArrayRef<int64_t>{index});
  return UnrealizedConversionCastOp::create(builder, loc, MemRefType::get({}, elementType), descriptor).getResult(0);
}

/// The memref of an argument whose elements start at `pointer`.
Value KernelLowering::buildArgument(Value pointer, BlockArgument arg) {
  auto type = cast<MemRefType>(arg.getType());
  Value base = castPointer(pointer, type.getElementType());
  if (type.getRank() == 0)
    return base;
  auto sizeExprs = kernel.getArgAttrOfType<AffineMapAttr>(arg.getArgNumber(), "prim.sizes");
  auto strideExprs = kernel.getArgAttrOfType<AffineMapAttr>(arg.getArgNumber(), "kernel.strides");
  SmallVector<OpFoldResult> sizes, strides(type.getRank());
  for (auto [dim, size] : llvm::enumerate(type.getShape()))
    sizes.push_back(ShapedType::isDynamic(size) ? OpFoldResult(getExpr(sizeExprs.getValue().getResult(dim)))
                                                : OpFoldResult(builder.getIndexAttr(size)));
  SmallVector<int64_t> known = type.getStridesAndOffset().first;
  OpFoldResult contiguous = builder.getIndexAttr(1);
  for (int64_t dim = type.getRank() - 1; dim >= 0; --dim) {
    if (!ShapedType::isDynamic(known[dim]))
      strides[dim] = builder.getIndexAttr(known[dim]);
    else
      strides[dim] = strideExprs ? OpFoldResult(getExpr(strideExprs.getValue().getResult(dim))) : contiguous;
    if (strideExprs || dim == 0)
      continue;
    AffineExpr a, b;
    bindSymbols(builder.getContext(), a, b);
    contiguous = affine::makeComposedFoldedAffineApply(builder, loc, a * b, {strides[dim], sizes[dim]});
  }
  return memref::ReinterpretCastOp::create(builder, loc, type, base, OpFoldResult(builder.getIndexAttr(0)), sizes,
                                           strides);
}

void KernelLowering::buildPrologue() {
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
  Block &body = kernel.getBody().front();
  numArgs = kernel.getNumArguments();

  builder.setInsertionPoint(kernel);
  auto type = builder.getFunctionType({pointer, builder.getIndexType(), builder.getIndexType()}, {});
  func = func::FuncOp::create(builder, loc, kernel.getSymName(), type);
  for (NamedAttribute attr : kernel->getDiscardableAttrs())
    func->setAttr(attr.getName(), attr.getValue());
  Block *entry = func.addEntryBlock();
  builder.setInsertionPointToStart(entry);

  for (BlockArgument arg : kernel.getArguments())
    arg.replaceAllUsesWith(buildArgument(loadSlot(arg.getArgNumber(), pointer), arg));
  kernel.walk([&](kernel::SymbolOp symbol) {
    symbol.replaceAllUsesWith(getSymbol(symbol.getNumber()));
    symbol.erase();
  });

  prologueEnd = &body.front();
  entry->getOperations().splice(entry->end(), body.getOperations());
  auto ret = cast<kernel::ReturnOp>(entry->getTerminator());
  builder.setInsertionPoint(ret);
  auto newReturn = func::ReturnOp::create(builder, loc);
  if (prologueEnd == ret)
    prologueEnd = newReturn;
  ret.erase();
  kernel.erase();
}

void KernelLowering::lowerForall() {
  loc = forall.getLoc();
  builder.setInsertionPoint(forall);
  auto toValue = [&](OpFoldResult value) { return getValueOrCreateConstantIndexOp(builder, loc, value); };
  unsigned rank = forall.getRank();
  SmallVector<OpFoldResult> lower = forall.getMixedLowerBound(), upper = forall.getMixedUpperBound(),
                            steps = forall.getMixedStep();
  // Programs of each dimension but the first, whose number is what is left.
  SmallVector<Value> counts(rank);
  for (unsigned dim = 1; dim < rank; ++dim) {
    AffineExpr l, u, s;
    bindSymbols(builder.getContext(), l, u, s);
    OpFoldResult count =
        affine::makeComposedFoldedAffineApply(builder, loc, (u - l).ceilDiv(s), {lower[dim], upper[dim], steps[dim]});
    counts[dim] = toValue(count);
  }
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  auto loop = scf::ForOp::create(builder, loc, func.getArgument(1), func.getArgument(2), one);

  builder.setInsertionPointToStart(loop.getBody());
  Value rest = loop.getInductionVar();
  SmallVector<Value> ids(rank);
  for (int64_t dim = rank - 1; dim >= 0; --dim) {
    Value id = rest;
    if (dim > 0) {
      id = arith::RemUIOp::create(builder, loc, rest, counts[dim]);
      rest = arith::DivUIOp::create(builder, loc, rest, counts[dim]);
    }
    if (getConstantIntValue(steps[dim]) != 1)
      id = arith::MulIOp::create(builder, loc, id, toValue(steps[dim]));
    if (getConstantIntValue(lower[dim]) != 0)
      id = arith::AddIOp::create(builder, loc, id, toValue(lower[dim]));
    ids[dim] = id;
  }
  for (auto [arg, id] : llvm::zip_equal(forall.getInductionVars(), ids))
    arg.replaceAllUsesWith(id);
  forall.getBody()->getTerminator()->erase();
  Block *body = loop.getBody();
  body->getOperations().splice(body->getTerminator()->getIterator(), forall.getBody()->getOperations());
  if (prologueEnd == forall)
    prologueEnd = loop;
  forall.erase();
}

/// The value computed again in the prologue; fails if it depends on anything that is not known there.
FailureOr<Value> KernelLowering::hoist(Value value) {
  if (Value known = hoisted.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  if (!op)
    return value.getParentBlock() == &func.front() ? FailureOr<Value>(value) : FailureOr<Value>();
  if (op->getBlock() == &func.front() && op->isBeforeInBlock(prologueEnd))
    return value;
  if (!isPure(op) || op->getNumRegions())
    return failure();
  for (Value operand : op->getOperands()) {
    FailureOr<Value> result = hoist(operand);
    if (failed(result))
      return failure();
    hoisted.map(operand, *result);
  }
  builder.setInsertionPoint(prologueEnd);
  builder.clone(*op, hoisted);
  return hoisted.lookup(value);
}

LogicalResult KernelLowering::placeTemporaries() {
  int64_t total = 0;
  bool bounded = true;
  for (Temporary &temporary : temporaries) {
    bounded &= temporary.bound.has_value();
    total += temporary.bound.value_or(0);
  }
  usesScratch = !bounded || total > maxStack;

  // Stack: one alloca each, so that LLVM sees that they do not overlap. Scratch: one block, and an offset each.
  auto bytesType = [](MLIRContext *context, int64_t size) {
    return MemRefType::get(size, IntegerType::get(context, 8));
  };
  SmallVector<Value> offsets;
  Value block;
  if (usesScratch) {
    Value offset;
    builder.setInsertionPoint(prologueEnd);
    offset = arith::ConstantIndexOp::create(builder, loc, 0);
    for (Temporary &temporary : temporaries) {
      Value bytes;
      if (temporary.bound) {
        builder.setInsertionPoint(prologueEnd);
        bytes = arith::ConstantIndexOp::create(builder, loc, *temporary.bound);
      } else {
        SmallVector<Value> sizes;
        int64_t fixed = getElementBytes(temporary.type);
        auto dynamic = temporary.op->getOperands().begin();
        for (int64_t size : temporary.type.getShape()) {
          if (!ShapedType::isDynamic(size)) {
            fixed *= size;
            continue;
          }
          Value dimension = *dynamic++;
          if (auto bound = getUpperBound(dimension)) {
            fixed *= *bound;
            continue;
          }
          FailureOr<Value> value = hoist(dimension);
          if (failed(value))
            return temporary.op->emitOpError("is a temporary whose size has no bound and is not known before the grid");
          sizes.push_back(*value);
        }
        builder.setInsertionPoint(prologueEnd);
        bytes = arith::ConstantIndexOp::create(builder, loc, fixed);
        for (Value size : sizes)
          bytes = arith::MulIOp::create(builder, loc, bytes, size);
        Value mask = arith::ConstantIndexOp::create(builder, loc, kAlignment - 1);
        Value alignment = arith::ConstantIndexOp::create(builder, loc, kAlignment);
        bytes = arith::AddIOp::create(builder, loc, bytes, mask);
        bytes = arith::MulIOp::create(builder, loc, arith::DivUIOp::create(builder, loc, bytes, alignment), alignment);
      }
      offsets.push_back(offset);
      offset = arith::AddIOp::create(builder, loc, offset, bytes);
    }
    Value bytes = arith::IndexCastOp::create(builder, loc, builder.getI64Type(), offset);
    auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
    Value memory =
        func::CallOp::create(builder, loc, "lamina_scratch", TypeRange{pointer}, ValueRange{bytes}).getResult(0);
    Value base = castPointer(memory, builder.getI8Type());
    block = memref::ReinterpretCastOp::create(builder, loc, bytesType(builder.getContext(), ShapedType::kDynamic), base,
                                              OpFoldResult(builder.getIndexAttr(0)), ArrayRef<OpFoldResult>{offset},
                                              ArrayRef<OpFoldResult>{builder.getIndexAttr(1)});
  }

  for (auto [number, temporary] : llvm::enumerate(temporaries)) {
    Location where = temporary.op->getLoc();
    Value memory;
    if (!usesScratch && temporary.type.hasStaticShape()) {
      builder.setInsertionPoint(prologueEnd);
      memory = memref::AllocaOp::create(builder, where, temporary.type, builder.getI64IntegerAttr(kAlignment));
    } else {
      Value source = block, offset;
      if (usesScratch) {
        offset = offsets[number];
      } else {
        builder.setInsertionPoint(prologueEnd);
        source = memref::AllocaOp::create(builder, where, bytesType(builder.getContext(), *temporary.bound),
                                          builder.getI64IntegerAttr(kAlignment));
        offset = arith::ConstantIndexOp::create(builder, where, 0);
      }
      builder.setInsertionPoint(temporary.op);
      memory = memref::ViewOp::create(builder, where, temporary.type, source, offset, temporary.op->getOperands());
    }
    for (Operation *user : llvm::make_early_inc_range(temporary.op->getUsers()))
      if (isa<memref::DeallocOp>(user))
        user->erase();
    if (temporary.op == prologueEnd)
      prologueEnd = temporary.op->getNextNode();
    temporary.op->replaceAllUsesWith(ValueRange{memory});
    temporary.op->erase();
  }
  return success();
}

LogicalResult KernelLowering::run() {
  // Bounds are found while the grid's loop is still there to give the range of its ids.
  if (failed(check()) || failed(collectTemporaries()))
    return failure();
  buildPrologue();
  if (forall)
    lowerForall();
  return placeTemporaries();
}

struct LowerGrid : lamina::impl::LowerGridBase<LowerGrid> {
  using LowerGridBase::LowerGridBase;

  LogicalResult initialize(MLIRContext *context) override { return OptionCheck(*this, context).atLeast(maxStack, 0); }

  void runOnOperation() override {
    bool anyScratch = false;
    for (auto kernel : llvm::make_early_inc_range(getOperation().getOps<kernel::FuncOp>())) {
      KernelLowering lowering(kernel, maxStack);
      if (failed(lowering.run()))
        return signalPassFailure();
      numScratch += lowering.usesScratch;
      anyScratch |= lowering.usesScratch;
    }
    if (!anyScratch || getOperation().lookupSymbol("lamina_scratch"))
      return;
    OpBuilder builder = OpBuilder::atBlockBegin(getOperation().getBody());
    auto pointer = LLVM::LLVMPointerType::get(&getContext());
    auto type = builder.getFunctionType({builder.getI64Type()}, {pointer});
    func::FuncOp::create(builder, getOperation().getLoc(), "lamina_scratch", type).setPrivate();
  }
};
} // namespace
