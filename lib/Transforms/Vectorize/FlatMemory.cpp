// Buffers seen as one run of elements: contiguous accesses, gathers and scatters, each with or without a mask.
//
// memref<..xi1> holds a byte an element, but a vector of i1 is loaded as packed bits. So a buffer of i1 is accessed as
// i8 through an unrealized cast: both memref types become the same LLVM descriptor, and the cast disappears there.
#include "lib/Transforms/Vectorize/FlatMemory.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace lamina;

Value lamina::constantIndex(OpBuilder &b, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

std::optional<int64_t> lamina::constantOf(OpFoldResult value) { return getConstantIntValue(value); }

Value lamina::toValue(OpBuilder &b, Location loc, OpFoldResult value) {
  if (auto attr = dyn_cast<Attribute>(value))
    return constantIndex(b, loc, cast<IntegerAttr>(attr).getInt());
  return cast<Value>(value);
}

Value lamina::addIndex(OpBuilder &b, Location loc, Value lhs, Value rhs) {
  std::optional<int64_t> l = constantOf(lhs), r = constantOf(rhs);
  if (l && r)
    return constantIndex(b, loc, *l + *r);
  if (l == 0)
    return rhs;
  if (r == 0)
    return lhs;
  return arith::AddIOp::create(b, loc, lhs, rhs);
}

Value lamina::mulIndex(OpBuilder &b, Location loc, Value lhs, Value rhs) {
  std::optional<int64_t> l = constantOf(lhs), r = constantOf(rhs);
  if (l && r)
    return constantIndex(b, loc, *l * *r);
  if (l == 0 || r == 1)
    return lhs;
  if (r == 0 || l == 1)
    return rhs;
  return arith::MulIOp::create(b, loc, lhs, rhs);
}

OpFoldResult lamina::mulIndex(OpBuilder &b, Location loc, OpFoldResult lhs, OpFoldResult rhs) {
  std::optional<int64_t> l = constantOf(lhs), r = constantOf(rhs);
  if (l && r)
    return b.getIndexAttr(*l * *r);
  if (l == 1)
    return rhs;
  if (r == 1)
    return lhs;
  return mulIndex(b, loc, toValue(b, loc, lhs), toValue(b, loc, rhs));
}

Type LaneValue::scalarType() const {
  return base ? base.getType() : cast<VectorType>(vector.getType()).getElementType();
}

/// The constant vector 0, step, 2 * step, ...
static Value laneSteps(OpBuilder &b, Location loc, Type element, int64_t lanes, int64_t step) {
  auto type = VectorType::get({lanes}, element);
  unsigned width = element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
  SmallVector<APInt> values;
  for (int64_t lane = 0; lane < lanes; ++lane)
    values.push_back(APInt(64, lane * step).sextOrTrunc(width));
  return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, values));
}

Value lamina::asVector(OpBuilder &b, Location loc, const LaneContext &context, LaneValue value) {
  if (value.vector)
    return value.vector;
  if (context.lanes == 1)
    return value.base;
  auto type = VectorType::get({context.lanes}, value.base.getType());
  Attribute constant;
  if (value.step == 0 && matchPattern(value.base, m_Constant(&constant)))
    return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, constant));
  Value splat = vector::BroadcastOp::create(b, loc, type, value.base);
  if (value.step == 0)
    return splat;
  return arith::AddIOp::create(b, loc, splat, laneSteps(b, loc, value.base.getType(), context.lanes, value.step));
}

FlatMemory FlatMemory::get(OpBuilder &b, Location loc, Value memref) {
  FlatMemory memory;
  auto type = cast<MemRefType>(memref.getType());
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)))
    return memory;
  memory.element = type.getElementType();
  memory.identity = type.getLayout().isIdentity();
  memory.offset = constantIndex(b, loc, 0);
  if (type.getRank() == 1 && strides[0] == 1) {
    memory.flat = memref;
    memory.strides.push_back(b.getIndexAttr(1));
  } else {
    auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, memref);
    for (auto [index, stride] : llvm::enumerate(strides))
      memory.strides.push_back(ShapedType::isDynamic(stride) ? OpFoldResult(metadata.getStrides()[index])
                                                             : OpFoldResult(b.getIndexAttr(stride)));
    OpFoldResult start = ShapedType::isDynamic(offset) ? OpFoldResult(metadata.getOffset()) : b.getIndexAttr(offset);
    // Accesses are bounded by the iteration space and nothing reads the size of the view: where the number of elements
    // is not known, any size does.
    OpFoldResult size = b.getIndexAttr(1);
    int64_t staticSize = 1;
    for (auto [index, extent] : llvm::enumerate(type.getShape()))
      if (ShapedType::isDynamic(extent)) {
        size = metadata.getSizes()[index];
        staticSize = ShapedType::kDynamic;
      }
    if (staticSize == 1 && memory.identity) {
      staticSize = type.getNumElements();
      size = b.getIndexAttr(staticSize);
    }
    SmallVector<int64_t> flatStrides = {1};
    auto layout = offset == 0 ? StridedLayoutAttr() : StridedLayoutAttr::get(b.getContext(), offset, flatStrides);
    auto flatType = MemRefType::get({staticSize}, memory.element, layout, type.getMemorySpace());
    memory.flat =
        memref::ReinterpretCastOp::create(b, loc, flatType, metadata.getBaseBuffer(), start,
                                          ArrayRef<OpFoldResult>{size}, ArrayRef<OpFoldResult>{b.getIndexAttr(1)});
  }
  if (memory.element.isInteger(1)) {
    auto flatType = cast<MemRefType>(memory.flat.getType());
    Type bytes = MemRefType::get(flatType.getShape(), b.getI8Type(), flatType.getLayout(), flatType.getMemorySpace());
    memory.flat = UnrealizedConversionCastOp::create(b, loc, bytes, memory.flat).getResult(0);
  }
  return memory;
}

/// The mask of the step, all true if there is none.
static Value fullMask(OpBuilder &b, Location loc, const LaneContext &context) {
  if (context.mask)
    return context.mask;
  auto type = VectorType::get({context.lanes}, b.getI1Type());
  return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, true));
}

static Value zeros(OpBuilder &b, Location loc, VectorType type) {
  return arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
}

/// Splits the index of a gather or scatter into a scalar start and a vector of distances from it.
static std::pair<Value, Value> splitIndex(OpBuilder &b, Location loc, const LaneContext &context, LaneValue index) {
  if (!index.isLinear())
    return {constantIndex(b, loc, 0), index.vector};
  // Narrow distances make a gather half as wide.
  bool narrow = std::abs(index.step) < (int64_t(1) << 31) / context.lanes;
  Type type = narrow ? Type(b.getI32Type()) : Type(b.getIndexType());
  return {index.base, laneSteps(b, loc, type, context.lanes, index.step)};
}

LaneValue FlatMemory::load(OpBuilder &b, Location loc, const LaneContext &context, LaneValue index) const {
  Type stored = cast<MemRefType>(flat.getType()).getElementType();
  bool isBool = element.isInteger(1);
  if (context.lanes == 1 || (index.isUniform() && !context.conditional)) {
    Value value = memref::LoadOp::create(b, loc, flat, ValueRange{index.base});
    if (isBool) {
      Value zero = arith::ConstantOp::create(b, loc, b.getI8IntegerAttr(0));
      value = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, value, zero);
    }
    return LaneValue::uniform(value);
  }
  auto type = VectorType::get({context.lanes}, stored);
  Value value;
  if (index.isLinear() && index.step == 1) {
    if (context.mask)
      value =
          vector::MaskedLoadOp::create(b, loc, type, flat, ValueRange{index.base}, context.mask, zeros(b, loc, type));
    else
      value = vector::LoadOp::create(b, loc, type, flat, ValueRange{index.base});
  } else {
    auto [start, distances] = splitIndex(b, loc, context, index);
    value = vector::GatherOp::create(b, loc, type, flat, ValueRange{start}, distances, fullMask(b, loc, context),
                                     zeros(b, loc, type));
  }
  if (isBool)
    value = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, value, zeros(b, loc, type));
  return LaneValue::lanes(value);
}

void FlatMemory::store(OpBuilder &b, Location loc, const LaneContext &context, LaneValue index, LaneValue value) const {
  bool isBool = element.isInteger(1);
  if (context.lanes == 1) {
    Value scalar = value.base;
    if (isBool)
      scalar = arith::ExtUIOp::create(b, loc, b.getI8Type(), scalar);
    memref::StoreOp::create(b, loc, scalar, flat, ValueRange{index.base});
    return;
  }
  Value vector = asVector(b, loc, context, value);
  if (isBool)
    vector = arith::ExtUIOp::create(b, loc, VectorType::get({context.lanes}, b.getI8Type()), vector);
  if (index.isLinear() && index.step == 1) {
    if (context.mask)
      vector::MaskedStoreOp::create(b, loc, flat, ValueRange{index.base}, context.mask, vector);
    else
      vector::StoreOp::create(b, loc, vector, flat, ValueRange{index.base});
    return;
  }
  auto [start, distances] = splitIndex(b, loc, context, index);
  vector::ScatterOp::create(b, loc, Type(), flat, ValueRange{start}, distances, fullMask(b, loc, context), vector);
}
