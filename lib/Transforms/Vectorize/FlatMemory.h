// Buffers seen as one run of elements, and the accesses of all lanes of a vector to them.
#ifndef LAMINA_TRANSFORMS_VECTORIZE_FLATMEMORY_H
#define LAMINA_TRANSFORMS_VECTORIZE_FLATMEMORY_H
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include <optional>

namespace lamina {

/// a + b and a * b on index values, folded where a constant allows.
mlir::Value addIndex(mlir::OpBuilder &b, mlir::Location loc, mlir::Value lhs, mlir::Value rhs);
mlir::Value mulIndex(mlir::OpBuilder &b, mlir::Location loc, mlir::Value lhs, mlir::Value rhs);
mlir::OpFoldResult mulIndex(mlir::OpBuilder &b, mlir::Location loc, mlir::OpFoldResult lhs, mlir::OpFoldResult rhs);
mlir::Value constantIndex(mlir::OpBuilder &b, mlir::Location loc, int64_t value);
mlir::Value toValue(mlir::OpBuilder &b, mlir::Location loc, mlir::OpFoldResult value);
/// The value if it is known while compiling.
std::optional<int64_t> constantOf(mlir::OpFoldResult value);

/// A minimum or maximum with a scalar.
struct Clamp {
  bool isMax;
  mlir::Value bound;
};

/// One value, for all lanes of a vector step. Four forms: the same scalar in each lane; `base + lane * step` with a
/// constant step; that, clamped (both for indices only); or a vector.
struct LaneValue {
  mlir::Value base;
  int64_t step = 0;
  llvm::SmallVector<Clamp, 2> clamps; ///< in the order in which they apply
  mlir::Value vector;

  static LaneValue uniform(mlir::Value value) { return {value, 0, {}, nullptr}; }
  static LaneValue linear(mlir::Value base, int64_t step) { return {base, step, {}, nullptr}; }
  static LaneValue lanes(mlir::Value vector) { return {nullptr, 0, {}, vector}; }
  bool isUniform() const { return isLinear() && step == 0; }
  bool isLinear() const { return base != nullptr && clamps.empty(); }
  bool isClamped() const { return base != nullptr && !clamps.empty(); }
};

/// Lanes of the current step: how many, and which of them are inside of the iteration space (null: all).
struct LaneContext {
  int64_t lanes = 1;
  mlir::Value mask;
  /// The mask comes from a condition in the body: even an access at a uniform address may be out of range.
  bool conditional = false;
};

/// The value as a vector (as a scalar if there is one lane).
mlir::Value asVector(mlir::OpBuilder &b, mlir::Location loc, const LaneContext &context, LaneValue value);

/// A strided buffer: element (i...) is at `offset + sum(i * stride)` of `flat`.
struct FlatMemory {
  mlir::Value flat;
  mlir::Value offset;
  llvm::SmallVector<mlir::OpFoldResult> strides;
  mlir::Type element;
  /// Row-major and without gaps.
  bool identity = false;

  /// Null `flat` if the layout is not strided.
  static FlatMemory get(mlir::OpBuilder &b, mlir::Location loc, mlir::Value memref);

  LaneValue load(mlir::OpBuilder &b, mlir::Location loc, const LaneContext &context, LaneValue index) const;
  void store(mlir::OpBuilder &b, mlir::Location loc, const LaneContext &context, LaneValue index,
             LaneValue value) const;

private:
  mlir::Value loadLanes(mlir::OpBuilder &b, mlir::Location loc, const LaneContext &context, LaneValue index) const;
  mlir::Value loadClamped(mlir::OpBuilder &b, mlir::Location loc, const LaneContext &context, LaneValue index) const;
};

} // namespace lamina
#endif
