// A builder of f32 arithmetic that is written once for scalars and vectors.
#ifndef LAMINA_TRANSFORMS_MATH_EMITTER_H
#define LAMINA_TRANSFORMS_MATH_EMITTER_H
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/ArrayRef.h"

namespace lamina::math {
using mlir::Value;
using mlir::arith::CmpFPredicate;
using mlir::arith::CmpIPredicate;

/// Emits ops on values of one shape: f32 or a vector of it, and i32, i1, f64 and i64 of the same shape.
class Emitter {
public:
  Emitter(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type type);

  mlir::OpBuilder &builder;
  mlir::Location loc;

  /// The type of this shape with another element type.
  mlir::Type shaped(mlir::Type element) const;
  mlir::Type f32() const { return shaped(builder.getF32Type()); }
  mlir::Type f64() const { return shaped(builder.getF64Type()); }
  mlir::Type i32() const { return shaped(builder.getI32Type()); }
  mlir::Type i64() const { return shaped(builder.getI64Type()); }

  Value constant(float value) const;
  Value constant(double value) const;
  Value constant(int32_t value) const;
  Value constant(int64_t value) const;

  Value add(Value a, Value b) const { return make<mlir::arith::AddFOp>(a, b); }
  Value sub(Value a, Value b) const { return make<mlir::arith::SubFOp>(a, b); }
  Value mul(Value a, Value b) const { return make<mlir::arith::MulFOp>(a, b); }
  Value div(Value a, Value b) const { return make<mlir::arith::DivFOp>(a, b); }
  Value neg(Value a) const { return make<mlir::arith::NegFOp>(a); }
  Value abs(Value a) const { return make<mlir::math::AbsFOp>(a); }
  Value copySign(Value magnitude, Value sign) const { return make<mlir::math::CopySignOp>(magnitude, sign); }
  /// a * b + c, rounded once.
  Value fma(Value a, Value b, Value c) const { return make<mlir::math::FmaOp>(a, b, c); }

  Value addI(Value a, Value b) const { return make<mlir::arith::AddIOp>(a, b); }
  Value subI(Value a, Value b) const { return make<mlir::arith::SubIOp>(a, b); }
  Value andI(Value a, Value b) const { return make<mlir::arith::AndIOp>(a, b); }
  Value orI(Value a, Value b) const { return make<mlir::arith::OrIOp>(a, b); }
  Value xorI(Value a, Value b) const { return make<mlir::arith::XOrIOp>(a, b); }
  Value shl(Value a, Value b) const { return make<mlir::arith::ShLIOp>(a, b); }
  /// Arithmetic shift to the right.
  Value shr(Value a, Value b) const { return make<mlir::arith::ShRSIOp>(a, b); }

  Value compare(CmpFPredicate predicate, Value a, Value b) const {
    return mlir::arith::CmpFOp::create(builder, loc, predicate, a, b);
  }
  Value compare(CmpIPredicate predicate, Value a, Value b) const {
    return mlir::arith::CmpIOp::create(builder, loc, predicate, a, b);
  }
  Value select(Value condition, Value a, Value b) const { return make<mlir::arith::SelectOp>(condition, a, b); }
  /// The smaller of the two; `a` if it is a NaN. (One x86 min instruction.)
  Value clampAbove(Value a, float bound) const;
  /// The larger of the two; `a` if it is a NaN.
  Value clampBelow(Value a, float bound) const;

  /// The i32 with the bits of an f32, and the other way round.
  Value bits(Value a) const { return mlir::arith::BitcastOp::create(builder, loc, i32(), a); }
  Value fromBits(Value a) const { return mlir::arith::BitcastOp::create(builder, loc, f32(), a); }
  Value extend(Value a) const { return mlir::arith::ExtFOp::create(builder, loc, f64(), a); }
  Value truncate(Value a) const { return mlir::arith::TruncFOp::create(builder, loc, f32(), a); }
  /// i1, all true.
  Value trueMask() const { return constant(mlir::TypedAttr(builder.getBoolAttr(true))); }
  Value toFloat(Value a) const { return mlir::arith::SIToFPOp::create(builder, loc, f32(), a); }

  /// c[0] + c[1] x + c[2] x^2 + ..., by Horner's rule.
  Value polynomial(Value x, llvm::ArrayRef<float> c) const;
  Value polynomial(Value x, llvm::ArrayRef<double> c) const;

private:
  template <typename Op, typename... Args> Value make(Args... args) const { return Op::create(builder, loc, args...); }
  Value constant(mlir::TypedAttr value) const;
  mlir::Type type;
};

// One function a math op: the ops that compute it for f32 values of any shape.
Value expandExp(const Emitter &e, Value x);
Value expandExp2(const Emitter &e, Value x);
Value expandExpm1(const Emitter &e, Value x);
Value expandLog(const Emitter &e, Value x);
Value expandLog2(const Emitter &e, Value x);
Value expandLog10(const Emitter &e, Value x);
Value expandLog1p(const Emitter &e, Value x);
Value expandTanh(const Emitter &e, Value x);
Value expandSinh(const Emitter &e, Value x);
Value expandCosh(const Emitter &e, Value x);
Value expandErf(const Emitter &e, Value x);
Value expandAtan(const Emitter &e, Value x);
Value expandRsqrt(const Emitter &e, Value x);
Value expandAtan2(const Emitter &e, Value y, Value x);
Value expandPow(const Emitter &e, Value x, Value y);
// These call libm for large arguments, hence the op.
Value expandSin(const Emitter &e, mlir::Operation *op);
Value expandCos(const Emitter &e, mlir::Operation *op);
} // namespace lamina::math
#endif
