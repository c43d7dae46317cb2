// Registration of all dialects and passes of Lamina.
#include "lib/Register.h"
#include "dialects/Kernel/Kernel.h"
#include "dialects/Prim/Prim.h"
#include "lib/Pipelines/Pipelines.h"
#include "lib/Target/CPU/Compile.h"
#include "lib/Transforms/Lowering/Passes.h"
#include "mlir/IR/DialectRegistry.h"
#include <mutex>

void lamina::registerDialects(mlir::DialectRegistry &registry) {
  registry.insert<prim::PrimDialect, kernel::KernelDialect>();
  cpu::registerTranslations(registry);
}

void lamina::registerPasses() {
  static std::once_flag once;
  std::call_once(once, [] {
    registerLoweringPasses();
    registerCPUPipelines();
  });
}
