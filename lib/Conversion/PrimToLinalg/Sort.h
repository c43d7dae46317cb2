// Stable sorting along a dimension: where each element of the result is in the operand.
#ifndef LAMINA_CONVERSION_PRIM_TO_LINALG_SORT_H
#define LAMINA_CONVERSION_PRIM_TO_LINALG_SORT_H

#include "dialects/Prim/Prim.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace lamina {

/// What a sort does; `elementType` is prim's, which has the sign.
struct SortInfo {
  int64_t dim;
  bool descending;
  mlir::Type elementType;
};

/// The indices that sort a tensor, as i64. If it has rows, dimensions other than `dim` that are not of size 1, they are
/// the result of an `scf.for` with the attribute `lamina.sort`. `init`, if given, is overwritten.
mlir::Value buildSort(mlir::OpBuilder &b, mlir::Location loc, mlir::Value operand, const SortInfo &info,
                      mlir::Value init = nullptr);
/// If `op` is a loop over rows made by buildSort: what it does, and on which tensor.
std::optional<std::pair<SortInfo, mlir::Value>> matchSort(mlir::Operation *op);

} // namespace lamina
#endif
