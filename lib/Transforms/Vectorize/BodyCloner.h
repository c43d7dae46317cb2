// Clones the body of a linalg op for all lanes of a vector step.
#ifndef LAMINA_TRANSFORMS_VECTORIZE_BODYCLONER_H
#define LAMINA_TRANSFORMS_VECTORIZE_BODYCLONER_H
#include "lib/Transforms/Vectorize/FlatMemory.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace lamina {

/// Whether every op of the body has a form for many lanes.
bool canVectorizeBody(mlir::Block &body);

/// The state of cloning at one place of a loop nest. Copies are independent: an inner loop starts from a copy of the
/// state around it.
class BodyCloner {
public:
  BodyCloner(mlir::OpBuilder &builder, mlir::Location loc, const llvm::DenseMap<mlir::Value, FlatMemory> &memories)
      : b(builder), loc(loc), memories(memories) {}

  void map(mlir::Value value, LaneValue lanes) { values[value] = lanes; }
  bool isMapped(mlir::Value value) const { return values.contains(value); }
  /// The clone of a value of the body, or the value itself if it is defined outside.
  LaneValue lookup(mlir::Value value) const;

  /// Clones each op of the body, other than those in `skip`, whose operands are known by now. Ops with regions and
  /// loads wait for `last`, the innermost place.
  void cloneReady(mlir::Block &body, const llvm::SmallPtrSetImpl<mlir::Operation *> &skip, bool last);

  /// Clones an elementwise op on other operands.
  LaneValue cloneElementwise(mlir::Operation *op, llvm::ArrayRef<LaneValue> operands);

  /// The value of an affine expression.
  LaneValue affine(mlir::AffineExpr expr, llvm::ArrayRef<LaneValue> dims, llvm::ArrayRef<LaneValue> symbols);
  LaneValue add(LaneValue lhs, LaneValue rhs);
  LaneValue mul(LaneValue lhs, LaneValue rhs);

  /// Value of each dimension of the op, null base where its loop is not entered yet.
  llvm::SmallVector<LaneValue> dims;
  LaneContext context;

private:
  bool isReady(mlir::Operation *op, mlir::Block &body, bool last) const;
  void clone(mlir::Operation *op);
  void cloneScalar(mlir::Operation *op);
  void cloneIf(mlir::Operation *op);
  void cloneUniformIf(mlir::scf::IfOp op, mlir::Value condition);
  LaneValue binary(llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)> make, LaneValue lhs, LaneValue rhs);
  bool cloneLinear(mlir::Operation *op, llvm::ArrayRef<LaneValue> operands, LaneValue &result);

  mlir::OpBuilder &b;
  mlir::Location loc;
  const llvm::DenseMap<mlir::Value, FlatMemory> &memories;
  llvm::DenseMap<mlir::Value, LaneValue> values;
  llvm::SmallPtrSet<mlir::Operation *, 16> done;
};

} // namespace lamina
#endif
