// How one contraction will be run: roles, loop order, kernel and packing.
#ifndef LAMINA_TRANSFORMS_CONTRACTION_SCHEDULE_H
#define LAMINA_TRANSFORMS_CONTRACTION_SCHEDULE_H

#include "lib/Transforms/Contraction/Blocking.h"
#include "lib/Transforms/Contraction/Problem.h"

namespace lamina::contraction {

enum class Access {
  Prepacked,  // B comes in panels
  Rows,       // pack B by vector copies along its rows
  Transposed, // pack B, contiguous in k, by transposes
  Pixels,     // pack B, the input of a convolution, by pieces of its rows
  Scalars,    // pack B element by element
  InPlace,    // read B where it is
  Dot         // both operands contiguous in k: dot products
};

struct Schedule {
  Access access;
  llvm::SmallVector<unsigned> outer; // loops around everything
  llvm::SmallVector<unsigned> m;     // the row loop, or none
  llvm::SmallVector<unsigned> n, k;  // column and reduction loops of the kernel, outermost first
  int64_t lanes;
  bool unitColumns;       // C has stride 1 from column to column
  int64_t depthBlock = 0; // rows of B packed at a time
  bool deep = false;      // there may be more of them
  bool accumulates;       // C is written more than once
  bool matrix = false;    // tiles of the matrix unit, not vectors; panels hold pairs of rows of B's own type
};

/// Decides for `problem`, whose operands' roles may be exchanged.
Schedule makeSchedule(Emitter &e, Problem &problem, int64_t vectorBits, bool matrixUnit);

} // namespace lamina::contraction
#endif
