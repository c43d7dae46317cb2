// Blocks over named axes: values of many elements that are combined by the axes they share, and where they are
// computed.
#ifndef LAMINA_CONVERSION_TILED_TO_TRITON_AXIS_BLOCK_H
#define LAMINA_CONVERSION_TILED_TO_TRITON_AXIS_BLOCK_H

#include "dialects/Triton/Triton.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include <map>

namespace lamina {

/// A direction of blocks.
struct Axis {
  int64_t size;
  /// Dimensions of a block are in increasing order.
  double order;
  /// The index at each element, and whether it is inside the extent (null: everywhere). Blocks of one dimension.
  mlir::Value index, mask;
  /// The number of loops around its definition.
  unsigned level;
};

/// A block with one dimension for each axis, or a scalar.
struct AxisBlock {
  mlir::Value value;
  llvm::SmallVector<const Axis *, 3> axes;
  /// The number of loops that the value depends on; it is defined just inside the last of them.
  unsigned level = 0;

  explicit operator bool() const { return static_cast<bool>(value); }
  mlir::Type getElementType() const { return mlir::getElementTypeOrSelf(value.getType()); }
};

/// Makes blocks in a function, each in the outermost loop that it depends on.
class BlockBuilder {
public:
  BlockBuilder(mlir::Block *entry, mlir::Location loc, mlir::Type indexType);

  mlir::Location loc;
  mlir::Type indexType;

  /// Where code of this level goes.
  mlir::OpBuilder at(unsigned level);
  unsigned getLevel() const { return scopes.size() - 1; }

  AxisBlock constant(mlir::TypedAttr value);
  AxisBlock index(int64_t value) { return constant(mlir::IntegerAttr::get(indexType, value)); }
  AxisBlock zero(mlir::Type type);
  /// What `build` makes of the values of the operands, after all have the same axes.
  AxisBlock apply(llvm::ArrayRef<AxisBlock> operands,
                  llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::ValueRange)> build);
  template <typename Op> AxisBlock make(const AxisBlock &lhs, const AxisBlock &rhs) {
    return apply({lhs, rhs}, [&](mlir::OpBuilder &b, mlir::ValueRange x) { return Op::create(b, loc, x[0], x[1]); });
  }
  /// Sums and products of indices; additions of 0 and multiplications by 0 and 1 make no code.
  AxisBlock add(const AxisBlock &lhs, const AxisBlock &rhs);
  AxisBlock multiply(const AxisBlock &lhs, const AxisBlock &rhs);
  /// An integer of any type as an index, and the reverse.
  AxisBlock castInteger(const AxisBlock &block, mlir::Type type, bool isSigned = true);
  /// The block with more axes.
  AxisBlock expand(const AxisBlock &block, llvm::ArrayRef<const Axis *> axes);
  /// The block's value with its dimensions in the order of `axes`, which are all its axes.
  mlir::Value layOut(const AxisBlock &block, llvm::ArrayRef<const Axis *> axes);
  /// A value of the present level as a block of another shape.
  mlir::Value reshape(mlir::Value value, llvm::ArrayRef<int64_t> shape);
  /// The block of a value of the present level whose elements are those of `axes` in this order, in any shape.
  AxisBlock fromLayout(mlir::Value value, llvm::ArrayRef<const Axis *> axes);
  AxisBlock select(const AxisBlock &condition, const AxisBlock &yes, const AxisBlock &no);

  /// A new axis of indices from `offset` on, active below `limit`; both may be null.
  const Axis *makeAxis(int64_t size, double order, AxisBlock offset, AxisBlock limit);
  AxisBlock getIndex(const Axis *axis) { return {axis->index, {axis}, axis->level}; }
  /// Where all these axes are inside their extents; null if everywhere.
  AxisBlock getMask(llvm::ArrayRef<const Axis *> axes);
  /// The axes of all the blocks.
  llvm::SmallVector<const Axis *, 3> join(llvm::ArrayRef<AxisBlock> blocks);
  mlir::Type getType(mlir::Type element, llvm::ArrayRef<const Axis *> axes);

  /// A loop at the present level; what is made until leaveLoop may be inside it.
  mlir::scf::ForOp enterLoop(AxisBlock extent, int64_t step, mlir::ValueRange inits);
  void leaveLoop(mlir::ValueRange yields);

  using Key = std::pair<void *, std::vector<void *>>;
  /// The value of `key`, computed with `level` loops around if it is not yet known there.
  AxisBlock remember(Key key, unsigned level, llvm::function_ref<AxisBlock()> compute);

private:
  struct Scope {
    mlir::Operation *loop;
    mlir::Block *body;
    /// A loop that is set aside while code before it is made.
    mlir::Operation *before = nullptr;
    std::map<Key, AxisBlock> known;
  };
  std::vector<Scope> scopes;
  std::vector<std::unique_ptr<Axis>> axes;
  llvm::DenseMap<mlir::Attribute, mlir::Value> constants;
};

} // namespace lamina
#endif
