// Which prim values become tensors, and which of those share a generic.
#ifndef LAMINA_CONVERSION_PRIM_TO_LINALG_PLAN_H
#define LAMINA_CONVERSION_PRIM_TO_LINALG_PLAN_H

#include "dialects/Prim/PrimSizes.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace lamina {

/// A tensor to make: of a value, or (output >= 0) of a fresh copy of it for that operand of the return.
struct Item {
  enum Kind { Pointwise, Reduce, Alone } kind;
  mlir::Value value;
  int64_t output = -1;
};

/// Items made by one op. Merged items run over the loops `loopSizes`; those in `reduced` are dropped by its reductions.
struct Group {
  llvm::SmallVector<Item> items;
  Exprs loopSizes;
  llvm::SmallVector<bool> reduced;
  bool hasReduction = false;
};

struct PlanOptions {
  bool fuse = true, mergeReductions = true;
  /// The function's results must be tensors of their own, each made once.
  bool freshOutputs = true;
};

struct Plan {
  llvm::SmallVector<Group> groups;
  unsigned numMerged = 0;
};

/// Ops are in the entry block of `func`. Groups come in an order in which each needs only earlier ones.
Plan makePlan(mlir::FunctionOpInterface func, SizeAnalysis &sizes, const PlanOptions &options);

/// The value under transposes, broadcasts, unit-step slices and widening conversions of floats: what a contraction
/// reads.
mlir::Value getContractionBase(mlir::Value value);
/// Whether the convolution or windowed reduction reads positions outside its operand or a dilated operand.
bool needsPadding(mlir::Operation *op);

} // namespace lamina
#endif
