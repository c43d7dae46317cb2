// A builder of f32 arithmetic that is written once for scalars and vectors.
#include "lib/Transforms/Math/Emitter.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace lamina::math;

Emitter::Emitter(OpBuilder &builder, Location loc, Type type) : builder(builder), loc(loc), type(type) {}

Type Emitter::shaped(Type element) const {
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.clone(element);
  return element;
}

Value Emitter::constant(TypedAttr value) const {
  Type result = shaped(value.getType());
  if (auto vector = dyn_cast<VectorType>(result))
    value = DenseElementsAttr::get(vector, value);
  return arith::ConstantOp::create(builder, loc, value);
}
Value Emitter::constant(float value) const { return constant(builder.getF32FloatAttr(value)); }
Value Emitter::constant(double value) const { return constant(builder.getF64FloatAttr(value)); }
Value Emitter::constant(int32_t value) const { return constant(builder.getI32IntegerAttr(value)); }
Value Emitter::constant(int64_t value) const { return constant(builder.getI64IntegerAttr(value)); }

Value Emitter::clampAbove(Value a, float bound) const {
  Value limit = constant(bound);
  return select(compare(CmpFPredicate::OLT, limit, a), limit, a);
}
Value Emitter::clampBelow(Value a, float bound) const {
  Value limit = constant(bound);
  return select(compare(CmpFPredicate::OGT, limit, a), limit, a);
}

template <typename T> static Value horner(const Emitter &e, Value x, ArrayRef<T> c) {
  Value result = e.constant(c.back());
  for (T term : llvm::reverse(c.drop_back()))
    result = e.fma(result, x, e.constant(term));
  return result;
}
Value Emitter::polynomial(Value x, ArrayRef<float> c) const { return horner(*this, x, c); }
Value Emitter::polynomial(Value x, ArrayRef<double> c) const { return horner(*this, x, c); }
