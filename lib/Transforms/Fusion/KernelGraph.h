// KernelGraph: the ops that would make one kernel, with the factors of their dimensions.
#ifndef LAMINA_FUSION_KERNEL_GRAPH_H
#define LAMINA_FUSION_KERNEL_GRAPH_H

#include "dialects/Prim/Prim.h"
#include "dialects/Prim/PrimSizes.h"
#include "lib/Transforms/Fusion/Factors.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace lamina {

/// A value in memory, read with strides of its own: what slices, transposes and reshapes of a tensor amount to.
struct StridedView {
  mlir::Value base;
  mlir::AffineExpr offset;
  Exprs sizes, strides;
};

/// How the fusion sees an op.
enum class OpRole {
  Free,        // costs nothing and is copied into each kernel that reads it
  Elementwise, // one element of each operand for one of the result
  Reduction,   // sweeps some dimensions
  Reader,      // reads operands from memory at computed places
  Contraction, // dot_general, convolution: operands from memory, tiles of its own
};
OpRole getRole(mlir::Operation *op);

class KernelGraph {
public:
  struct Node {
    mlir::Operation *op = nullptr; // null for a value from memory, and for another order of its one operand
    mlir::Value value;
    llvm::SmallVector<unsigned> operands;
    llvm::SmallVector<Factors::List> dims; // of the value
    std::optional<StridedView> view;       // of a value from memory
    bool foreign = false;                  // read at computed places: its dims are not the kernel's
  };

  /// Builds the graph of `members` (in program order). `isMember` of any kernel: such values are read from memory.
  /// Fails (ok() is false) when the dimensions do not agree on one set of factors.
  KernelGraph(llvm::ArrayRef<mlir::Operation *> members, SizeAnalysis &sizes,
              llvm::function_ref<bool(mlir::Operation *)> isMaterialised);

  bool ok() const { return valid; }
  /// Operations that would have to be in memory for this kernel to be legal, though they are free.
  llvm::ArrayRef<mlir::Operation *> blockers() const { return toMaterialise; }

  std::vector<Node> nodes;
  Factors factors;
  /// The node of a member.
  llvm::DenseMap<mlir::Operation *, unsigned> memberNodes;

  /// Unsplit factors of a node's value, in order, without those of size 1 that nothing needs.
  Factors::List leaves(const Node &node) const;
  /// Factors that index programs: in every output and blocked nowhere.
  llvm::SmallVector<unsigned> gridFactors(llvm::ArrayRef<unsigned> outputNodes) const;

private:
  std::optional<unsigned> addOperand(mlir::Value value, bool fromMemory);
  std::optional<unsigned> addMember(mlir::Operation *op);
  std::optional<unsigned> addLeaf(mlir::Value value, const StridedView &view, bool foreign);
  bool relate(Node &node);
  std::optional<StridedView> traceView(mlir::Value value);
  /// The member's value as a copy of what it reads in place.
  std::optional<unsigned> addCopy(mlir::Operation *op);
  /// Whether the dimensions on both sides of a reshape can be split into the same factors: not those of 6x4 and 8x3.
  bool hasCommonFactors(prim::ReshapeOp reshape);

  SizeAnalysis &sizes;
  llvm::function_ref<bool(mlir::Operation *)> isMaterialised;
  llvm::SmallPtrSet<mlir::Operation *, 8> memberSet;
  llvm::SmallVector<mlir::Operation *> toMaterialise;
  bool valid = true;
};

} // namespace lamina
#endif
