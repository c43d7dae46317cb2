// The kernel dialect: registration, verifiers, the syntax of kernel.func.
#include "dialects/Kernel/Kernel.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionImplementation.h"

using namespace mlir;
using namespace lamina;
using namespace lamina::kernel;

#include "dialects/Kernel/KernelDialect.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/Kernel/KernelOps.cpp.inc"

void KernelDialect::initialize() {
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

ParseResult FuncOp::parse(OpAsmParser &parser, OperationState &result) {
  auto buildType = [](Builder &builder, ArrayRef<Type> args, ArrayRef<Type> results, function_interface_impl::VariadicFlag,
                      std::string &) { return builder.getFunctionType(args, results); };
  return function_interface_impl::parseFunctionOp(parser, result, /*allowVariadic=*/false,
                                                  getFunctionTypeAttrName(result.name), buildType,
                                                  getArgAttrsAttrName(result.name), getResAttrsAttrName(result.name));
}

void FuncOp::print(OpAsmPrinter &printer) {
  function_interface_impl::printFunctionOp(printer, *this, /*isVariadic=*/false, getFunctionTypeAttrName(),
                                           getArgAttrsAttrName(), getResAttrsAttrName());
}

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
    else if (op->getName().getDialectNamespace() == "prim")
      for (NamedAttribute attr : op->getAttrs())
        use(attr.getValue());
  });
  return count;
}

LogicalResult FuncOp::verify() {
  if (getFunctionType().getNumResults())
    return emitOpError("has results; a kernel writes its outputs to its last arguments");
  if (getOuts() > getNumArguments())
    return emitOpError("outs is ") << getOuts() << ", but there are " << getNumArguments() << " arguments";
  for (unsigned i = 0; i < getNumArguments(); ++i) {
    auto type = dyn_cast<RankedTensorType>(getArgument(i).getType());
    if (type && !type.hasStaticShape() && !getArgAttr(i, "prim.sizes"))
      return emitOpError("argument ") << i << " has a dynamic size and no prim.sizes";
  }
  return success();
}

LogicalResult ReturnOp::verify() {
  auto func = cast<FuncOp>((*this)->getParentOp());
  // On memrefs the outputs are written before the end.
  if (getNumOperands() == 0 && llvm::all_of(func.getArgumentTypes().take_back(func.getOuts()),
                                            [](Type type) { return isa<MemRefType>(type); }))
    return success();
  if (getNumOperands() != func.getOuts())
    return emitOpError("returns ") << getNumOperands() << " values from a kernel with " << func.getOuts() << " outputs";
  for (uint64_t i = 0; i < func.getOuts(); ++i)
    if (getOperand(i).getType() != func.getArgument(func.getNumIns() + i).getType())
      return emitOpError("value ") << i << " has type " << getOperand(i).getType() << ", the output has "
                                   << func.getArgument(func.getNumIns() + i).getType();
  return success();
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto func = symbols.lookupNearestSymbolFrom<FuncOp>(*this, getKernelAttr());
  // A kernel that has become a function of the target keeps its grid.
  if (Operation *lowered = func ? nullptr : symbols.lookupNearestSymbolFrom(*this, getKernelAttr()))
    if (lowered->hasAttr("kernel.grid"))
      return success();
  if (!func)
    return emitOpError("launches @") << getKernel() << ", which is no kernel";
  if (static_cast<int64_t>(getIns().size()) != func.getNumIns() ||
      getNumResults() != func.getOuts() || (!getOuts().empty() && getOuts().size() != getNumResults()))
    return emitOpError("has ") << getIns().size() << " inputs and " << getNumResults() << " outputs, the kernel takes "
                               << func.getNumIns() << " and " << func.getOuts();
  return success();
}
