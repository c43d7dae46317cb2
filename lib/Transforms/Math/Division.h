// Division by what does not change in a loop.
#ifndef LAMINA_TRANSFORMS_MATH_DIVISION_H
#define LAMINA_TRANSFORMS_MATH_DIVISION_H
#include "lib/Transforms/Math/Emitter.h"

namespace lamina::math {

/// The quotient, with the bits of the division, of an f32 vector by a broadcast scalar that is defined outside the
/// loop around `op`; null where that is not so. A division of a vector takes 16 cycles, the products 3.
/// Source: Markstein, "Computation of elementary functions on the IBM RISC System/6000 processor", 1990, theorem 8.
mlir::Value divideByInvariant(mlir::arith::DivFOp op);

} // namespace lamina::math
#endif
