// Declarations of the passes on math ops.
#ifndef LAMINA_TRANSFORMS_MATH_PASSES_H
#define LAMINA_TRANSFORMS_MATH_PASSES_H
#include "mlir/Pass/Pass.h"

namespace lamina {
#define GEN_PASS_DECL
#include "lib/Transforms/Math/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "lib/Transforms/Math/Passes.h.inc"
} // namespace lamina
#endif
