// The iteration space of a linalg op on buffers: its loops, what each operand reads in them, and its reductions.
#ifndef LAMINA_TRANSFORMS_VECTORIZE_LOOPNEST_H
#define LAMINA_TRANSFORMS_VECTORIZE_LOOPNEST_H
#include "lib/Transforms/Vectorize/FlatMemory.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace lamina {

struct VectorTarget {
  int64_t bits;
  int64_t unroll;
};

/// One loop. Loops of size 1, and loops merged into another one, are gone.
struct Loop {
  unsigned dim; ///< the dimension of the op
  mlir::OpFoldResult size;
  bool reduction;
};

/// What one memref operand reads or writes.
struct Access {
  unsigned operand;
  FlatMemory memory;
  mlir::AffineMap map;
  /// Every result of the map is a sum of multiples of dimensions, and a constant.
  bool linear = true;
  /// Linear: distance in elements between iterations of each dimension of the op; and the address of iteration 0.
  llvm::SmallVector<mlir::OpFoldResult> strides;
  mlir::Value start;
  /// Per dimension of the op: first and last memref dimension that it is the whole index of, or -1.
  llvm::SmallVector<std::pair<int, int>> memrefDims;

  bool dependsOn(unsigned dim) const;
  /// Distance between lanes along `dim` where it is a constant.
  std::optional<int64_t> stepAlong(unsigned dim) const;
};

/// How one result of the op is written.
struct Output {
  unsigned access; ///< index of its Access
  /// Reductions kept in registers: yielded = combiner(accumulator, expression). Null: written in each iteration.
  mlir::Operation *combiner = nullptr;
  mlir::Value expression;
  mlir::vector::CombiningKind kind = mlir::vector::CombiningKind::ADD;
};

struct LoopNest {
  mlir::linalg::LinalgOp op;
  llvm::SmallVector<Loop> loops;
  llvm::SmallVector<Access> accesses;
  llvm::SmallVector<Output> outputs;
  llvm::DenseMap<mlir::Value, FlatMemory> bodyMemories; ///< buffers that the body loads from
  llvm::SmallVector<mlir::OpFoldResult> sizes;          ///< of each dimension of the op
  /// Results must be updated in memory, in the order of the iterations.
  bool sequential = false;
  /// Index into `loops` of the vector loop, or -1; lanes of a full step.
  int vectorLoop = -1;
  int64_t lanes = 1;
  /// Index into `loops` of the loop along which the `transposed` accesses are contiguous, or -1: blocks of lanes x
  /// lanes of them are transposed in registers.
  int blockLoop = -1;
  llvm::SmallVector<unsigned> transposed;

  /// Reads the op and emits what its accesses need in front of it. Fails on layouts that are not strided.
  static mlir::FailureOr<LoopNest> get(mlir::OpBuilder &b, mlir::linalg::LinalgOp op, const VectorTarget &target);

private:
  void readAccesses(mlir::OpBuilder &b);
  void classifyOutputs();
  void mergeLoops(mlir::OpBuilder &b);
  void chooseVectorLoop(const VectorTarget &target);
  void chooseBlockLoop(int64_t natural);
};

} // namespace lamina
#endif
