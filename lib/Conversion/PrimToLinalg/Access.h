// How a body reads a tensor: one index a dimension, an expression over the loops or a value of the body.
#ifndef LAMINA_CONVERSION_PRIM_TO_LINALG_ACCESS_H
#define LAMINA_CONVERSION_PRIM_TO_LINALG_ACCESS_H

#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace lamina {

/// An index: `expr` over the loops (dims) and the function's symbols, unless `value` holds it.
struct Index {
  mlir::AffineExpr expr;
  mlir::Value value;

  Index(mlir::AffineExpr expr) : expr(expr) {}
  Index(mlir::Value value) : value(value) {}
  bool operator==(const Index &other) const { return expr == other.expr && value == other.value; }
};
using Access = llvm::SmallVector<Index, 4>;

/// An expression `dim * stride + offset`, or `offset` alone where `dim` is absent; the offset has no dims.
struct LinearIndex {
  std::optional<unsigned> dim;
  int64_t stride = 0;
  mlir::AffineExpr offset;
};
/// The linear form of an expression, if it has one with a positive stride.
std::optional<LinearIndex> matchLinearIndex(mlir::AffineExpr expr);

} // namespace lamina
#endif
