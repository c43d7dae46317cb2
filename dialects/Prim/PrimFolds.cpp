// Folds of the prim ops: what is exactly the same value in eager PyTorch, for NaN, -0.0 and wrap-around too.
#include "dialects/Prim/Prim.h"
#include "dialects/Prim/PrimSizes.h"
#include "llvm/ADT/APSInt.h"

using namespace mlir;
using namespace lamina;
using namespace lamina::prim;

/// Constants with more elements are left to run time.
static constexpr int64_t kMaxFoldedElements = 256;

// ---- constants -------------------------------------------------------------------------------------------------

static bool isSigned(Type type) { return !type.isUnsignedInteger() && !type.isInteger(1); }

/// One element of a constant, a float or an integer as its type says.
struct Scalar {
  APFloat real = APFloat(0.0);
  APInt integer;
};

static Scalar getScalar(Type type, Attribute attr) {
  Scalar scalar;
  if (isa<FloatType>(type))
    scalar.real = cast<FloatAttr>(attr).getValue();
  else
    scalar.integer = cast<IntegerAttr>(attr).getValue();
  return scalar;
}

static Attribute getScalarAttr(Type type, const Scalar &scalar) {
  if (isa<FloatType>(type))
    return FloatAttr::get(type, scalar.real);
  return IntegerAttr::get(type, scalar.integer);
}

/// Computes a constant elementwise. `compute` returns nothing where eager's value is not to be known here.
static OpFoldResult foldElements(ArrayRef<Attribute> operands, Type result,
                                 function_ref<std::optional<Scalar>(ArrayRef<Scalar>)> compute) {
  auto type = cast<RankedTensorType>(result);
  if (!type.hasStaticShape())
    return {};
  SmallVector<DenseElementsAttr> values;
  bool splat = true;
  for (Attribute operand : operands) {
    auto dense = dyn_cast_or_null<DenseElementsAttr>(operand);
    if (!dense || dense.getType().getShape() != type.getShape())
      return {};
    values.push_back(dense);
    splat &= dense.isSplat();
  }
  int64_t count = splat ? 1 : type.getNumElements();
  if (count == 0 || count > kMaxFoldedElements)
    return {};
  SmallVector<SmallVector<Attribute>> elements;
  for (DenseElementsAttr dense : values) {
    if (splat)
      elements.push_back({dense.getSplatValue<Attribute>()});
    else
      elements.push_back(llvm::to_vector(dense.getValues<Attribute>()));
  }
  SmallVector<Attribute> results;
  for (int64_t i = 0; i < count; ++i) {
    SmallVector<Scalar> arguments;
    for (auto [dense, list] : llvm::zip(values, elements))
      arguments.push_back(getScalar(dense.getElementType(), list[i]));
    std::optional<Scalar> value = compute(arguments);
    if (!value)
      return {};
    results.push_back(getScalarAttr(type.getElementType(), *value));
  }
  return DenseElementsAttr::get(type, results);
}

/// The one value of a constant operand, if it has one.
static std::optional<Scalar> getSplat(Attribute operand) {
  auto dense = dyn_cast_or_null<DenseElementsAttr>(operand);
  if (!dense || !dense.isSplat())
    return std::nullopt;
  return getScalar(dense.getElementType(), dense.getSplatValue<Attribute>());
}

/// Whether a value is everywhere this number; a float must have the sign too.
static bool isSplatOf(Value value, int64_t number, bool negativeZero = false) {
  while (auto broadcast = value.getDefiningOp<BroadcastOp>())
    value = broadcast.getOperand();
  auto constant = value.getDefiningOp<ConstantOp>();
  std::optional<Scalar> splat = constant ? getSplat(constant.getValue()) : std::nullopt;
  if (!splat)
    return false;
  if (!isa<FloatType>(getElementTypeOrSelf(value)))
    return !negativeZero && splat->integer == APInt(splat->integer.getBitWidth(), number, /*isSigned=*/true,
                                                    /*implicitTrunc=*/true);
  APFloat expected(splat->real.getSemantics(), static_cast<uint64_t>(number));
  if (negativeZero)
    expected.changeSign();
  return splat->real.bitwiseIsEqual(expected);
}

/// `value`, if it may take the place of a result of this type.
static OpFoldResult sameType(Value value, Type type) {
  return value.getType() == type ? OpFoldResult(value) : OpFoldResult();
}

using FloatFunction = APFloat (*)(const APFloat &, const APFloat &);
using IntegerFunction = std::optional<APInt> (*)(const APInt &, const APInt &, bool isSigned);

static OpFoldResult foldBinary(ArrayRef<Attribute> operands, Type type, FloatFunction onFloats,
                               IntegerFunction onIntegers) {
  Type element = getElementTypeOrSelf(type);
  return foldElements(operands, type, [&](ArrayRef<Scalar> in) -> std::optional<Scalar> {
    Scalar result;
    if (isa<FloatType>(element)) {
      // One rounding to the type. Eager rounds f16 and bf16 from an f32 result, which for these four operations is the
      // same.
      result.real = onFloats(in[0].real, in[1].real);
      return result;
    }
    std::optional<APInt> value = onIntegers(in[0].integer, in[1].integer, isSigned(element));
    if (!value)
      return std::nullopt;
    result.integer = *value;
    return result;
  });
}

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

// ---- arithmetic ------------------------------------------------------------------------------------------------

OpFoldResult NegOp::fold(FoldAdaptor adaptor) {
  if (auto inner = getOperand().getDefiningOp<NegOp>())
    return sameType(inner.getOperand(), getType());
  return foldElements(adaptor.getOperand(), getType(), [](ArrayRef<Scalar> in) -> std::optional<Scalar> {
    Scalar result = in[0];
    result.real.changeSign();
    result.integer.negate();
    return result;
  });
}

OpFoldResult NotOp::fold(FoldAdaptor adaptor) {
  if (auto inner = getOperand().getDefiningOp<NotOp>())
    return sameType(inner.getOperand(), getType());
  return foldElements(adaptor.getOperand(), getType(), [](ArrayRef<Scalar> in) -> std::optional<Scalar> {
    Scalar result = in[0];
    result.integer.flipAllBits();
    return result;
  });
}

/// The operand that the result is, where the other is everywhere the operation's neutral element.
static OpFoldResult foldNeutral(Value lhs, Value rhs, Type type, int64_t neutral, bool commutative,
                                bool negativeZero = false) {
  if (isSplatOf(rhs, neutral, negativeZero))
    if (OpFoldResult same = sameType(lhs, type))
      return same;
  if (commutative && isSplatOf(lhs, neutral, negativeZero))
    return sameType(rhs, type);
  return {};
}

OpFoldResult AddOp::fold(FoldAdaptor adaptor) {
  // x + 0.0 is not x where x is -0.0.
  bool isFloat = isa<FloatType>(getType().getElementType());
  if (OpFoldResult same = foldNeutral(getLhs(), getRhs(), getType(), 0, /*commutative=*/true, /*negativeZero=*/isFloat))
    return same;
  return foldBinary(
      adaptor.getOperands(), getType(), [](const APFloat &x, const APFloat &y) { return x + y; },
      [](const APInt &x, const APInt &y, bool) { return std::optional(x + y); });
}

OpFoldResult SubOp::fold(FoldAdaptor adaptor) {
  if (OpFoldResult same = foldNeutral(getLhs(), getRhs(), getType(), 0, /*commutative=*/false))
    return same;
  return foldBinary(
      adaptor.getOperands(), getType(), [](const APFloat &x, const APFloat &y) { return x - y; },
      [](const APInt &x, const APInt &y, bool) { return std::optional(x - y); });
}

OpFoldResult MulOp::fold(FoldAdaptor adaptor) {
  if (OpFoldResult same = foldNeutral(getLhs(), getRhs(), getType(), 1, /*commutative=*/true))
    return same;
  return foldBinary(
      adaptor.getOperands(), getType(), [](const APFloat &x, const APFloat &y) { return x * y; },
      [](const APInt &x, const APInt &y, bool) { return std::optional(x * y); });
}

OpFoldResult DivOp::fold(FoldAdaptor adaptor) {
  if (OpFoldResult same = foldNeutral(getLhs(), getRhs(), getType(), 1, /*commutative=*/false))
    return same;
  return foldBinary(
      adaptor.getOperands(), getType(), [](const APFloat &x, const APFloat &y) { return x / y; },
      [](const APInt &x, const APInt &y, bool isSigned) -> std::optional<APInt> {
        if (y.isZero() || (isSigned && x.isMinSignedValue() && y.isAllOnes()))
          return std::nullopt; // an error of the program, and an overflow that traps
        return isSigned ? x.sdiv(y) : x.udiv(y);
      });
}

/// x op x is x, and so is x op neutral; x op absorbing is absorbing.
static OpFoldResult foldLattice(Value lhs, Value rhs, Type type, int64_t neutral, int64_t absorbing) {
  if (lhs == rhs)
    return sameType(lhs, type);
  if (OpFoldResult same = foldNeutral(lhs, rhs, type, neutral, /*commutative=*/true))
    return same;
  for (Value side : {lhs, rhs})
    if (isSplatOf(side, absorbing))
      return sameType(side, type);
  return {};
}

OpFoldResult AndOp::fold(FoldAdaptor adaptor) {
  if (OpFoldResult same = foldLattice(getLhs(), getRhs(), getType(), -1, 0))
    return same;
  return foldBinary(adaptor.getOperands(), getType(), nullptr,
                    [](const APInt &x, const APInt &y, bool) { return std::optional(x & y); });
}

OpFoldResult OrOp::fold(FoldAdaptor adaptor) {
  if (OpFoldResult same = foldLattice(getLhs(), getRhs(), getType(), 0, -1))
    return same;
  return foldBinary(adaptor.getOperands(), getType(), nullptr,
                    [](const APInt &x, const APInt &y, bool) { return std::optional(x | y); });
}

// ---- comparison and conversion ---------------------------------------------------------------------------------

OpFoldResult CompareOp::fold(FoldAdaptor adaptor) {
  Type element = getLhs().getType().getElementType();
  Comparison comparison = getComparison();
  return foldElements(adaptor.getOperands(), getType(), [&](ArrayRef<Scalar> in) -> std::optional<Scalar> {
    bool less, equal, ordered = true;
    if (isa<FloatType>(element)) {
      APFloat::cmpResult order = in[0].real.compare(in[1].real);
      less = order == APFloat::cmpLessThan;
      equal = order == APFloat::cmpEqual;
      ordered = order != APFloat::cmpUnordered;
    } else {
      less = isSigned(element) ? in[0].integer.slt(in[1].integer) : in[0].integer.ult(in[1].integer);
      equal = in[0].integer == in[1].integer;
    }
    bool holds = false;
    switch (comparison) {
    case Comparison::eq:
      holds = equal;
      break;
    case Comparison::ne:
      holds = !equal;
      break;
    case Comparison::lt:
      holds = less;
      break;
    case Comparison::le:
      holds = less || equal;
      break;
    case Comparison::gt:
      holds = ordered && !less && !equal;
      break;
    case Comparison::ge:
      holds = ordered && !less;
      break;
    }
    Scalar result;
    result.integer = APInt(1, holds);
    return result;
  });
}

OpFoldResult SelectOp::fold(FoldAdaptor adaptor) {
  if (getOnTrue() == getOnFalse())
    return getOnTrue();
  if (std::optional<Scalar> predicate = getSplat(adaptor.getPredicate()))
    return predicate->integer.isZero() ? getOnFalse() : getOnTrue();
  auto predicate = dyn_cast_or_null<DenseElementsAttr>(adaptor.getPredicate());
  auto onTrue = dyn_cast_or_null<DenseElementsAttr>(adaptor.getOnTrue());
  if (!predicate || !onTrue)
    return {};
  return foldElements(adaptor.getOperands(), getType(), [](ArrayRef<Scalar> in) -> std::optional<Scalar> {
    return in[0].integer.isZero() ? in[2] : in[1];
  });
}

/// Whether every value of `from` is one of `to`, NaN and the sign of zero included.
static bool isLossless(Type from, Type to) {
  if (from == to)
    return true;
  auto fromFloat = dyn_cast<FloatType>(from), toFloat = dyn_cast<FloatType>(to);
  if (fromFloat && toFloat)
    return toFloat.getWidth() > fromFloat.getWidth(); // f16 and bf16 have one width, and neither holds the other
  if (fromFloat)
    return false;
  unsigned width = from.getIntOrFloatBitWidth() - (isSigned(from) ? 1 : 0);
  if (toFloat)
    return width <= toFloat.getFPMantissaWidth();
  if (to.isInteger(1))
    return false;
  return isSigned(to) ? width < to.getIntOrFloatBitWidth() : !isSigned(from) && width <= to.getIntOrFloatBitWidth();
}

/// Whether converting by way of `middle`, which holds every value of `from`, is the same as directly.
static bool canSkipConversion(Type from, Type middle, Type to) {
  if (!isLossless(from, middle))
    return false;
  // Out of its range a conversion from float to integer depends on the float type.
  if (isa<FloatType>(middle) && !isa<FloatType>(to) && !to.isInteger(1))
    return isa<FloatType>(from) ? from == middle || (middle.isF32() && from.getIntOrFloatBitWidth() == 16)
                                : isLossless(from, to);
  return true;
}

static APFloat roundTo(APFloat value, Type type) {
  bool exact;
  value.convert(cast<FloatType>(type).getFloatSemantics(), APFloat::rmNearestTiesToEven, &exact);
  return value;
}

static std::optional<Scalar> convertScalar(const Scalar &value, Type from, Type to) {
  Scalar result;
  auto fromFloat = dyn_cast<FloatType>(from), toFloat = dyn_cast<FloatType>(to);
  Type single = Float32Type::get(from.getContext());
  if (to.isInteger(1)) {
    result.integer = APInt(1, fromFloat ? !value.real.isZero() : !value.integer.isZero());
  } else if (toFloat) {
    // Eager makes f16 and bf16 from an f32.
    bool small = toFloat.getWidth() == 16;
    APFloat real = value.real;
    if (!fromFloat) {
      real = APFloat(cast<FloatType>(small ? single : to).getFloatSemantics());
      real.convertFromAPInt(value.integer, isSigned(from), APFloat::rmNearestTiesToEven);
    } else if (small) {
      real = roundTo(real, single);
    }
    result.real = roundTo(real, to);
  } else if (fromFloat) {
    llvm::APSInt integer(to.getIntOrFloatBitWidth(), /*isUnsigned=*/!isSigned(to));
    bool exact;
    if (value.real.convertToInteger(integer, APFloat::rmTowardZero, &exact) == APFloat::opInvalidOp)
      return std::nullopt; // out of range: up to the machine
    result.integer = integer;
  } else {
    unsigned width = to.getIntOrFloatBitWidth();
    result.integer = isSigned(from) ? value.integer.sextOrTrunc(width) : value.integer.zextOrTrunc(width);
  }
  return result;
}

OpFoldResult ConvertOp::fold(FoldAdaptor adaptor) {
  if (OpFoldResult same = sameType(getOperand(), getType()))
    return same;
  Type from = getOperand().getType().getElementType(), to = getType().getElementType();
  if (auto inner = getOperand().getDefiningOp<ConvertOp>())
    if (canSkipConversion(inner.getOperand().getType().getElementType(), from, to)) {
      getOperandMutable().assign(inner.getOperand());
      return getResult();
    }
  return foldElements(adaptor.getOperand(), getType(),
                      [&](ArrayRef<Scalar> in) { return convertScalar(in[0], from, to); });
}

// ---- shapes ----------------------------------------------------------------------------------------------------

/// A constant of one value in another shape.
static OpFoldResult resizeSplat(Attribute operand, RankedTensorType type) {
  auto dense = dyn_cast_or_null<DenseElementsAttr>(operand);
  if (dense && dense.isSplat() && type.hasStaticShape())
    return dense.resizeSplat(type);
  return {};
}

static bool isIdentity(ArrayRef<int64_t> dims) {
  return llvm::all_of(llvm::enumerate(dims),
                      [](auto entry) { return entry.value() == static_cast<int64_t>(entry.index()); });
}

/// outer[inner[k]] for each k
static SmallVector<int64_t> compose(ArrayRef<int64_t> outer, ArrayRef<int64_t> inner) {
  return llvm::map_to_vector(inner, [&](int64_t dim) { return outer[dim]; });
}

OpFoldResult IotaOp::fold(FoldAdaptor) {
  // Along a dimension of size 1 the only index is 0.
  if (getType().getDimSize(getDim()) != 1 || !getType().hasStaticShape())
    return {};
  return DenseElementsAttr::get(getType(), Builder(getContext()).getZeroAttr(getType().getElementType()));
}

OpFoldResult BroadcastOp::fold(FoldAdaptor adaptor) {
  if (isIdentity(getDims()))
    if (OpFoldResult same = sameType(getOperand(), getType()))
      return same;
  if (OpFoldResult splat = resizeSplat(adaptor.getOperand(), getType()))
    return splat;
  if (auto inner = getOperand().getDefiningOp<BroadcastOp>()) {
    setDims(compose(getDims(), inner.getDims()));
    getOperandMutable().assign(inner.getOperand());
    return getResult();
  }
  return {};
}

OpFoldResult TransposeOp::fold(FoldAdaptor adaptor) {
  if (isIdentity(getPermutation()))
    if (OpFoldResult same = sameType(getOperand(), getType()))
      return same;
  if (OpFoldResult splat = resizeSplat(adaptor.getOperand(), getType()))
    return splat;
  if (auto inner = getOperand().getDefiningOp<TransposeOp>()) {
    setPermutation(compose(inner.getPermutation(), getPermutation()));
    getOperandMutable().assign(inner.getOperand());
    return getResult();
  }
  return {};
}

OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  // With one ? and no size 0 that size follows from the number of elements.
  RankedTensorType type = getType();
  if (type.getNumDynamicDims() == 0 || (type.getNumDynamicDims() == 1 && !llvm::is_contained(type.getShape(), 0)))
    if (OpFoldResult same = sameType(getOperand(), type))
      return same;
  if (auto dense = dyn_cast_or_null<DenseElementsAttr>(adaptor.getOperand()); dense && type.hasStaticShape())
    return dense.isSplat() ? dense.resizeSplat(type) : dense.reshape(type);
  if (auto inner = getOperand().getDefiningOp<ReshapeOp>()) {
    getOperandMutable().assign(inner.getOperand());
    return getResult();
  }
  return {};
}

/// All of a slice's starts are 0, and its steps 1.
static bool startsAtOrigin(SliceOp op) {
  return llvm::all_of(op.getStarts().getResults(), [](AffineExpr start) { return start == 0; }) &&
         llvm::all_of(op.getStrides(), [](int64_t stride) { return stride == 1; });
}

/// Slices a slice: start a and stride s inside, start b, limit l and stride t outside.
static LogicalResult composeSlices(SliceOp outer, SliceOp inner) {
  Exprs starts, limits;
  SmallVector<int64_t> strides;
  for (auto [a, s, b, l, t] :
       llvm::zip(inner.getStarts().getResults(), inner.getStrides(), outer.getStarts().getResults(),
                 outer.getLimits().getResults(), outer.getStrides())) {
    int64_t stride;
    if (llvm::MulOverflow(s, t, stride))
      return failure();
    AffineExpr start = simplifySize(a + b * s), limit = simplifySize(a + l);
    if (s != 1) {
      // The limit is just after the last element, or the start where there is none, so the order of b and l must be
      // known.
      auto first = dyn_cast<AffineConstantExpr>(b), last = dyn_cast<AffineConstantExpr>(l);
      if (!first || !last)
        return failure();
      limit = first.getValue() == last.getValue() ? start : simplifySize(a + (l - 1) * s + 1);
    }
    starts.push_back(start);
    limits.push_back(limit);
    strides.push_back(stride);
  }
  outer.setStartsAttr(getExprs(outer.getContext(), starts));
  outer.setLimitsAttr(getExprs(outer.getContext(), limits));
  outer.setStrides(strides);
  outer.getOperandMutable().assign(inner.getOperand());
  return success();
}

OpFoldResult SliceOp::fold(FoldAdaptor adaptor) {
  if (getType().hasStaticShape() && startsAtOrigin(*this))
    if (OpFoldResult same = sameType(getOperand(), getType()))
      return same;
  if (OpFoldResult splat = resizeSplat(adaptor.getOperand(), getType()))
    return splat;
  if (auto inner = getOperand().getDefiningOp<SliceOp>())
    if (succeeded(composeSlices(*this, inner)))
      return getResult();
  return {};
}

OpFoldResult PadOp::fold(FoldAdaptor) {
  auto isZero = [](AffineMap amounts) {
    return llvm::all_of(amounts.getResults(), [](AffineExpr amount) { return amount == 0; });
  };
  if (isZero(getLow()) && isZero(getHigh()))
    return sameType(getOperand(), getType());
  return {};
}

OpFoldResult ConcatenateOp::fold(FoldAdaptor) {
  SmallVector<Value> kept;
  for (Value operand : getOperands())
    if (cast<RankedTensorType>(operand.getType()).getDimSize(getDim()) != 0)
      kept.push_back(operand);
  if (kept.empty())
    kept.push_back(getOperands().front());
  if (kept.size() == 1)
    if (OpFoldResult same = sameType(kept.front(), getType()))
      return same;
  if (kept.size() < getOperands().size()) {
    getOperandsMutable().assign(kept);
    return getResult();
  }
  return {};
}

// ---- reductions ------------------------------------------------------------------------------------------------

/// Combining in one step is the same, or for floats the reassociation that docs/numerics.md allows; f16 and bf16 sums
/// would lose a rounding that eager makes.
static bool canMergeReductions(Combiner combiner, Type element) {
  return (combiner != Combiner::sum && combiner != Combiner::prod) || !isa<FloatType>(element) ||
         element.getIntOrFloatBitWidth() > 16;
}

OpFoldResult ReduceOp::fold(FoldAdaptor) {
  if (getDims().empty())
    return sameType(getOperand(), getType());
  auto inner = getOperand().getDefiningOp<ReduceOp>();
  if (!inner || inner.getCombiner() != getCombiner() || !inner->hasOneUse() ||
      !canMergeReductions(getCombiner(), getType().getElementType()))
    return {};
  // The dims that the inner reduction left, by their numbers in its operand.
  SmallVector<int64_t> left, dims(inner.getDims());
  for (int64_t dim = 0; dim < inner.getOperand().getType().getRank(); ++dim)
    if (!llvm::is_contained(inner.getDims(), dim))
      left.push_back(dim);
  llvm::append_range(dims, compose(left, getDims()));
  llvm::sort(dims);
  setDims(dims);
  getOperandMutable().assign(inner.getOperand());
  return getResult();
}
