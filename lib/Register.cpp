// Registration of all dialects and passes of Lamina.
#include "lib/Register.h"
#include "dialects/Kernel/Kernel.h"
#include "dialects/Prim/Prim.h"
#include "lib/Pipelines/Pipelines.h"
#include "lib/Target/CPU/Compile.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include <mutex>

// The build lists every Passes.td of lib/ here: their declarations, and a function that registers them all.
#include "lib/AllPasses.inc"

void lamina::registerDialects(mlir::DialectRegistry &registry) {
  registry.insert<prim::PrimDialect, kernel::KernelDialect>();
  cpu::registerTranslations(registry);
}

void lamina::registerPasses() {
  static std::once_flag once;
  std::call_once(once, [] {
    registerAllPasses();
    registerCPUPipelines();
  });
}
