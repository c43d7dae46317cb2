// Elementwise prim ops on scalars: arith and math.
#ifndef LAMINA_CONVERSION_PRIM_TO_LINALG_SCALAR_BODY_H
#define LAMINA_CONVERSION_PRIM_TO_LINALG_SCALAR_BODY_H

#include "dialects/Prim/Prim.h"

namespace lamina {

/// The type that a prim element has in linalg: unsigned integers lose their sign.
mlir::Type getScalarType(mlir::Type elementType);
/// The type in which a prim element is computed and accumulated: f32 for f16 and bf16.
mlir::Type getComputeType(mlir::Type elementType);
/// Widening or rounding between a float and its compute type; the value itself where the types are equal.
mlir::Value castFloat(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value, mlir::Type to);
/// A scalar constant.
mlir::Value getScalarConstant(mlir::OpBuilder &b, mlir::Location loc, mlir::Type type, double value);

/// Whether `op` is elementwise and has a scalar form.
bool hasScalarForm(mlir::Operation *op);
/// Whether the scalar form costs more than reading its result from memory would.
bool isExpensive(mlir::Operation *op);
/// The scalar form of elementwise op `op` of prim on operands `x`.
mlir::Value buildScalar(mlir::OpBuilder &b, mlir::Operation *op, mlir::ValueRange x);

/// `a` and `b` combined; both have the compute type of `elementType`.
mlir::Value buildCombination(mlir::OpBuilder &b, mlir::Location loc, prim::Combiner combiner, mlir::Type elementType,
                             mlir::Value lhs, mlir::Value rhs);
/// The identity of a combination, of the compute type of `elementType`.
mlir::TypedAttr getIdentity(mlir::OpBuilder &b, prim::Combiner combiner, mlir::Type elementType);

} // namespace lamina
#endif
