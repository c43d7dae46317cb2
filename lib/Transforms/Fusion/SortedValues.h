// Sorts as kernels make them: of two results, only the indices.
#ifndef LAMINA_FUSION_SORTED_VALUES_H
#define LAMINA_FUSION_SORTED_VALUES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace lamina {

/// Reads the values of each sort in the operand, at its indices, so that no op of the function is used for two results.
void gatherSortedValues(mlir::func::FuncOp func);
/// The result of an op that a kernel makes: the indices of a sort, or the only one.
mlir::Value getKernelValue(mlir::Operation *op);

} // namespace lamina
#endif
