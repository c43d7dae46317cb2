// The C API of Lamina: registration.
#include "lib/Bindings/CAPI.h"
#include "lib/Register.h"
#include "mlir/CAPI/IR.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"

void laminaRegisterDialects(MlirContext context) {
  mlir::DialectRegistry registry;
  lamina::registerDialects(registry);
  unwrap(context)->appendDialectRegistry(registry);
  unwrap(context)->loadAllAvailableDialects();
}

void laminaRegisterPasses(void) { lamina::registerPasses(); }
