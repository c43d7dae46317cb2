// Grouping: which ops of a function share a kernel.
#ifndef LAMINA_FUSION_GROUPING_H
#define LAMINA_FUSION_GROUPING_H

#include "lib/Transforms/Fusion/KernelGraph.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SetVector.h"

namespace lamina {

struct FusionOptions {
  int64_t minParallelism = 8;
  int64_t sizeHint = 128;
};

class Grouping {
public:
  /// Groups the ops of a function of prim ops.
  Grouping(mlir::FunctionOpInterface func, SizeAnalysis &sizes, FusionOptions options);

  /// Assigns every op that needs memory to a group; fails, with a diagnostic, for an op no kernel can hold.
  mlir::LogicalResult run();

  struct Group {
    llvm::SmallVector<mlir::Operation *> members; // in program order
    llvm::BitVector dependsOn;                    // transitively
    bool hasContraction = false;
    unsigned age = 0; // values that came to memory later are computed in the kernel, as when it was found legal
  };
  /// The groups in an order in which they can run.
  llvm::SmallVector<const Group *> groups() const;
  KernelGraph makeGraph(const Group &group) const;
  /// Members of a group whose values are read outside of it.
  llvm::SmallVector<mlir::Operation *> outputs(llvm::ArrayRef<mlir::Operation *> members) const;

private:
  mlir::LogicalResult place(mlir::Operation *op);
  bool tryJoin(llvm::ArrayRef<mlir::Operation *> ops, unsigned group);
  bool trySink(mlir::Operation *reshape);
  void tryMerge(unsigned into, unsigned from);
  void trySinkOutput(mlir::Operation *op, unsigned from);
  void addGroup(llvm::ArrayRef<mlir::Operation *> ops);
  void assign(llvm::ArrayRef<mlir::Operation *> ops, unsigned group);
  llvm::SmallVector<unsigned> directDependencies(llvm::ArrayRef<mlir::Operation *> ops) const;
  bool isLegal(llvm::ArrayRef<mlir::Operation *> members,
               llvm::ArrayRef<llvm::ArrayRef<mlir::Operation *>> parts) const;
  /// Programs that the kernel of these members would have, about.
  int64_t parallelism(const KernelGraph &graph, llvm::ArrayRef<mlir::Operation *> members) const;
  /// Elements of the widest value that a kernel walks, about.
  int64_t work(const KernelGraph &graph) const;
  /// The time of walking that many elements, in the time of one.
  double time(int64_t elements, int64_t programs) const;
  llvm::SmallVector<mlir::Operation *> inOrder(llvm::ArrayRef<mlir::Operation *> a,
                                               llvm::ArrayRef<mlir::Operation *> b) const;
  KernelGraph makeGraph(llvm::ArrayRef<mlir::Operation *> members) const;
  bool isReadOutside(mlir::Operation *op, llvm::ArrayRef<mlir::Operation *> members) const;
  /// Members of kernels that read a value, and whether the function returns it.
  llvm::SmallVector<mlir::Operation *> readers(mlir::Operation *op, bool &isReturned) const;
  /// Values in memory that a kernel of these members reads.
  llvm::SmallSetVector<mlir::Value, 8> inputs(llvm::ArrayRef<mlir::Operation *> members) const;
  int64_t bytes(mlir::Value value) const;
  int64_t estimate(mlir::AffineExpr size) const;

  mlir::FunctionOpInterface func;
  SizeAnalysis &sizes;
  FusionOptions options;
  llvm::DenseMap<mlir::Operation *, unsigned> position;
  llvm::DenseMap<mlir::Operation *, unsigned> groupOf;
  llvm::DenseMap<mlir::Operation *, unsigned> memberSince;
  unsigned clock = 0;
  std::vector<Group> all;
};

} // namespace lamina
#endif
