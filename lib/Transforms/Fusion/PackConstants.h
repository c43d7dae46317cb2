// PackConstants: constant operands of contractions, laid out once as register kernels read them.
#ifndef LAMINA_FUSION_PACK_CONSTANTS_H
#define LAMINA_FUSION_PACK_CONSTANTS_H

#include "lib/Transforms/Fusion/InitFunction.h"
#include "lib/Transforms/Fusion/KernelGraph.h"

namespace lamina {

/// How constant right operands of contractions are laid out.
struct PanelOptions {
  llvm::ArrayRef<int64_t> widths;     // columns of a panel: the first that divides them
  llvm::ArrayRef<int64_t> tileWidths; // the same for bf16, whose rows then alternate in pairs; none: as other types
};

/// If the contraction of `graph` has a constant right operand, replaces it by a copy in panels: its columns split by
/// a width, in the order [columns / width, rows, width] or [columns / width, rows / 2, width, 2]. The copy is made by
/// `init`. Everything else in the kernel sees the split dimensions, so it needs no other change.
void packConstants(KernelGraph &graph, const PanelOptions &options, InitFunction &init);

} // namespace lamina
#endif
