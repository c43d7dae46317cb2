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
/// the result of an `scf.for` with the attribute `lamina.sort`. The loop that sorts a row has `lamina.sort_row`.
/// `init`, if given, is overwritten.
mlir::Value buildSort(mlir::OpBuilder &b, mlir::Location loc, mlir::Value operand, const SortInfo &info,
                      mlir::Value init = nullptr);
/// If `op` is a loop over rows made by buildSort: what it does, and on which tensor.
std::optional<std::pair<SortInfo, mlir::Value>> matchSort(mlir::Operation *op);

/// The same of the loop that sorts one row, of whose results the first has the indices; without rows that is all.
std::optional<std::pair<SortInfo, mlir::Value>> matchRowSort(mlir::Operation *op);
/// Whether `x` goes before `y` although it is after it in the operand; both are scalars or blocks of the compute type.
mlir::Value goesBefore(mlir::OpBuilder &b, mlir::Location loc, const SortInfo &info, mlir::Value x, mlir::Value y);

} // namespace lamina
#endif
