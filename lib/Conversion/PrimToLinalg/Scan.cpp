// Scans: a sequential loop over the positions along the dimension, linalg on all the others.
#include "lib/Conversion/PrimToLinalg/Scan.h"
#include "lib/Conversion/PrimToLinalg/ScalarBody.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace lamina;

static constexpr StringLiteral kScanMark = "lamina.scan";

Value lamina::buildScan(OpBuilder &b, Location loc, Value operand, const ScanInfo &info, Value init) {
  auto type = cast<RankedTensorType>(operand.getType());
  Type wide = getComputeType(info.elementType), narrow = getScalarType(info.elementType);
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, operand), offsets(type.getRank(), b.getIndexAttr(0)),
                            strides(type.getRank(), b.getIndexAttr(1)), sliceSizes = sizes, kept = sizes;
  if (!init)
    init = tensor::EmptyOp::create(b, loc, sizes, narrow);
  sliceSizes[info.dim] = b.getIndexAttr(1);
  kept.erase(kept.begin() + info.dim);
  SmallVector<int64_t> keptShape(type.getShape());
  keptShape.erase(keptShape.begin() + info.dim);
  auto sliceType = RankedTensorType::get(keptShape, narrow);

  Value identity = arith::ConstantOp::create(b, loc, getIdentity(b, info.combiner, info.elementType));
  Value total =
      linalg::FillOp::create(b, loc, identity, Value(tensor::EmptyOp::create(b, loc, kept, wide))).getResult(0);
  Value zero = arith::ConstantIndexOp::create(b, loc, 0), one = arith::ConstantIndexOp::create(b, loc, 1);
  Value end = getValueOrCreateConstantIndexOp(b, loc, sizes[info.dim]);
  SmallVector<utils::IteratorType> iterators(kept.size(), utils::IteratorType::parallel);
  AffineMap identityMap = AffineMap::getMultiDimIdentityMap(kept.size(), b.getContext());

  auto body = [&](OpBuilder &b, Location loc, Value position, ValueRange state) {
    offsets[info.dim] = position;
    Value slice = tensor::ExtractSliceOp::create(b, loc, sliceType, operand, offsets, sliceSizes, strides);
    Value destination = tensor::ExtractSliceOp::create(b, loc, sliceType, state[1], offsets, sliceSizes, strides);
    // Results: the running total and, rounded, this position's element.
    auto step = linalg::GenericOp::create(
        b, loc, TypeRange{state[0].getType(), sliceType}, ValueRange{slice}, ValueRange{state[0], destination},
        {identityMap, identityMap, identityMap}, iterators, [&](OpBuilder &b, Location loc, ValueRange args) {
          Value next =
              buildCombination(b, loc, info.combiner, info.elementType, args[1], castFloat(b, loc, args[0], wide));
          linalg::YieldOp::create(b, loc, ValueRange{next, castFloat(b, loc, next, narrow)});
        });
    Value result = tensor::InsertSliceOp::create(b, loc, step.getResult(1), state[1], offsets, sliceSizes, strides);
    scf::YieldOp::create(b, loc, ValueRange{step.getResult(0), result});
  };
  auto loop = scf::ForOp::create(b, loc, zero, end, one, ValueRange{total, init}, body);
  loop->setAttr(kScanMark,
                b.getDictionaryAttr({b.getNamedAttr("dim", b.getI64IntegerAttr(info.dim)),
                                     b.getNamedAttr("combiner", prim::CombinerAttr::get(b.getContext(), info.combiner)),
                                     b.getNamedAttr("element_type", TypeAttr::get(info.elementType))}));
  return loop.getResult(1);
}

std::optional<std::pair<ScanInfo, Value>> lamina::matchScan(Operation *op) {
  auto attrs = op->getAttrOfType<DictionaryAttr>(kScanMark);
  auto loop = dyn_cast<scf::ForOp>(op);
  if (!attrs || !loop)
    return std::nullopt;
  ScanInfo info{cast<IntegerAttr>(attrs.get("dim")).getInt(),
                cast<prim::CombinerAttr>(attrs.get("combiner")).getValue(),
                cast<TypeAttr>(attrs.get("element_type")).getValue()};
  for (auto slice : loop.getOps<tensor::ExtractSliceOp>())
    if (loop.isDefinedOutsideOfLoop(slice.getSource()))
      return std::make_pair(info, Value(slice.getSource()));
  return std::nullopt;
}
