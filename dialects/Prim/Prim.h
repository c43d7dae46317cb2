// The prim dialect's C++ classes.
#ifndef LAMINA_PRIM_H
#define LAMINA_PRIM_H

#include "dialects/Common/Exprs.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/Prim/PrimDialect.h.inc"
#include "dialects/Prim/PrimEnums.h.inc"

namespace lamina::prim {
class PrimDialect;
/// Whether the types agree in number, element type, rank and every size that is static in both.
bool areCompatibleTypes(mlir::TypeRange lhs, mlir::TypeRange rhs);
} // namespace lamina::prim

#define GET_ATTRDEF_CLASSES
#include "dialects/Prim/PrimAttrs.h.inc"
#define GET_OP_CLASSES
#include "dialects/Prim/PrimOps.h.inc"

#endif
