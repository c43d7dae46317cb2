#include "dialects/Prim/Prim.h"
using namespace mlir; using namespace lamina; using namespace lamina::prim;
LogicalResult PrimDialect::verifyOperationAttribute(Operation *, NamedAttribute) { return success(); }
LogicalResult PrimDialect::verifyRegionArgAttribute(Operation *, unsigned, unsigned, NamedAttribute) { return success(); }
OpFoldResult NegOp::fold(FoldAdaptor) { return {}; }
OpFoldResult NotOp::fold(FoldAdaptor) { return {}; }
OpFoldResult AddOp::fold(FoldAdaptor) { return {}; }
OpFoldResult SubOp::fold(FoldAdaptor) { return {}; }
OpFoldResult MulOp::fold(FoldAdaptor) { return {}; }
OpFoldResult DivOp::fold(FoldAdaptor) { return {}; }
OpFoldResult AndOp::fold(FoldAdaptor) { return {}; }
OpFoldResult OrOp::fold(FoldAdaptor) { return {}; }
LogicalResult CompareOp::inferReturnTypes(MLIRContext *, std::optional<Location>, ValueRange, DictionaryAttr, OpaqueProperties, RegionRange, SmallVectorImpl<Type> &) { return failure(); }
OpFoldResult SelectOp::fold(FoldAdaptor) { return {}; }
OpFoldResult ConvertOp::fold(FoldAdaptor) { return {}; }
LogicalResult BitcastOp::verify() { return success(); }
OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }
LogicalResult SizeOp::verify() { return success(); }
LogicalResult IotaOp::verify() { return success(); }
OpFoldResult BroadcastOp::fold(FoldAdaptor) { return {}; }
LogicalResult BroadcastOp::verify() { return success(); }
OpFoldResult TransposeOp::fold(FoldAdaptor) { return {}; }
LogicalResult TransposeOp::inferReturnTypes(MLIRContext *, std::optional<Location>, ValueRange, DictionaryAttr, OpaqueProperties, RegionRange, SmallVectorImpl<Type> &) { return failure(); }
OpFoldResult ReshapeOp::fold(FoldAdaptor) { return {}; }
LogicalResult ReshapeOp::verify() { return success(); }
OpFoldResult SliceOp::fold(FoldAdaptor) { return {}; }
LogicalResult SliceOp::verify() { return success(); }
OpFoldResult PadOp::fold(FoldAdaptor) { return {}; }
LogicalResult PadOp::verify() { return success(); }
OpFoldResult ConcatenateOp::fold(FoldAdaptor) { return {}; }
LogicalResult ConcatenateOp::inferReturnTypes(MLIRContext *, std::optional<Location>, ValueRange, DictionaryAttr, OpaqueProperties, RegionRange, SmallVectorImpl<Type> &) { return failure(); }
LogicalResult ReverseOp::verify() { return success(); }
LogicalResult GatherOp::inferReturnTypes(MLIRContext *, std::optional<Location>, ValueRange, DictionaryAttr, OpaqueProperties, RegionRange, SmallVectorImpl<Type> &) { return failure(); }
LogicalResult ScatterOp::verify() { return success(); }
OpFoldResult ReduceOp::fold(FoldAdaptor) { return {}; }
LogicalResult ReduceOp::inferReturnTypes(MLIRContext *, std::optional<Location>, ValueRange, DictionaryAttr, OpaqueProperties, RegionRange, SmallVectorImpl<Type> &) { return failure(); }
LogicalResult ArgReduceOp::inferReturnTypes(MLIRContext *, std::optional<Location>, ValueRange, DictionaryAttr, OpaqueProperties, RegionRange, SmallVectorImpl<Type> &) { return failure(); }
LogicalResult ScanOp::verify() { return success(); }
LogicalResult SortOp::inferReturnTypes(MLIRContext *, std::optional<Location>, ValueRange, DictionaryAttr, OpaqueProperties, RegionRange, SmallVectorImpl<Type> &) { return failure(); }
LogicalResult ReduceWindowOp::verify() { return success(); }
LogicalResult DotGeneralOp::verify() { return success(); }
LogicalResult ConvolutionOp::verify() { return success(); }
