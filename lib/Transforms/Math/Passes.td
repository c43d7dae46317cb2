// The pass that expands math ops on f32.
#ifndef LAMINA_TRANSFORMS_MATH_PASSES
#define LAMINA_TRANSFORMS_MATH_PASSES
include "mlir/Pass/PassBase.td"

def ExpandMath : Pass<"lamina-expand-math", "mlir::ModuleOp"> {
  let summary = "replace math ops on f32 by polynomials, and other transcendental ones by calls of libm";
  let description = [{
    Each function becomes straight-line code of arith, math.fma and vector ops, the same for a scalar as for each lane of a
    vector, so that a remainder computed by scalars has the bits that a vector would give. No fast-math flag is used or
    needed: every fused multiply-add is explicit. docs/numerics.md lists the error of each function.

    A division of f32 vectors by a scalar from outside the loop becomes products with its reciprocal that give the same
    bits, where no operand is so large or small that they could not.

    Ops on tensors are left alone. Ops on f64, and functions that have no expansion, become calls of libm, one a lane; the functions are declared in the
    module. What remains of the math dialect has an LLVM intrinsic that is one or a few instructions (sqrt, fma, absf,
    floor, ceil, trunc, round, roundeven, copysign, ...): convert-math-to-llvm is all that must follow, and
    convert-math-to-libm, which would turn those into calls, must not. The cost is linear in the number of math ops.
  }];
  let statistics = [
    Statistic<"expanded", "expanded", "Number of math ops replaced by polynomials">,
    Statistic<"called", "called", "Number of math ops replaced by calls of libm">
  ];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::func::FuncDialect", "mlir::math::MathDialect",
                           "mlir::scf::SCFDialect", "mlir::vector::VectorDialect"];
}
#endif
