// Declarations of the passes from prim to linalg.
#ifndef LAMINA_CONVERSION_PRIM_TO_LINALG_PASSES_H
#define LAMINA_CONVERSION_PRIM_TO_LINALG_PASSES_H

#include "dialects/Kernel/Kernel.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Pass/Pass.h"

namespace lamina {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "lib/Conversion/PrimToLinalg/Passes.h.inc"
} // namespace lamina
#endif
