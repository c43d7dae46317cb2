// From a module in the LLVM dialect to LLVM IR, assembly text or objects for a CPU.
#ifndef LAMINA_TARGET_CPU_COMPILE_H
#define LAMINA_TARGET_CPU_COMPILE_H

#include "mlir/Support/LLVM.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace mlir {
class DialectRegistry;
class ModuleOp;
} // namespace mlir

namespace lamina::cpu {

/// A processor as LLVM knows it. The name alone is not enough: a virtual machine may show an old model with the
/// features of a new one, so both are always given to the code generator.
struct Processor {
  std::string name;
  /// "+avx2,-sse4a,...": every feature that LLVM knows, switched on or off.
  std::string features;
};
const Processor &getHostProcessor();

struct CompileOptions {
  /// The host, if empty.
  Processor processor;
  /// 0: no IR passes, 1: the short list that register kernels need, 2 and 3: LLVM's own -O2 and -O3.
  int level = 1;
  /// The widest vectors that LLVM may use, in bits; 0: the widest that the processor has.
  int vectorWidth = 0;
  /// The objects that may be made at once; 0: one for each hardware thread.
  int threads = 0;
};

enum class EmitKind { LLVMIR, Assembly, Object };

/// One text (or object) for the whole module.
llvm::Expected<std::string> emit(mlir::ModuleOp module, EmitKind kind, const CompileOptions &options);

/// Objects that together hold the module, made in parallel: its functions are dealt out by size.
llvm::Expected<std::vector<std::string>> compileObjects(mlir::ModuleOp module, const CompileOptions &options);

/// The translations to LLVM IR of the dialects that may be left in a module.
void registerTranslations(mlir::DialectRegistry &registry);

} // namespace lamina::cpu
#endif
