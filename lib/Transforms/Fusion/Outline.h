// Outline: from a group of ops to a kernel.func and the launch of it.
#ifndef LAMINA_FUSION_OUTLINE_H
#define LAMINA_FUSION_OUTLINE_H

#include "dialects/Kernel/Kernel.h"
#include "lib/Transforms/Fusion/KernelGraph.h"
#include "llvm/ADT/StringMap.h"

namespace lamina {

/// Kernels of a module by their text, so that equal ones are emitted once.
class KernelTable {
public:
  explicit KernelTable(mlir::ModuleOp module);
  /// `func` itself, with a name of its own, or an equal kernel that was there before; then `func` is erased.
  kernel::FuncOp unique(kernel::FuncOp func, llvm::StringRef name);
  unsigned size() const { return kernels.size(); }

private:
  mlir::SymbolTable symbols;
  llvm::StringMap<kernel::FuncOp> kernels;
};

/// Makes the kernel of `graph` and launches it at `builder`'s place. `hostValues` maps values of the prim function to
/// the host's; the outputs are added to it.
void outlineKernel(KernelGraph &graph, llvm::ArrayRef<mlir::Operation *> members,
                   llvm::ArrayRef<mlir::Operation *> outputs, SizeAnalysis &sizes, mlir::OpBuilder &builder,
                   llvm::DenseMap<mlir::Value, mlir::Value> &hostValues, KernelTable &table);

} // namespace lamina
#endif
