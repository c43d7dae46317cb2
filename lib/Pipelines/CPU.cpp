// The named pipelines of the CPU target.
#include "lib/Pipelines/Pipelines.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

/// The order matters: math ops that are calls of libm are made so before convert-math-to-llvm, whose expansions of
/// expm1 and log1p cancel; vector transfers become loops before loops become branches; amx and cf are converted
/// together because a tile may be the argument of a block; strided views are taken apart twice, since the conversion of
/// vectors may make more of them. Reductions may be reassociated (docs/numerics.md).
static constexpr llvm::StringLiteral kToLLVM =
    "lamina-expand-math,convert-vector-to-scf,expand-strided-metadata,affine-expand-index-ops,lower-affine,"
    "canonicalize,cse,loop-invariant-code-motion,convert-scf-to-cf,"
    "convert-to-llvm{filter-dialects=amx,cf,arith,index,memref},"
    "convert-vector-to-llvm{enable-x86vector reassociate-fp-reductions},"
    "convert-math-to-llvm,convert-arith-to-llvm,finalize-memref-to-llvm,convert-func-to-llvm,"
    "convert-cf-to-llvm,convert-index-to-llvm,convert-ub-to-llvm,reconcile-unrealized-casts,lamina-mask-as-integers,"
    "canonicalize,cse";

void lamina::registerCPUPipelines() {
  // Parsed when it is used, as upstream's passes may be registered after Lamina's.
  registerPassPipeline(
      "lamina-cpu-to-llvm", "functions on memrefs and vectors become the LLVM dialect",
      [](OpPassManager &passes, StringRef options, function_ref<LogicalResult(const Twine &)> error) -> LogicalResult {
        if (!options.empty())
          return error("lamina-cpu-to-llvm has no options");
        if (passes.getOpName().value_or("") != ModuleOp::getOperationName())
          return error("lamina-cpu-to-llvm is a pipeline of builtin.module");
        return parsePassPipeline(kToLLVM, passes);
      },
      [](function_ref<void(const mlir::detail::PassOptions &)> visit) { visit(mlir::detail::PassOptions()); });
}
