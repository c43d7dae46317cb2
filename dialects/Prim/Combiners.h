// Combiners of reductions: their identities.
#ifndef LAMINA_PRIM_COMBINERS_H
#define LAMINA_PRIM_COMBINERS_H

#include "dialects/Prim/Prim.h"

namespace lamina::prim {
/// What combines with x to x, for elements of this type.
mlir::TypedAttr getIdentity(Combiner combiner, mlir::Type elementType);
} // namespace lamina::prim
#endif
