// Ops on scalars, as ops on blocks.
#ifndef LAMINA_CONVERSION_TILED_TO_TRITON_SCALAR_OPS_H
#define LAMINA_CONVERSION_TILED_TO_TRITON_SCALAR_OPS_H

#include "lib/Conversion/TiledToTriton/AxisBlock.h"

namespace lamina {

/// The block of the op's results, of the blocks of its operands; null if Triton has no such op. Index values are
/// integers of any width: of the wider one of two operands.
AxisBlock convertScalarOp(BlockBuilder &blocks, mlir::Operation *op, llvm::ArrayRef<AxisBlock> operands);

} // namespace lamina
#endif
