// The kernel dialect: registration, verifiers, the syntax of kernel.func.
#include "dialects/Common/FunctionSyntax.h"
#include "dialects/Kernel/Kernel.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace lamina;
using namespace lamina::kernel;

#include "dialects/Kernel/KernelDialect.cpp.inc"
#include "dialects/Kernel/KernelEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Kernel/KernelAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/Kernel/KernelOps.cpp.inc"

void KernelDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Kernel/KernelAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Kernel/KernelOps.cpp.inc"
      >();
}

void FuncOp::build(OpBuilder &builder, OperationState &state, StringRef name, FunctionType type, int64_t outs) {
  state.addAttribute(SymbolTable::getSymbolAttrName(), builder.getStringAttr(name));
  state.addAttribute(getFunctionTypeAttrName(state.name), TypeAttr::get(type));
  state.addAttribute(getOutsAttrName(state.name), builder.getI64IntegerAttr(outs));
  state.addRegion();
}

ParseResult FuncOp::parse(OpAsmParser &parser, OperationState &result) { return parseFunction<FuncOp>(parser, result); }
void FuncOp::print(OpAsmPrinter &printer) { printFunction(printer, *this); }

unsigned FuncOp::getNumSymbols() {
  unsigned count = 0;
  auto use = [&](Attribute attr) {
    if (auto map = dyn_cast_or_null<AffineMapAttr>(attr))
      count = std::max(count, map.getValue().getNumSymbols());
  };
  for (unsigned i = 0; i < getNumArguments(); ++i)
    for (StringRef name : {"prim.sizes", "kernel.strides"})
      use(getArgAttr(i, name));
  walk([&](Operation *op) {
    if (op == getOperation())
      return;
    if (auto symbol = dyn_cast<SymbolOp>(op))
      count = std::max<unsigned>(count, symbol.getNumber() + 1);
    else if (isa<ScatterOp>(op) || op->getName().getDialectNamespace() == "prim")
      for (NamedAttribute attr : op->getAttrs())
        use(attr.getValue());
  });
  return count;
}

LogicalResult FuncOp::verify() {
  if (getFunctionType().getNumResults())
    return emitOpError("has results; a kernel writes its outputs to its last arguments");
  if (getBody().empty())
    return emitOpError("has no body");
  if (!getBody().hasOneBlock())
    return emitOpError("has more than one block");
  if (Block &block = getBody().front(); block.empty() || !isa<ReturnOp>(block.back()))
    return emitOpError("does not end with kernel.return");
  if (getOuts() > getNumArguments())
    return emitOpError("outs is ") << getOuts() << ", but there are " << getNumArguments() << " arguments";
  for (unsigned i = 0; i < getNumArguments(); ++i) {
    if (!isa<RankedTensorType, MemRefType>(getArgumentTypes()[i]))
      return emitOpError("argument ") << i << " is no ranked tensor or memref";
    if (!cast<ShapedType>(getArgumentTypes()[i]).hasStaticShape() && !getArgAttr(i, "prim.sizes"))
      return emitOpError("argument ") << i << " has a dynamic size and no prim.sizes";
  }
  return success();
}

LogicalResult ReturnOp::verify() {
  auto func = cast<FuncOp>((*this)->getParentOp());
  // On memrefs the outputs are written before the end.
  if (getNumOperands() == 0 &&
      llvm::all_of(func.getArgumentTypes().take_back(func.getOuts()), [](Type type) { return isa<MemRefType>(type); }))
    return success();
  if (getNumOperands() != func.getOuts())
    return emitOpError("returns ") << getNumOperands() << " values from a kernel with " << func.getOuts() << " outputs";
  for (uint64_t i = 0; i < func.getOuts(); ++i)
    if (getOperand(i).getType() != func.getArgumentTypes()[func.getNumIns() + i])
      return emitOpError("value ") << i << " has type " << getOperand(i).getType() << ", the output has "
                                   << func.getArgumentTypes()[func.getNumIns() + i];
  return success();
}

LogicalResult SymbolOp::verify() {
  if (getNumber() >= kMaxSymbols)
    return emitOpError("number is not in 0..") << kMaxSymbols - 1;
  return success();
}

LogicalResult ScatterOp::verify() {
  RankedTensorType updates = getUpdates().getType(), dest = getDest().getType();
  if (updates.getElementType() != dest.getElementType())
    return emitOpError("element types are ") << updates.getElementType() << " and " << dest.getElementType();
  if (getIndices().empty() || getIndices().size() != getDims().size())
    return emitOpError("has ") << getIndices().size() << " indices and " << getDims().size() << " dims";
  int64_t batch = cast<RankedTensorType>(getIndices().front().getType()).getRank();
  for (auto [number, index, dim] : llvm::enumerate(getIndices(), getDims())) {
    auto type = cast<RankedTensorType>(index.getType());
    if (!type.getElementType().isInteger(64) || type.getRank() != batch)
      return emitOpError("index ") << number << " has type " << type;
    if (dim < 0 || dim >= dest.getRank() || llvm::is_contained(getDims().take_front(number), dim))
      return emitOpError("dims has ") << dim << " twice, or it is no dimension of " << dest;
  }
  int64_t rank = batch + dest.getRank() - static_cast<int64_t>(getDims().size());
  if (updates.getRank() != rank)
    return emitOpError("updates have ") << updates.getRank() << " dimensions, not " << rank;
  if (getElements() && static_cast<int64_t>(*getElements()) < 1)
    return emitOpError("elements is ") << static_cast<int64_t>(*getElements());
  return verifyExprs(getSizes(), rank, "sizes", [&] { return emitOpError(); });
}

LogicalResult LaunchOp::verify() {
  return verifyExprs(getSymbols(), getSymbols().getNumResults(), "symbols", [&] { return emitOpError(); });
}

/// The type of the bits of an element: kernels of linalg have no signs.
static Type dropSign(Type element) {
  auto integer = dyn_cast<IntegerType>(element);
  return integer ? IntegerType::get(element.getContext(), integer.getWidth()) : element;
}

/// Whether a launch may pass a value of one type for an argument of the other; kernels' tensors become memrefs early.
static bool canPass(Type value, Type argument) {
  if (!isa<TensorType>(value) || !isa<TensorType>(argument))
    return true;
  return dropSign(getElementTypeOrSelf(value)) == dropSign(getElementTypeOrSelf(argument)) &&
         succeeded(verifyCompatibleShape(value, argument));
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto func = symbols.lookupNearestSymbolFrom<FuncOp>(*this, getKernelAttr());
  // A kernel that has become a function of the target keeps its grid.
  if (Operation *lowered = func ? nullptr : symbols.lookupNearestSymbolFrom(*this, getKernelAttr()))
    if (lowered->hasAttr("kernel.grid"))
      return success();
  if (!func)
    return emitOpError("launches @") << getKernel() << ", which is no kernel";
  if (static_cast<int64_t>(getIns().size()) != func.getNumIns() || getNumResults() != func.getOuts() ||
      (!getOuts().empty() && getOuts().size() != getNumResults()))
    return emitOpError("has ") << getIns().size() << " inputs and " << getNumResults() << " outputs, the kernel takes "
                               << func.getNumIns() << " and " << func.getOuts();
  SmallVector<Type> types(getIns().getTypes());
  llvm::append_range(types, getResultTypes());
  for (auto [i, type, argument] : llvm::enumerate(types, func.getArgumentTypes()))
    if (!canPass(type, argument))
      return emitOpError("argument ") << i << " has type " << type << ", the kernel's has " << argument;
  for (auto [i, out] : llvm::enumerate(getOuts()))
    if (Type result = getResultTypes()[i]; out.getType() != result)
      return emitOpError("output ") << i << " has type " << result << ", its destination has " << out.getType();
  // The symbols that the body uses beyond those of the sizes are not looked for: that would walk it at each launch.
  for (unsigned i = 0; i < func.getNumArguments(); ++i)
    if (auto sizes = func.getArgAttrOfType<AffineMapAttr>(i, "prim.sizes"))
      if (sizes.getValue().getNumSymbols() > getSymbols().getNumResults())
        return emitOpError("gives ") << getSymbols().getNumResults() << " symbols, argument " << i << " needs "
                                     << sizes.getValue().getNumSymbols();
  return success();
}

LogicalResult ViewOp::verify() {
  auto emit = [&] { return emitOpError(); };
  RankedTensorType type = getType();
  if (getOperand().getType().getElementType() != type.getElementType())
    return emitOpError("element types are ")
           << getOperand().getType().getElementType() << " and " << type.getElementType();
  if (failed(verifyExprs(getOffset(), 1, "offset", emit)) ||
      failed(verifyExprs(getStrides(), type.getRank(), "strides", emit)))
    return failure();
  return verifySizes(getSizes(), type.getShape(), "sizes", emit);
}

LogicalResult AllocOp::verify() {
  auto emit = [&] { return emitOpError(); };
  if (static_cast<int64_t>(getSlot()) < 0)
    return emitOpError("slot is negative");
  if (failed(verifySizes(getOffset(), ShapedType::kDynamic, "offset", emit)))
    return failure();
  return verifySizes(getBytes(), ShapedType::kDynamic, "bytes", emit);
}

LogicalResult KernelDialect::verifyOperationAttribute(Operation *op, NamedAttribute attr) {
  if (attr.getName() == "kernel.tile") {
    auto tile = dyn_cast<DenseI64ArrayAttr>(attr.getValue());
    auto isPower = [](int64_t size) { return size > 0 && llvm::isPowerOf2_64(size); };
    if (!tile || tile.size() != 3 || !llvm::all_of(tile.asArrayRef(), isPower))
      return op->emitOpError() << "kernel.tile is three powers of two: rows, columns, depth";
    return success();
  }
  if (attr.getName() == "kernel.elements") {
    auto elements = dyn_cast<IntegerAttr>(attr.getValue());
    if (!elements || !elements.getType().isInteger(64) || elements.getInt() < 1)
      return op->emitOpError() << "kernel.elements is a positive i64";
    return success();
  }
  if (attr.getName() == "kernel.in_place") {
    auto inputs = dyn_cast<DenseI64ArrayAttr>(attr.getValue());
    auto func = dyn_cast<FuncOp>(op);
    if (!inputs || !func || inputs.size() != static_cast<int64_t>(func.getOuts()) ||
        llvm::any_of(inputs.asArrayRef(), [&](int64_t input) { return input < -1 || input >= func.getNumIns(); }))
      return op->emitOpError() << "kernel.in_place is an input or -1 for each output of a kernel";
    return success();
  }
  if (attr.getName() == "kernel.descriptors" && !isa<BoolAttr>(attr.getValue()))
    return op->emitOpError() << "kernel.descriptors is a bool";
  bool grid = attr.getName() == "kernel.grid", arena = attr.getName() == "kernel.arena";
  if (!grid && !arena)
    return success();
  auto map = dyn_cast<AffineMapAttr>(attr.getValue());
  if (!map)
    return op->emitOpError() << attr.getName().getValue() << " is an affine map";
  return verifyExprs(map.getValue(), arena ? 1 : map.getValue().getNumResults(), attr.getName(),
                     [&] { return op->emitOpError(); });
}

LogicalResult KernelDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned index, NamedAttribute attr) {
  if (attr.getName() != "kernel.strides")
    return success();
  auto strides = dyn_cast<AffineMapAttr>(attr.getValue());
  auto func = dyn_cast<FunctionOpInterface>(op);
  if (!strides || !func || index >= func.getArgumentTypes().size())
    return op->emitOpError("kernel.strides is an affine map of a function argument");
  auto type = dyn_cast<ShapedType>(func.getArgumentTypes()[index]);
  if (!type || !type.hasRank())
    return success(); // a pointer, once the kernel is lowered
  return verifyExprs(strides.getValue(), type.getRank(), "kernel.strides", [&] { return op->emitOpError(); });
}
