// PackConstants: constant operands of contractions, laid out once as register kernels read them.
#ifndef LAMINA_FUSION_PACK_CONSTANTS_H
#define LAMINA_FUSION_PACK_CONSTANTS_H

#include "lib/Transforms/Fusion/InitFunction.h"
#include "lib/Transforms/Fusion/KernelGraph.h"

namespace lamina {

/// If the contraction of `graph` has a constant right operand, replaces it by a copy in panels: its columns split by
/// one of `panelWidths` (the first that divides them), in the order [columns / width, rows, width]. The copy is made
/// by `init`. Everything else in the kernel sees the split columns, so it needs no other change.
void packConstants(KernelGraph &graph, llvm::ArrayRef<int64_t> panelWidths, InitFunction &init);

} // namespace lamina
#endif
