// lamina-plan-memory: gives every launch of a host program its destinations.
#include "dialects/Kernel/Kernel.h"
#include "dialects/Prim/PrimSizes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace lamina {
#define GEN_PASS_DECL_PLANMEMORY
#define GEN_PASS_DEF_PLANMEMORY
#include "lib/Transforms/Planning/Passes.h.inc"
} // namespace lamina

using namespace mlir;
using namespace lamina;

namespace {

/// Slots begin at multiples of a cache line.
constexpr int64_t kAlignment = 64;

/// A size in bytes as `scale` times an expression that is not constant, or a constant when `symbolic` is 1.
struct Bytes {
  int64_t scale;
  AffineExpr symbolic;
  AffineExpr expr() const { return symbolic * scale; }
  bool comparable(const Bytes &other) const { return symbolic == other.symbolic; }
};

int64_t elementBytes(Type type) { return (type.getIntOrFloatBitWidth() + 7) / 8; }

Bytes getBytes(ArrayRef<AffineExpr> sizes, Type element, MLIRContext *context) {
  int64_t scale = elementBytes(element);
  AffineExpr symbolic = getAffineConstantExpr(1, context);
  for (AffineExpr size : sizes) {
    if (auto constant = dyn_cast<AffineConstantExpr>(size))
      scale *= constant.getValue();
    else
      symbolic = symbolic * size;
  }
  if (isa<AffineConstantExpr>(symbolic))
    scale = llvm::alignTo(scale, kAlignment);
  return {scale, simplifySize(symbolic)};
}

struct Slot {
  Bytes bytes;
  SmallVector<kernel::AllocOp> allocs;
  unsigned freeFrom = 0; // first launch that may write it
};

class Planner {
public:
  explicit Planner(func::FuncOp func) : func(func), sizes(func), context(func.getContext()) {}

  LogicalResult run();
  unsigned temporaries = 0, slotCount = 0;

private:
  /// The launch result that a value is a view of, or null.
  static Value root(Value value) {
    while (auto view = value.getDefiningOp<kernel::ViewOp>())
      value = view.getOperand();
    return value;
  }
  /// The launch result whose memory a value is or is a view of: what launches in place change stays the same memory.
  static Value owner(Value value);
  LogicalResult check();
  LogicalResult checkOutputs(kernel::LaunchOp launch);
  /// Whether the value is all of its root's memory, in order: the caller can allocate it as the root.
  bool isWhole(Value value);
  Value destination(OpBuilder &builder, OpResult result);
  Slot &findSlot(const Bytes &bytes, unsigned launch);
  LogicalResult bindResults();
  void layOut();

  func::FuncOp func;
  SizeAnalysis sizes;
  MLIRContext *context;
  DenseMap<Value, Value> resultMemory; // owner -> argument
  DenseMap<Value, unsigned> lastUse;   // owner -> number of the last launch that reads it
  DenseMap<Value, Value> memory;       // owner -> its memory
  std::vector<Slot> slots;
};

Value Planner::owner(Value value) {
  for (;;) {
    value = root(value);
    auto launch = value.getDefiningOp<kernel::LaunchOp>();
    auto kernel = launch ? SymbolTable::lookupNearestSymbolFrom<kernel::FuncOp>(launch, launch.getKernelAttr())
                         : kernel::FuncOp();
    auto inPlace = kernel ? kernel->getAttrOfType<DenseI64ArrayAttr>("kernel.in_place") : DenseI64ArrayAttr();
    int64_t input = inPlace ? inPlace[cast<OpResult>(value).getResultNumber()] : -1;
    if (input < 0)
      return value;
    value = launch.getIns()[input];
  }
}

/// The host is a straight line of launches without memory, and views.
LogicalResult Planner::check() {
  if (!func.getBody().hasOneBlock())
    return func.emitOpError("has more than one block");
  for (Operation &op : func.getBody().front()) {
    if (auto launch = dyn_cast<kernel::LaunchOp>(op)) {
      if (failed(checkOutputs(launch)))
        return failure();
    } else if (!isa<kernel::ViewOp, func::ReturnOp>(op)) {
      return op.emitOpError("is no operation of a host function that has no memory yet");
    }
  }
  return success();
}

LogicalResult Planner::checkOutputs(kernel::LaunchOp launch) {
  if (!launch.getOuts().empty())
    return launch.emitOpError("has memory for its outputs already");
  for (auto [i, result] : llvm::enumerate(launch.getResults())) {
    auto type = dyn_cast<RankedTensorType>(result.getType());
    if (!type || !type.getElementType().isIntOrFloat())
      return launch.emitOpError("output ")
             << i << " has type " << result.getType() << ", and is no tensor of integers or floats";
    if (hasUnknownSize(sizes.getSizes(result)))
      return launch.emitOpError("output ") << i << " has a size that the kernel does not say";
  }
  return success();
}

static Exprs getContiguousStrides(ArrayRef<AffineExpr> shape, MLIRContext *context) {
  Exprs strides(shape.size());
  AffineExpr stride = getAffineConstantExpr(1, context);
  for (int64_t i = static_cast<int64_t>(shape.size()) - 1; i >= 0; --i) {
    strides[i] = stride;
    stride = simplifySize(stride * shape[i]);
  }
  return strides;
}

bool Planner::isWhole(Value value) {
  auto view = value.getDefiningOp<kernel::ViewOp>();
  if (!view)
    return true;
  Exprs shape(sizes.getSizes(value)), strides = getContiguousStrides(shape, context);
  for (auto [size, stride, expected] : llvm::zip_equal(shape, view.getStrides().getResults(), strides))
    if (size != 1 && simplifySize(stride) != expected)
      return false;
  return simplifySize(view.getOffset().getResult(0)) == 0 &&
         getNumElements(shape, context) == getNumElements(sizes.getSizes(view.getOperand()), context) &&
         isWhole(view.getOperand());
}

LogicalResult Planner::bindResults() {
  Operation *terminator = func.getBody().front().getTerminator();
  unsigned inputs = func.getNumArguments();
  SmallVector<Value> returned(terminator->getOperands());
  for (auto [i, value] : llvm::enumerate(returned)) {
    Value source = owner(value);
    if (!source.getDefiningOp<kernel::LaunchOp>() || resultMemory.contains(source))
      return terminator->emitOpError("returns value ") << i << " that is no output of a launch of its own";
    if (!isWhole(value))
      return terminator->emitOpError("returns value ") << i << " that is not all of an output, in order";
    SmallVector<NamedAttribute> attrs;
    auto type = cast<RankedTensorType>(value.getType());
    if (!type.hasStaticShape())
      attrs.push_back({StringAttr::get(context, "prim.sizes"), getExprs(context, sizes.getSizes(value))});
    if (failed(func.insertArgument(inputs + i, type, DictionaryAttr::get(context, attrs), value.getLoc())))
      return failure();
    resultMemory[source] = func.getArgument(inputs + i);
  }
  OpBuilder builder(terminator);
  func::ReturnOp::create(builder, terminator->getLoc());
  terminator->erase();
  func.setFunctionType(FunctionType::get(context, func.getFunctionType().getInputs(), {}));
  func.removeResAttrsAttr();
  func->setAttr("kernel.results", builder.getI64IntegerAttr(returned.size()));
  return success();
}

Slot &Planner::findSlot(const Bytes &bytes, unsigned launch) {
  // Best fit; else the largest free slot grows, else a new one.
  Slot *fits = nullptr, *largest = nullptr;
  for (Slot &slot : slots) {
    if (slot.freeFrom > launch || !slot.bytes.comparable(bytes))
      continue;
    if (slot.bytes.scale >= bytes.scale && (!fits || slot.bytes.scale < fits->bytes.scale))
      fits = &slot;
    if (!largest || slot.bytes.scale > largest->bytes.scale)
      largest = &slot;
  }
  if (fits)
    return *fits;
  if (largest) {
    largest->bytes = bytes;
    return *largest;
  }
  slots.push_back({bytes, {}, 0});
  return slots.back();
}

Value Planner::destination(OpBuilder &builder, OpResult result) {
  auto type = cast<RankedTensorType>(result.getType());
  Value source = owner(result), given = resultMemory.lookup(source);
  if (Value made = source == result ? given : memory.lookup(source)) {
    if (made.getType() == type)
      return made;
    Exprs shape(sizes.getSizes(result));
    return kernel::ViewOp::create(builder, result.getLoc(), type, made, getExprs(context, ArrayRef<int64_t>{0}),
                                  getExprs(context, shape), getExprs(context, getRowMajorStrides(shape, context)));
  }
  auto zero = getExprs(context, ArrayRef<int64_t>{0});
  return kernel::AllocOp::create(builder, result.getLoc(), type, builder.getI64IntegerAttr(0), zero, zero);
}

/// Offsets of the slots, one after the other.
void Planner::layOut() {
  AffineExpr offset = getAffineConstantExpr(0, context);
  for (auto [number, slot] : llvm::enumerate(slots)) {
    AffineExpr bytes = slot.bytes.expr();
    if (!isa<AffineConstantExpr>(bytes))
      bytes = bytes.ceilDiv(kAlignment) * kAlignment;
    for (kernel::AllocOp alloc : slot.allocs) {
      alloc.setSlot(number);
      alloc.setOffset(getExprs(context, {offset}).getValue());
    }
    offset = simplifySize(offset + bytes);
  }
  func->setAttr("kernel.arena", getExprs(context, {offset}));
}

LogicalResult Planner::run() {
  if (failed(check()) || failed(bindResults()))
    return failure();
  SmallVector<kernel::LaunchOp> launches(func.getOps<kernel::LaunchOp>());
  for (auto [number, launch] : llvm::enumerate(launches))
    for (Value input : launch.getIns())
      lastUse[owner(input)] = number;
  for (auto [number, launch] : llvm::enumerate(launches)) {
    OpBuilder builder(launch);
    SmallVector<Value> outs;
    for (OpResult result : launch->getResults()) {
      Value out = destination(builder, result);
      outs.push_back(out);
      auto alloc = out.getDefiningOp<kernel::AllocOp>();
      if (owner(result) == result)
        memory[result] = out;
      if (!alloc || owner(result) != result)
        continue;
      Bytes bytes =
          getBytes(sizes.getSizes(result), cast<RankedTensorType>(result.getType()).getElementType(), context);
      alloc.setBytes(getExprs(context, {bytes.expr()}).getValue());
      Slot &slot = findSlot(bytes, number);
      slot.allocs.push_back(alloc);
      auto last = lastUse.find(result);
      slot.freeFrom = (last == lastUse.end() ? number : last->second) + 1;
      ++temporaries;
    }
    launch.getOutsMutable().assign(outs);
  }
  layOut();
  slotCount = slots.size();
  return success();
}

struct PlanMemory : lamina::impl::PlanMemoryBase<PlanMemory> {
  using PlanMemoryBase::PlanMemoryBase;

  void runOnOperation() override {
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      if (func.isExternal())
        continue;
      Planner planner(func);
      if (failed(planner.run()))
        return signalPassFailure();
      numTemporaries += planner.temporaries;
      numSlots += planner.slotCount;
    }
  }
};

} // namespace
