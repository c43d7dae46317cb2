// The syntax of the dialects' own functions, which is that of func.func.
#ifndef LAMINA_COMMON_FUNCTIONSYNTAX_H
#define LAMINA_COMMON_FUNCTIONSYNTAX_H

#include "mlir/Interfaces/FunctionImplementation.h"

namespace lamina {

template <typename FuncOp> mlir::ParseResult parseFunction(mlir::OpAsmParser &parser, mlir::OperationState &result) {
  auto buildType = [](mlir::Builder &builder, llvm::ArrayRef<mlir::Type> args, llvm::ArrayRef<mlir::Type> results,
                      mlir::function_interface_impl::VariadicFlag,
                      std::string &) { return builder.getFunctionType(args, results); };
  return mlir::function_interface_impl::parseFunctionOp(
      parser, result, /*allowVariadic=*/false, FuncOp::getFunctionTypeAttrName(result.name), buildType,
      FuncOp::getArgAttrsAttrName(result.name), FuncOp::getResAttrsAttrName(result.name));
}

template <typename FuncOp> void printFunction(mlir::OpAsmPrinter &printer, FuncOp op) {
  mlir::function_interface_impl::printFunctionOp(printer, op, /*isVariadic=*/false, op.getFunctionTypeAttrName(),
                                                 op.getArgAttrsAttrName(), op.getResAttrsAttrName());
}

} // namespace lamina
#endif
