// Declarations of the passes that take kernels and hosts down to functions on memory.
#ifndef LAMINA_TRANSFORMS_LOWERING_PASSES_H
#define LAMINA_TRANSFORMS_LOWERING_PASSES_H

#include "mlir/Pass/Pass.h"

namespace lamina {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "lib/Transforms/Lowering/Passes.h.inc"
} // namespace lamina
#endif
