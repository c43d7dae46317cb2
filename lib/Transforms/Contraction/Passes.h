// Passes that turn contractions and convolutions into loops around register kernels.
#ifndef LAMINA_TRANSFORMS_CONTRACTION_PASSES_H
#define LAMINA_TRANSFORMS_CONTRACTION_PASSES_H

#include "mlir/Pass/Pass.h"

namespace lamina {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "lib/Transforms/Contraction/Passes.h.inc"
} // namespace lamina
#endif
