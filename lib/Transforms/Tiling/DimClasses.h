// Which dimensions of a kernel's tensors and loops are the same iteration dimension.
#ifndef LAMINA_TRANSFORMS_TILING_DIM_CLASSES_H
#define LAMINA_TRANSFORMS_TILING_DIM_CLASSES_H

#include "dialects/Kernel/Kernel.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace lamina {

/// Classes of dimensions: a loop and the tensor dimensions that it indexes directly are one class.
class DimClasses {
public:
  explicit DimClasses(kernel::FuncOp func);

  unsigned getClass(mlir::Value value, unsigned dim) { return find(idOf(value.getAsOpaquePointer(), dim)); }
  unsigned getClass(mlir::linalg::LinalgOp op, unsigned loop) { return find(idOf(op.getOperation(), loop)); }
  /// Whether some op needs this dimension whole.
  bool isWhole(unsigned dimClass) { return whole.contains(dimClass); }
  /// Whether every op of the kernel has tiles.
  bool isTileable() const { return tileable; }

private:
  unsigned idOf(const void *owner, unsigned dim);
  unsigned find(unsigned id);
  void join(unsigned a, unsigned b) { parents[find(a)] = find(b); }
  void add(mlir::Operation *op);
  void addLinalg(mlir::linalg::LinalgOp op);
  void addAlong(mlir::Value result, mlir::Value operand, int64_t whole);
  void addReshape(mlir::Value expanded, mlir::Value collapsed, llvm::ArrayRef<llvm::SmallVector<int64_t, 2>> groups);
  void needWhole(mlir::Value value);

  llvm::DenseMap<std::pair<const void *, unsigned>, unsigned> ids;
  llvm::SmallVector<unsigned> parents, wholeIds;
  llvm::DenseSet<unsigned> whole;
  bool tileable = true;
  /// Both operands of a contraction may be one argument, whose rows are then the rows and the columns of the result.
  /// What else such a kernel computes has the dimensions of the result anyway.
  bool readsApart = false;
};

/// Whether a tensor is an argument, a constant, or a view of one: it is there before any program runs.
bool isExternal(mlir::Value tensor);

} // namespace lamina
#endif
