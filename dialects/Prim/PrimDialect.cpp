// The prim dialect: registration.
#include "dialects/Prim/Prim.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace lamina;
using namespace lamina::prim;

#include "dialects/Prim/PrimDialect.cpp.inc"
#include "dialects/Prim/PrimEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Prim/PrimAttrs.cpp.inc"

void PrimDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Prim/PrimAttrs.cpp.inc"
      >();
  registerPrimDialectOperations(this);
}

Operation *PrimDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location loc) {
  if (auto elements = dyn_cast<ElementsAttr>(value))
    return ConstantOp::create(builder, loc, type, elements);
  return nullptr;
}
