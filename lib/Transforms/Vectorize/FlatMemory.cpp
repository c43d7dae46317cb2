// Buffers seen as one run of elements: contiguous accesses, gathers and scatters, each with or without a mask.
//
// memref<..xi1> holds a byte an element, but a vector of i1 is loaded as packed bits. So a buffer of i1 is accessed as
// i8 through an unrealized cast: both memref types become the same LLVM descriptor, and the cast disappears there.
#include "lib/Transforms/Vectorize/FlatMemory.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
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

/// The constant vector 0, step, 2 * step, ...
static Value laneSteps(OpBuilder &b, Location loc, Type element, int64_t lanes, int64_t step) {
  auto type = VectorType::get({lanes}, element);
  unsigned width = element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
  SmallVector<APInt> values;
  for (int64_t lane = 0; lane < lanes; ++lane)
    values.push_back(APInt(64, lane * step).sextOrTrunc(width));
  return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, values));
}

static Value clampTo(OpBuilder &b, Location loc, Value value, bool isMax, Value bound) {
  if (isMax)
    return arith::MaxSIOp::create(b, loc, value, bound);
  return arith::MinSIOp::create(b, loc, value, bound);
}

static Value broadcast(OpBuilder &b, Location loc, int64_t lanes, Value scalar) {
  auto type = VectorType::get({lanes}, scalar.getType());
  Attribute constant;
  if (matchPattern(scalar, m_Constant(&constant)))
    return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, constant));
  return vector::BroadcastOp::create(b, loc, type, scalar);
}

Value lamina::asVector(OpBuilder &b, Location loc, const LaneContext &context, LaneValue value) {
  if (value.vector)
    return value.vector;
  Value result = value.base;
  if (context.lanes > 1) {
    result = broadcast(b, loc, context.lanes, value.base);
    if (value.step != 0)
      result =
          arith::AddIOp::create(b, loc, result, laneSteps(b, loc, value.base.getType(), context.lanes, value.step));
  }
  for (const Clamp &clamp : value.clamps)
    result = clampTo(b, loc, result, clamp.isMax,
                     context.lanes > 1 ? broadcast(b, loc, context.lanes, clamp.bound) : clamp.bound);
  return result;
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
    return {constantIndex(b, loc, 0), asVector(b, loc, context, index)};
  // Narrow distances make a gather half as wide.
  bool narrow = std::abs(index.step) < (int64_t(1) << 31) / context.lanes;
  Type type = narrow ? Type(b.getI32Type()) : Type(b.getIndexType());
  return {index.base, laneSteps(b, loc, type, context.lanes, index.step)};
}

/// Loads one vector of the elements as they are stored.
Value FlatMemory::loadLanes(OpBuilder &b, Location loc, const LaneContext &context, LaneValue index) const {
  auto type = VectorType::get({context.lanes}, cast<MemRefType>(flat.getType()).getElementType());
  if (index.isLinear() && index.step == 1) {
    if (context.mask)
      return vector::MaskedLoadOp::create(b, loc, type, flat, ValueRange{index.base}, context.mask,
                                          zeros(b, loc, type));
    return vector::LoadOp::create(b, loc, type, flat, ValueRange{index.base});
  }
  auto [start, distances] = splitIndex(b, loc, context, index);
  return vector::GatherOp::create(b, loc, type, flat, ValueRange{start}, distances, fullMask(b, loc, context),
                                  zeros(b, loc, type));
}

/// Loads consecutive elements whose index is clamped, as the parts of a concatenation or a padding do. Nearly always
/// either no lane is clamped, and this is one contiguous load, or all are, and this is one element. Only the steps
/// that cross a bound gather.
Value FlatMemory::loadClamped(OpBuilder &b, Location loc, const LaneContext &context, LaneValue index) const {
  auto clamped = [&](Value value) {
    for (const Clamp &clamp : index.clamps)
      value = clampTo(b, loc, value, clamp.isMax, clamp.bound);
    return value;
  };
  Value first = clamped(index.base);
  Value last = clamped(addIndex(b, loc, index.base, constantIndex(b, loc, context.lanes - 1)));
  Value distance = arith::SubIOp::create(b, loc, last, first);
  auto distanceIs = [&](int64_t value) {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, distance, constantIndex(b, loc, value));
  };
  auto yield = [&](Value value) { scf::YieldOp::create(b, loc, value); };
  auto contiguous = [&](OpBuilder &, Location) { yield(loadLanes(b, loc, context, LaneValue::linear(first, 1))); };
  auto gather = [&](OpBuilder &, Location) {
    yield(loadLanes(b, loc, context, LaneValue::lanes(asVector(b, loc, context, index))));
  };
  auto outside = [&](OpBuilder &, Location) {
    auto single = [&](OpBuilder &, Location) {
      Value element = memref::LoadOp::create(b, loc, flat, ValueRange{first});
      yield(broadcast(b, loc, context.lanes, element));
    };
    yield(scf::IfOp::create(b, loc, distanceIs(0), single, gather).getResult(0));
  };
  if (context.conditional)
    return scf::IfOp::create(b, loc, distanceIs(context.lanes - 1), contiguous, gather).getResult(0);
  return scf::IfOp::create(b, loc, distanceIs(context.lanes - 1), contiguous, outside).getResult(0);
}

LaneValue FlatMemory::load(OpBuilder &b, Location loc, const LaneContext &context, LaneValue index) const {
  Type stored = cast<MemRefType>(flat.getType()).getElementType();
  bool isBool = element.isInteger(1);
  if (context.lanes == 1 || (index.isUniform() && !context.conditional)) {
    Value value = memref::LoadOp::create(b, loc, flat, ValueRange{asVector(b, loc, LaneContext(), index)});
    if (isBool) {
      Value zero = arith::ConstantOp::create(b, loc, b.getI8IntegerAttr(0));
      value = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, value, zero);
    }
    return LaneValue::uniform(value);
  }
  Value value =
      index.isClamped() && index.step == 1 ? loadClamped(b, loc, context, index) : loadLanes(b, loc, context, index);
  if (isBool)
    value = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, value,
                                  zeros(b, loc, VectorType::get({context.lanes}, stored)));
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
