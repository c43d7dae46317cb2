// Lists of size expressions: affine maps ()[s0, s1, ...] -> (e0, e1, ...), written [e0, e1, ...] in the IR.
#ifndef LAMINA_COMMON_EXPRS_H
#define LAMINA_COMMON_EXPRS_H

#include "mlir/IR/AffineMap.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpImplementation.h"

namespace lamina {

using Exprs = llvm::SmallVector<mlir::AffineExpr>;

/// Symbols have fixed names in text, s0 to s63, so that a list of expressions can be read on its own.
constexpr unsigned kMaxSymbols = 64;

/// The map with these results and as many symbols as they use, so that equal lists are equal attributes.
mlir::AffineMapAttr getExprs(mlir::MLIRContext *context, llvm::ArrayRef<mlir::AffineExpr> exprs);
/// The list of constants `values`.
mlir::AffineMapAttr getExprs(mlir::MLIRContext *context, llvm::ArrayRef<int64_t> values);
/// The sizes of a type without `?`.
Exprs getStaticSizes(mlir::RankedTensorType type);
/// The type with these sizes: constants are static, all else is `?`.
mlir::RankedTensorType getTensorType(llvm::ArrayRef<mlir::AffineExpr> sizes, mlir::Type elementType);

/// The expression as text, for messages.
std::string toString(mlir::AffineExpr expr);

/// Checks that a list has `count` entries over symbols below kMaxSymbols, without division by a constant below 1.
/// `what` names the list in the message.
mlir::LogicalResult verifyExprs(mlir::AffineMap exprs, size_t count, llvm::StringRef what,
                                llvm::function_ref<mlir::InFlightDiagnostic()> emitError);
/// Checks also that the constants are the static sizes of `shape`, and not negative.
mlir::LogicalResult verifySizes(mlir::AffineMap sizes, llvm::ArrayRef<int64_t> shape, llvm::StringRef what,
                                llvm::function_ref<mlir::InFlightDiagnostic()> emitError);

/// `custom<Exprs>` of the assembly formats.
mlir::ParseResult parseExprs(mlir::OpAsmParser &parser, mlir::AffineMapAttr &exprs);
void printExprs(mlir::OpAsmPrinter &printer, mlir::Operation *op, mlir::AffineMapAttr exprs);

} // namespace lamina
#endif
