// Sizes of buffers, as they are known where the buffers are made.
#ifndef LAMINA_SUPPORT_MEMREF_SIZES_H
#define LAMINA_SUPPORT_MEMREF_SIZES_H

#include "mlir/IR/Builders.h"

namespace lamina {

/// The size of a dimension of a memref: of a subview or an allocation that which it was made with. A memref.dim of a
/// subview with fewer dimensions must not be made: where sizes of 1 make it unclear which are gone, its folder takes
/// one for another.
mlir::OpFoldResult getMemRefSize(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value memref, unsigned dim);

} // namespace lamina
#endif
