// Which reductions may run online: over blocks of what they reduce, corrected when the running maximum grows.
#ifndef LAMINA_FUSION_ONLINE_H
#define LAMINA_FUSION_ONLINE_H

#include "dialects/Prim/Prim.h"

namespace lamina {

/// On a maximum m of x, and on sums and products that are linear in exp(x - m); and on a kernel that holds them.
constexpr llvm::StringLiteral kOnlineAttr = "kernel.online";

/// On a product whose result such a maximum is taken of.
constexpr llvm::StringLiteral kScoresAttr = "kernel.scores";

inline void markOnline(mlir::Operation *op) { op->setAttr(kOnlineAttr, mlir::UnitAttr::get(op->getContext())); }
inline bool isOnline(mlir::Operation *op) { return op->hasAttr(kOnlineAttr); }
/// A product of what a kernel computes with a matrix.
inline bool isOnlineProduct(mlir::Operation *op) { return isOnline(op) && mlir::isa<prim::DotGeneralOp>(op); }

inline bool isScores(mlir::Operation *op) { return op->hasAttr(kScoresAttr); }

} // namespace lamina
#endif
