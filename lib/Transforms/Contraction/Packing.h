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
  int64_t together;   // rows whose elements alternate in a panel: 2 for the matrix unit, which reads B's own type
  bool wholePanels;   // columns is a multiple of the panel's width
  mlir::Value panels; // memref<? x depth / together x panel columns * together>
};

/// Where columns have no unit stride and rows none either, or pixels are too scattered for vectors.
void packScalars(Emitter &e, const PackRequest &request);
/// Row-major B: vector copies, of one row at a time or of pairs of alternating rows.
void packRows(Emitter &e, const PackRequest &request, int64_t lanes);
/// B contiguous in k: transposes of lanes x lanes blocks in registers.
void packTransposed(Emitter &e, const PackRequest &request, int64_t lanes);
/// Columns are pixels of several rows (im2col, one panel at a time), with stride 1 or 2 inside a row.
void packPixels(Emitter &e, const PackRequest &request, int64_t lanes);

/// `count` (null mask: all) elements from `at` on, one each `stride` (1 or 2), as a vector.
mlir::Value loadStrided(Emitter &e, mlir::Value line, llvm::ArrayRef<Index> at, int64_t stride, Index count,
                        int64_t lanes);

/// Copies rows of A to memref<rows x depth>, converted if its type is the accumulator's, and zeros after them up to a
/// multiple of the lanes.
void packLeft(Emitter &e, const Problem &problem, mlir::Value view, bool contiguous, llvm::ArrayRef<Index> rows,
              Index depth, int64_t lanes, mlir::Value copy);

} // namespace lamina::contraction
#endif
