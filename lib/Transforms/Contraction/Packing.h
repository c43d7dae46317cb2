// Copies of operands in the order in which the register kernels read them.
#ifndef LAMINA_TRANSFORMS_CONTRACTION_PACKING_H
#define LAMINA_TRANSFORMS_CONTRACTION_PACKING_H

#include "lib/Transforms/Contraction/RegisterKernel.h"

namespace lamina::contraction {

/// The block of B to pack: `columns` columns from `column` on of the flattened n loops, `depth` rows from `row` on of
/// the flattened k loops. `rowPart` is the product of all k sizes but the first: row and depth are multiples of it.
struct PackRequest {
  const Problem &problem;
  Index base;                    // address of B's first element for this contraction
  llvm::ArrayRef<unsigned> n, k; // loops, outermost first
  Index column, columns, row, depth;
  bool wholePanels;   // columns is a multiple of the panel's width
  mlir::Value panels; // memref<? x depth x panel columns>
};

/// Where columns have no unit stride and rows none either, or pixels are too scattered for vectors.
void packScalars(Emitter &e, const PackRequest &request);
/// Row-major B: vector copies.
void packRows(Emitter &e, const PackRequest &request, int64_t lanes);
/// B contiguous in k: transposes of lanes x lanes blocks in registers.
void packTransposed(Emitter &e, const PackRequest &request, int64_t lanes);
/// Columns are pixels of several rows (im2col, one panel at a time), with stride 1 or 2 inside a row.
void packPixels(Emitter &e, const PackRequest &request, int64_t lanes);

/// `count` (null mask: all) elements from `at` on, one each `stride` (1 or 2), as a vector.
mlir::Value loadStrided(Emitter &e, mlir::Value line, llvm::ArrayRef<Index> at, int64_t stride, Index count,
                        int64_t lanes);

/// Copies tile.rows rows of A from `row` on, converted, to memref<rows x depth>; rows past the end repeat the last one.
void packLeft(Emitter &e, const Problem &problem, mlir::Value view, bool contiguous, llvm::ArrayRef<Index> rows,
              Index depth, int64_t lanes, mlir::Value copy);

} // namespace lamina::contraction
#endif
