// The loops around the register kernels: cache blocks, packing, tiles and the write of C.
#ifndef LAMINA_TRANSFORMS_CONTRACTION_LOOPNEST_H
#define LAMINA_TRANSFORMS_CONTRACTION_LOOPNEST_H

#include "lib/Transforms/Contraction/Packing.h"
#include "lib/Transforms/Contraction/Schedule.h"

namespace lamina::contraction {

struct NestOptions {
  int64_t vectorBits;
  int64_t blockBytes;
  bool startAtZero; // C's values before the op are not read
};

/// Emits all code of `problem` by `schedule`.
void emitLoopNest(Emitter &e, const Problem &problem, const Schedule &schedule, const NestOptions &options);

} // namespace lamina::contraction
#endif
