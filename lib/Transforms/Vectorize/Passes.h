// Declarations of the passes that vectorize.
#ifndef LAMINA_TRANSFORMS_VECTORIZE_PASSES_H
#define LAMINA_TRANSFORMS_VECTORIZE_PASSES_H
#include "mlir/Pass/Pass.h"

namespace mlir {
namespace affine {
class AffineDialect;
}
namespace arith {
class ArithDialect;
}
namespace linalg {
class LinalgDialect;
}
namespace memref {
class MemRefDialect;
}
namespace scf {
class SCFDialect;
}
namespace vector {
class VectorDialect;
}
} // namespace mlir

namespace lamina {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "lib/Transforms/Vectorize/Passes.h.inc"
} // namespace lamina
#endif
