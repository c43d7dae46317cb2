// Elementwise prim ops on scalars: a table of the arith and math ops that stand for each of them.
#include "lib/Conversion/PrimToLinalg/ScalarBody.h"
#include "dialects/Prim/Combiners.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace lamina;

Type lamina::getScalarType(Type elementType) {
  if (auto integer = dyn_cast<IntegerType>(elementType))
    return IntegerType::get(elementType.getContext(), integer.getWidth());
  return elementType;
}

Type lamina::getComputeType(Type elementType) {
  if (elementType.isF16() || elementType.isBF16())
    return Float32Type::get(elementType.getContext());
  return getScalarType(elementType);
}

Value lamina::castFloat(OpBuilder &b, Location loc, Value value, Type to) {
  auto from = dyn_cast<FloatType>(value.getType());
  auto target = dyn_cast<FloatType>(to);
  if (!from || !target || from == target)
    return value;
  // f64 goes to 16 bits by way of f32, as it does in PyTorch; f16 and bf16 have no conversion of their own.
  if (from.getWidth() == target.getWidth() || (from.getWidth() == 64 && target.getWidth() == 16))
    return castFloat(b, loc, castFloat(b, loc, value, b.getF32Type()), to);
  if (from.getWidth() < target.getWidth())
    return arith::ExtFOp::create(b, loc, to, value);
  return arith::TruncFOp::create(b, loc, to, value);
}

Value lamina::getScalarConstant(OpBuilder &b, Location loc, Type type, double value) {
  if (isa<FloatType>(type))
    return arith::ConstantOp::create(b, loc, b.getFloatAttr(type, value));
  return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, static_cast<int64_t>(value)));
}

namespace {
using Builder3 = Value (*)(OpBuilder &, Location, ValueRange);

template <typename Op> Value make(OpBuilder &b, Location loc, ValueRange x) {
  if constexpr (Op::template hasTrait<OpTrait::OneOperand>())
    return Op::create(b, loc, x[0]);
  else
    return Op::create(b, loc, x[0], x[1]);
}

Value constantLike(OpBuilder &b, Location loc, Value x, double value) {
  return getScalarConstant(b, loc, x.getType(), value);
}
Value integerLike(OpBuilder &b, Location loc, Value x, const APInt &value) {
  return arith::ConstantOp::create(b, loc, b.getIntegerAttr(x.getType(), value));
}
unsigned widthOf(Value x) { return x.getType().getIntOrFloatBitWidth(); }

Value compareInt(OpBuilder &b, Location loc, arith::CmpIPredicate predicate, Value x, Value y) {
  return arith::CmpIOp::create(b, loc, predicate, x, y);
}

Value same(OpBuilder &, Location, ValueRange x) { return x[0]; }
Value negInt(OpBuilder &b, Location loc, ValueRange x) {
  return arith::SubIOp::create(b, loc, constantLike(b, loc, x[0], 0), x[0]);
}
Value notInt(OpBuilder &b, Location loc, ValueRange x) {
  return arith::XOrIOp::create(b, loc, x[0], integerLike(b, loc, x[0], APInt::getAllOnes(widthOf(x[0]))));
}

Value signFloat(OpBuilder &b, Location loc, ValueRange x) {
  Value zero = constantLike(b, loc, x[0], 0);
  Value negative = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, x[0], zero);
  Value positive = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, x[0], zero);
  Value low = arith::SelectOp::create(b, loc, negative, constantLike(b, loc, x[0], -1), zero);
  return arith::SelectOp::create(b, loc, positive, constantLike(b, loc, x[0], 1), low);
}
Value signInt(OpBuilder &b, Location loc, ValueRange x) {
  Value low = arith::ShRSIOp::create(b, loc, x[0], constantLike(b, loc, x[0], widthOf(x[0]) - 1));
  Value positive = compareInt(b, loc, arith::CmpIPredicate::sgt, x[0], constantLike(b, loc, x[0], 0));
  return arith::SelectOp::create(b, loc, positive, constantLike(b, loc, x[0], 1), low);
}
Value signUnsigned(OpBuilder &b, Location loc, ValueRange x) {
  return arith::MinUIOp::create(b, loc, x[0], constantLike(b, loc, x[0], 1));
}

/// A divisor that cannot trap: 0, and -1 under the lowest dividend, become 1.
Value safeDivisor(OpBuilder &b, Location loc, ValueRange x, bool isSigned, bool replaceMinusOne) {
  Value one = constantLike(b, loc, x[1], 1);
  Value bad = compareInt(b, loc, arith::CmpIPredicate::eq, x[1], constantLike(b, loc, x[1], 0));
  if (isSigned) {
    Value minus =
        compareInt(b, loc, arith::CmpIPredicate::eq, x[1], integerLike(b, loc, x[1], APInt::getAllOnes(widthOf(x[1]))));
    if (!replaceMinusOne) {
      Value lowest = integerLike(b, loc, x[0], APInt::getSignedMinValue(widthOf(x[0])));
      minus = arith::AndIOp::create(b, loc, minus, compareInt(b, loc, arith::CmpIPredicate::eq, x[0], lowest));
    }
    bad = arith::OrIOp::create(b, loc, bad, minus);
  }
  return arith::SelectOp::create(b, loc, bad, one, x[1]);
}
Value divSigned(OpBuilder &b, Location loc, ValueRange x) {
  return arith::DivSIOp::create(b, loc, x[0], safeDivisor(b, loc, x, true, false));
}
Value divUnsigned(OpBuilder &b, Location loc, ValueRange x) {
  return arith::DivUIOp::create(b, loc, x[0], safeDivisor(b, loc, x, false, false));
}
Value remSigned(OpBuilder &b, Location loc, ValueRange x) {
  return arith::RemSIOp::create(b, loc, x[0], safeDivisor(b, loc, x, true, true));
}
Value remUnsigned(OpBuilder &b, Location loc, ValueRange x) {
  return arith::RemUIOp::create(b, loc, x[0], safeDivisor(b, loc, x, false, false));
}

/// x^y, y taken as unsigned: one step for each bit of y.
Value powUnsigned(OpBuilder &b, Location loc, ValueRange x) {
  unsigned width = widthOf(x[0]);
  Value low = arith::ConstantIndexOp::create(b, loc, 0), high = arith::ConstantIndexOp::create(b, loc, width);
  Value step = arith::ConstantIndexOp::create(b, loc, 1), one = constantLike(b, loc, x[0], 1),
        zero = constantLike(b, loc, x[0], 0);
  auto loop = scf::ForOp::create(b, loc, low, high, step, ValueRange{one, x[0], x[1]},
                                 [&](OpBuilder &b, Location loc, Value, ValueRange args) {
                                   Value bit = arith::AndIOp::create(b, loc, args[2], one);
                                   Value odd = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, bit, zero);
                                   Value product = arith::MulIOp::create(b, loc, args[0], args[1]);
                                   Value result = arith::SelectOp::create(b, loc, odd, product, args[0]);
                                   Value square = arith::MulIOp::create(b, loc, args[1], args[1]);
                                   Value rest = arith::ShRUIOp::create(b, loc, args[2], one);
                                   scf::YieldOp::create(b, loc, ValueRange{result, square, rest});
                                 });
  return loop.getResult(0);
}
/// A negative exponent leaves 1 for 1, 1 or -1 by parity for -1, else 0.
Value powSigned(OpBuilder &b, Location loc, ValueRange x) {
  Value zero = constantLike(b, loc, x[0], 0), one = constantLike(b, loc, x[0], 1);
  Value minus = integerLike(b, loc, x[0], APInt::getAllOnes(widthOf(x[0])));
  Value odd = compareInt(b, loc, arith::CmpIPredicate::ne, arith::AndIOp::create(b, loc, x[1], one), zero);
  Value isOne = compareInt(b, loc, arith::CmpIPredicate::eq, x[0], one);
  Value isMinus = compareInt(b, loc, arith::CmpIPredicate::eq, x[0], minus);
  Value small = arith::SelectOp::create(b, loc, isMinus, arith::SelectOp::create(b, loc, odd, minus, one), zero);
  small = arith::SelectOp::create(b, loc, isOne, one, small);
  Value negative = compareInt(b, loc, arith::CmpIPredicate::slt, x[1], zero);
  return arith::SelectOp::create(b, loc, negative, small, powUnsigned(b, loc, x));
}

/// Whether a shift by x[1] leaves the width; negative ones are large as unsigned numbers.
Value shiftsOut(OpBuilder &b, Location loc, ValueRange x) {
  return compareInt(b, loc, arith::CmpIPredicate::uge, x[1], constantLike(b, loc, x[1], widthOf(x[1])));
}
Value shl(OpBuilder &b, Location loc, ValueRange x) {
  Value out = shiftsOut(b, loc, x), zero = constantLike(b, loc, x[0], 0);
  Value amount = arith::SelectOp::create(b, loc, out, zero, x[1]);
  return arith::SelectOp::create(b, loc, out, zero, arith::ShLIOp::create(b, loc, x[0], amount));
}
Value shrSigned(OpBuilder &b, Location loc, ValueRange x) {
  Value last = constantLike(b, loc, x[1], widthOf(x[1]) - 1);
  return arith::ShRSIOp::create(b, loc, x[0], arith::SelectOp::create(b, loc, shiftsOut(b, loc, x), last, x[1]));
}
Value shrUnsigned(OpBuilder &b, Location loc, ValueRange x) {
  Value out = shiftsOut(b, loc, x), zero = constantLike(b, loc, x[0], 0);
  Value amount = arith::SelectOp::create(b, loc, out, zero, x[1]);
  return arith::SelectOp::create(b, loc, out, zero, arith::ShRUIOp::create(b, loc, x[0], amount));
}

/// The scalar forms of one op for floats, signed integers, and unsigned integers and booleans.
struct Row {
  Builder3 onFloat = nullptr, onSigned = nullptr, onUnsigned = nullptr;
  bool expensive = false;
};

template <typename Op> Row cheap() { return {make<Op>, nullptr, nullptr, false}; }
template <typename Op> Row costly() { return {make<Op>, nullptr, nullptr, true}; }

const llvm::StringMap<Row> &getTable() {
  static const llvm::StringMap<Row> table = {
      {"neg", {make<arith::NegFOp>, negInt, negInt}},
      {"abs", {make<math::AbsFOp>, make<math::AbsIOp>, same}},
      {"sign", {signFloat, signInt, signUnsigned}},
      {"not", {nullptr, notInt, notInt}},
      {"exp", costly<math::ExpOp>()},
      {"exp2", costly<math::Exp2Op>()},
      {"expm1", costly<math::ExpM1Op>()},
      {"log", costly<math::LogOp>()},
      {"log2", costly<math::Log2Op>()},
      {"log10", costly<math::Log10Op>()},
      {"log1p", costly<math::Log1pOp>()},
      {"sqrt", costly<math::SqrtOp>()},
      {"rsqrt", costly<math::RsqrtOp>()},
      {"sin", costly<math::SinOp>()},
      {"cos", costly<math::CosOp>()},
      {"tan", costly<math::TanOp>()},
      {"asin", costly<math::AsinOp>()},
      {"acos", costly<math::AcosOp>()},
      {"atan", costly<math::AtanOp>()},
      {"sinh", costly<math::SinhOp>()},
      {"cosh", costly<math::CoshOp>()},
      {"tanh", costly<math::TanhOp>()},
      {"asinh", costly<math::AsinhOp>()},
      {"acosh", costly<math::AcoshOp>()},
      {"atanh", costly<math::AtanhOp>()},
      {"erf", costly<math::ErfOp>()},
      {"erfc", costly<math::ErfcOp>()},
      {"ceil", cheap<math::CeilOp>()},
      {"floor", cheap<math::FloorOp>()},
      {"round", cheap<math::RoundEvenOp>()},
      {"trunc", cheap<math::TruncOp>()},
      {"add", {make<arith::AddFOp>, make<arith::AddIOp>, make<arith::AddIOp>}},
      {"sub", {make<arith::SubFOp>, make<arith::SubIOp>, make<arith::SubIOp>}},
      {"mul", {make<arith::MulFOp>, make<arith::MulIOp>, make<arith::MulIOp>}},
      {"div", {make<arith::DivFOp>, divSigned, divUnsigned, true}},
      {"rem", {make<arith::RemFOp>, remSigned, remUnsigned, true}},
      {"pow", {make<math::PowFOp>, powSigned, powUnsigned, true}},
      {"atan2", costly<math::Atan2Op>()},
      {"max", {make<arith::MaximumFOp>, make<arith::MaxSIOp>, make<arith::MaxUIOp>}},
      {"min", {make<arith::MinimumFOp>, make<arith::MinSIOp>, make<arith::MinUIOp>}},
      {"and", {nullptr, make<arith::AndIOp>, make<arith::AndIOp>}},
      {"or", {nullptr, make<arith::OrIOp>, make<arith::OrIOp>}},
      {"xor", {nullptr, make<arith::XOrIOp>, make<arith::XOrIOp>}},
      {"shl", {nullptr, shl, shl}},
      {"shr", {nullptr, shrSigned, shrUnsigned}},
  };
  return table;
}

bool isUnsigned(Type type) { return type.isUnsignedInteger() || type.isInteger(1); }

Builder3 getColumn(const Row &row, Type elementType) {
  return isa<FloatType>(elementType) ? row.onFloat : isUnsigned(elementType) ? row.onUnsigned : row.onSigned;
}

const Row *findRow(Operation *op) {
  if (op->getName().getDialectNamespace() != "prim")
    return nullptr;
  auto it = getTable().find(op->getName().stripDialect());
  return it == getTable().end() ? nullptr : &it->second;
}

/// The predicates of a comparison for floats, signed and unsigned integers, in the order of prim::Comparison.
struct Predicates {
  arith::CmpFPredicate onFloat;
  arith::CmpIPredicate onSigned, onUnsigned;
};
constexpr Predicates kPredicates[] = {
    {arith::CmpFPredicate::OEQ, arith::CmpIPredicate::eq, arith::CmpIPredicate::eq},
    {arith::CmpFPredicate::UNE, arith::CmpIPredicate::ne, arith::CmpIPredicate::ne},
    {arith::CmpFPredicate::OLT, arith::CmpIPredicate::slt, arith::CmpIPredicate::ult},
    {arith::CmpFPredicate::OLE, arith::CmpIPredicate::sle, arith::CmpIPredicate::ule},
    {arith::CmpFPredicate::OGT, arith::CmpIPredicate::sgt, arith::CmpIPredicate::ugt},
    {arith::CmpFPredicate::OGE, arith::CmpIPredicate::sge, arith::CmpIPredicate::uge},
};

Value buildCompare(OpBuilder &b, prim::CompareOp op, ValueRange x) {
  Location loc = op.getLoc();
  Type type = getElementTypeOrSelf(op.getLhs().getType());
  const Predicates &predicates = kPredicates[static_cast<unsigned>(op.getComparison())];
  if (isa<FloatType>(type)) {
    Type wide = getComputeType(type);
    return arith::CmpFOp::create(b, loc, predicates.onFloat, castFloat(b, loc, x[0], wide),
                                 castFloat(b, loc, x[1], wide));
  }
  return arith::CmpIOp::create(b, loc, isUnsigned(type) ? predicates.onUnsigned : predicates.onSigned, x[0], x[1]);
}

Value convertToBool(OpBuilder &b, Location loc, Value x) {
  Type wide = getComputeType(x.getType());
  if (isa<FloatType>(wide))
    return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE, castFloat(b, loc, x, wide),
                                 getScalarConstant(b, loc, wide, 0));
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, x, getScalarConstant(b, loc, wide, 0));
}

Value convertInt(OpBuilder &b, Location loc, Value x, Type to, bool isUnsignedSource) {
  if (widthOf(x) == to.getIntOrFloatBitWidth())
    return x;
  if (widthOf(x) > to.getIntOrFloatBitWidth())
    return arith::TruncIOp::create(b, loc, to, x);
  if (isUnsignedSource)
    return arith::ExtUIOp::create(b, loc, to, x);
  return arith::ExtSIOp::create(b, loc, to, x);
}

Value buildConvert(OpBuilder &b, prim::ConvertOp op, Value x) {
  Location loc = op.getLoc();
  Type from = getElementTypeOrSelf(op.getOperand().getType()), to = getElementTypeOrSelf(op.getType());
  Type target = getScalarType(to);
  if (from == to)
    return x;
  if (to.isInteger(1))
    return convertToBool(b, loc, x);
  if (isa<FloatType>(from) && isa<FloatType>(to))
    return castFloat(b, loc, x, target);
  if (isa<FloatType>(from)) {
    // Through 32 bits to narrower integers, so that values that fit in those wrap as they do in C.
    Type wide = target.getIntOrFloatBitWidth() < 32 ? b.getI32Type() : target;
    Value integer = arith::FPToSIOp::create(b, loc, wide, castFloat(b, loc, x, getComputeType(from)));
    return convertInt(b, loc, integer, target, false);
  }
  if (isa<FloatType>(to)) {
    Type wide = getComputeType(to);
    Value number = isUnsigned(from) ? Value(arith::UIToFPOp::create(b, loc, wide, x))
                                    : Value(arith::SIToFPOp::create(b, loc, wide, x));
    return castFloat(b, loc, number, target);
  }
  return convertInt(b, loc, x, target, isUnsigned(from));
}
} // namespace

bool lamina::hasScalarForm(Operation *op) {
  return isa<prim::CompareOp, prim::SelectOp, prim::ConvertOp, prim::BitcastOp>(op) || findRow(op);
}

bool lamina::isExpensive(Operation *op) {
  const Row *row = findRow(op);
  return row && row->expensive;
}

Value lamina::buildScalar(OpBuilder &b, Operation *op, ValueRange x) {
  Location loc = op->getLoc();
  if (auto compare = dyn_cast<prim::CompareOp>(op))
    return buildCompare(b, compare, x);
  if (auto convert = dyn_cast<prim::ConvertOp>(op))
    return buildConvert(b, convert, x[0]);
  if (isa<prim::SelectOp>(op))
    return arith::SelectOp::create(b, loc, x[0], x[1], x[2]);
  Type type = getElementTypeOrSelf(op->getResult(0).getType());
  if (isa<prim::BitcastOp>(op)) {
    Type target = getScalarType(type);
    return x[0].getType() == target ? x[0] : Value(arith::BitcastOp::create(b, loc, target, x[0]));
  }
  SmallVector<Value> wide;
  for (Value value : x)
    wide.push_back(castFloat(b, loc, value, getComputeType(type)));
  Builder3 build = getColumn(*findRow(op), type);
  assert(build && "the verifier admits only element types that have a scalar form");
  return castFloat(b, loc, build(b, loc, wide), getScalarType(type));
}

/// The op of each combiner.
static constexpr StringLiteral kCombiners[] = {"add", "mul", "max", "min", "or", "and"};

Value lamina::buildCombination(OpBuilder &b, Location loc, prim::Combiner combiner, Type elementType, Value lhs,
                               Value rhs) {
  const Row &row = getTable().find(kCombiners[static_cast<unsigned>(combiner)])->second;
  return getColumn(row, elementType)(b, loc, {lhs, rhs});
}

TypedAttr lamina::getIdentity(OpBuilder &b, prim::Combiner combiner, Type elementType) {
  Type type = getComputeType(elementType);
  TypedAttr identity = prim::getIdentity(combiner, isa<FloatType>(type) ? type : elementType);
  if (auto integer = dyn_cast<IntegerAttr>(identity))
    return b.getIntegerAttr(type, integer.getValue());
  return identity;
}
