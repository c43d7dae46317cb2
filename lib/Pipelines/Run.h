// Parsing modules and running pass pipelines, with diagnostics as text and crashes as a result.
#ifndef LAMINA_PIPELINES_RUN_H
#define LAMINA_PIPELINES_RUN_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <string>

namespace lamina {

enum class RunStatus { Success, Failure, Crash };

/// How a piece of compiler work ended. `message` has all errors with their locations; after a crash, what was running.
/// After a crash the MLIR context must not be used again.
struct RunResult {
  RunStatus status;
  std::string message;
};

/// Runs `work` (which returns whether it succeeded) and collects the diagnostics of its context.
RunResult runCollecting(mlir::MLIRContext *context, llvm::function_ref<bool()> work);

/// Runs a textual pass pipeline ("builtin.module(...)", or passes on the operation itself) on `op`.
RunResult runPipeline(mlir::Operation *op, llvm::StringRef pipeline);

RunResult parseModule(mlir::MLIRContext *context, llvm::StringRef text, llvm::StringRef name,
                      mlir::OwningOpRef<mlir::ModuleOp> &result);

} // namespace lamina
#endif
