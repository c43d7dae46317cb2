// Running combinations along a dimension, as a loop over its positions.
#ifndef LAMINA_CONVERSION_PRIM_TO_LINALG_SCAN_H
#define LAMINA_CONVERSION_PRIM_TO_LINALG_SCAN_H

#include "dialects/Prim/Prim.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace lamina {

/// What a scan does; `elementType` is prim's, which has the sign.
struct ScanInfo {
  int64_t dim;
  prim::Combiner combiner;
  mlir::Type elementType;
};

/// The scan of a tensor: an `scf.for` with the attribute `lamina.scan`, whose last result it is. `init`, if given, is
/// overwritten.
mlir::Value buildScan(mlir::OpBuilder &b, mlir::Location loc, mlir::Value operand, const ScanInfo &info,
                      mlir::Value init = nullptr);
/// If `op` was made by buildScan: what it does, and on which tensor.
std::optional<std::pair<ScanInfo, mlir::Value>> matchScan(mlir::Operation *op);

} // namespace lamina
#endif
