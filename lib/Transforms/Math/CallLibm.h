// Calls of the C library in place of math ops.
#ifndef LAMINA_TRANSFORMS_MATH_CALLLIBM_H
#define LAMINA_TRANSFORMS_MATH_CALLLIBM_H
#include "mlir/IR/Builders.h"

namespace lamina::math {
/// Replaces a math op on f32 or f64 by calls of libm, declared in its module; false if libm has no such function, or if
/// the op has an instruction on every target (sqrt, fma, floor, ...).
bool callLibm(mlir::Operation *op);
/// The call of libm's function of `op` on f32 or f64 scalars.
mlir::Value callLibm(mlir::OpBuilder &builder, mlir::Operation *op, mlir::ValueRange operands);
} // namespace lamina::math
#endif
