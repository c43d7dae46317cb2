// Registration of all dialects and passes of Lamina.
#include "lib/Register.h"
#include "dialects/Kernel/Kernel.h"
#include "dialects/Prim/Prim.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include <mutex>

namespace lamina {
// The generated registration undefines its macros, so each group defines them again.
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "lib/Transforms/Fusion/Passes.h.inc"
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "lib/Transforms/Planning/Passes.h.inc"
} // namespace lamina

void lamina::registerDialects(mlir::DialectRegistry &registry) {
  registry.insert<prim::PrimDialect, kernel::KernelDialect>();
}

void lamina::registerPasses() {
  static std::once_flag once;
  std::call_once(once, [] {
    registerFusionPasses();
    registerPlanningPasses();
  });
}
