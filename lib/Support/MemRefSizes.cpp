// Sizes of buffers.
#include "lib/Support/MemRefSizes.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

/// Which dimension of its source a dimension of a subview is. Those that are gone have size 1; of neighbours that could
/// be gone any may be, since what is left is the same.
static std::optional<unsigned> findSourceDim(memref::SubViewOp subview, unsigned dim) {
  ArrayRef<int64_t> sizes = subview.getStaticSizes(), shape = subview.getType().getShape();
  unsigned source = 0;
  for (unsigned kept = 0; kept < shape.size(); ++kept, ++source) {
    while (source < sizes.size() && sizes[source] != shape[kept])
      if (sizes[source++] != 1)
        return std::nullopt;
    if (source == sizes.size())
      return std::nullopt;
    if (kept == dim)
      return source;
  }
  return std::nullopt;
}

OpFoldResult lamina::getMemRefSize(OpBuilder &builder, Location loc, Value memref, unsigned dim) {
  auto type = cast<MemRefType>(memref.getType());
  if (!type.isDynamicDim(dim))
    return builder.getIndexAttr(type.getDimSize(dim));
  if (auto subview = memref.getDefiningOp<memref::SubViewOp>())
    if (std::optional<unsigned> source = findSourceDim(subview, dim))
      return subview.getMixedSizes()[*source];
  if (auto alloc = memref.getDefiningOp<memref::AllocOp>())
    return alloc.getMixedSizes()[dim];
  return memref::DimOp::create(builder, loc, memref, dim).getResult();
}
