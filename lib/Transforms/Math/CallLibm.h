// Calls of the C library in place of math ops.
#ifndef LAMINA_TRANSFORMS_MATH_CALLLIBM_H
#define LAMINA_TRANSFORMS_MATH_CALLLIBM_H
#include "mlir/IR/BuiltinOps.h"

namespace lamina::math {
/// Replaces a math op on f32 or f64 by calls of libm, declared in `module`; false if libm has no such function, or if
/// the op has an instruction on every target (sqrt, fma, floor, ...).
bool callLibm(mlir::ModuleOp module, mlir::Operation *op);
} // namespace lamina::math
#endif
