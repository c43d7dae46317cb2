// Prim ops that are computed where they are read: arithmetic on scalars, and data movement as arithmetic on indices.
#include "lib/Conversion/PrimToLinalg/Body.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace lamina;

static Value integerOfIndex(OpBuilder &b, Location loc, Value index, Type elementType) {
  Type type = getScalarType(elementType);
  if (isa<IntegerType>(type))
    return arith::IndexCastOp::create(b, loc, type, index);
  Value integer = arith::IndexCastOp::create(b, loc, b.getI64Type(), index);
  return castFloat(b, loc, arith::SIToFPOp::create(b, loc, getComputeType(elementType), integer), type);
}

Value Body::pullIota(prim::IotaOp op, const Access &access) {
  return integerOfIndex(builder, loc, getValue(access[op.getDim()]), op.getType().getElementType());
}

Value Body::pullPad(prim::PadOp op, const Access &access) {
  Value fill = getScalar(op.getValue(), {});
  Access inner;
  SmallVector<bool> checked;
  auto low = op.getLow().getResults(), high = op.getHigh().getResults();
  for (auto [index, below, above] : llvm::zip_equal(access, low, high)) {
    inner.push_back(add(index, -below));
    checked.push_back(below != 0 || above != 0);
  }
  return getGuarded(op.getOperand(), inner, checked, nullptr, fill);
}

Value Body::pullConcatenate(prim::ConcatenateOp op, const Access &access) {
  int64_t dim = op.getDim();
  AffineExpr start = getAffineConstantExpr(0, emitter.getContext());
  struct Part {
    Value operand;
    AffineExpr start, size;
  };
  SmallVector<Part> parts;
  for (Value operand : op.getOperands()) {
    AffineExpr size = emitter.getSizes(operand)[dim];
    if (size != 0)
      parts.push_back({operand, start, size});
    start = simplifySize(start + size);
  }
  if (parts.empty())
    return getScalarConstant(builder, loc, getScalarType(op.getType().getElementType()), 0);
  Value result, zero;
  if (parts.size() > 1)
    zero = getScalarConstant(builder, loc, getScalarType(op.getType().getElementType()), 0);
  for (const Part &part : llvm::reverse(parts)) {
    Value scalar;
    if (parts.size() == 1) {
      scalar = getScalar(part.operand, access);
    } else {
      Value at = getValue(add(access[dim], -part.start));
      scalar = readUnlessEmpty(part.size, zero, [&] {
        Access inner = access;
        inner[dim] = clamp(at, part.size);
        return getScalar(part.operand, inner);
      });
    }
    if (!result) {
      result = scalar;
      continue;
    }
    Value end = evaluate(simplifySize(part.start + part.size));
    Value inside = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, getValue(access[dim]), end);
    result = arith::SelectOp::create(builder, loc, inside, scalar, result);
  }
  return result;
}

Value Body::pullGather(prim::GatherOp op, const Access &access) {
  unsigned numBatch = cast<RankedTensorType>(op.getIndices().front().getType()).getRank();
  ArrayRef<AffineExpr> sizes = emitter.getSizes(op.getOperand());
  Access batch(access.begin(), access.begin() + numBatch);
  Exprs indexed;
  for (int64_t dim : op.getDims())
    indexed.push_back(sizes[dim]);
  // No index is inside a dimension of size 0; what checks the indices says so after the program has run.
  Value otherwise = getScalarConstant(builder, loc, getScalarType(op.getType().getElementType()), 0);
  return readUnlessEmpty(indexed, otherwise, [&] {
    Access inner;
    unsigned next = numBatch;
    for (unsigned dim = 0; dim < sizes.size(); ++dim) {
      auto *at = llvm::find(op.getDims(), static_cast<int64_t>(dim));
      if (at == op.getDims().end()) {
        inner.push_back(access[next++]);
        continue;
      }
      Value index = getScalar(op.getIndices()[at - op.getDims().begin()], batch);
      inner.push_back(clamp(arith::IndexCastOp::create(builder, loc, builder.getIndexType(), index), sizes[dim]));
    }
    return getScalar(op.getOperand(), inner);
  });
}

/// Dimensions are matched in the smallest groups of equal numbers of elements, so that those that stay keep a simple
/// index.
Value Body::pullReshape(prim::ReshapeOp op, const Access &access) {
  ArrayRef<AffineExpr> from = emitter.getSizes(op.getOperand()), to = emitter.getSizes(op.getResult());
  MLIRContext *context = emitter.getContext();
  Access inner;
  unsigned i = 0, j = 0;
  while (i < from.size()) {
    unsigned iEnd = i + 1, jEnd = std::min<unsigned>(j + 1, to.size());
    auto numFrom = [&] { return getNumElements(from.slice(i, iEnd - i), context); };
    auto numTo = [&] { return getNumElements(to.slice(j, jEnd - j), context); };
    // Extends the smaller side; without an order between symbolic numbers both go to the end.
    while (numFrom() != numTo()) {
      auto a = dyn_cast<AffineConstantExpr>(numFrom()), b = dyn_cast<AffineConstantExpr>(numTo());
      bool extendFrom = a && b ? a.getValue() < b.getValue() : static_cast<bool>(a);
      if (a && b && b.getValue() == 0)
        extendFrom = true;
      if (extendFrom ? iEnd == from.size() : jEnd == to.size())
        extendFrom = !extendFrom;
      if (extendFrom ? iEnd == from.size() : jEnd == to.size())
        break;
      extendFrom ? ++iEnd : ++jEnd;
    }
    if (iEnd == from.size())
      jEnd = to.size();
    if (iEnd - i == 1 && jEnd - j == 1) {
      inner.push_back(access[j]);
    } else {
      Index linear = getAffineConstantExpr(0, context);
      for (unsigned k = j; k < jEnd; ++k)
        if (to[k] != 1)
          linear = add(multiply(linear, to[k]), access[k]);
      SmallVector<Index> reversed;
      for (unsigned k = iEnd; k-- > i;) {
        bool isFirst = llvm::all_of(from.slice(i, k - i), [](AffineExpr size) { return size == 1; });
        if (from[k] == 1)
          reversed.push_back(getAffineConstantExpr(0, context));
        else if (isFirst)
          reversed.push_back(linear);
        else {
          reversed.push_back(modulo(linear, from[k]));
          linear = divide(linear, from[k]);
        }
      }
      inner.append(reversed.rbegin(), reversed.rend());
    }
    i = iEnd;
    j = jEnd;
  }
  return getScalar(op.getOperand(), inner);
}

Value Body::pull(Operation *op, const Access &access) {
  if (hasScalarForm(op)) {
    SmallVector<Value> scalars;
    for (Value operand : op->getOperands())
      scalars.push_back(getScalar(operand, access));
    return buildScalar(builder, op, scalars);
  }
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case<prim::ConstantOp>([&](auto constant) -> Value {
        Attribute value = cast<DenseElementsAttr>(constant.getValue()).template getSplatValue<Attribute>();
        Type type = getScalarType(constant.getType().getElementType());
        if (auto integer = dyn_cast<IntegerAttr>(value))
          value = IntegerAttr::get(type, integer.getValue());
        return arith::ConstantOp::create(builder, loc, cast<TypedAttr>(value));
      })
      .Case<prim::SizeOp>([&](auto size) {
        return integerOfIndex(builder, loc, evaluate(size.getValue().getResult(0)), size.getType().getElementType());
      })
      .Case<prim::IotaOp>([&](auto iota) { return pullIota(iota, access); })
      .Case<prim::BroadcastOp>([&](auto broadcast) {
        Access inner;
        for (int64_t dim : broadcast.getDims())
          inner.push_back(access[dim]);
        return getScalar(broadcast.getOperand(), inner);
      })
      .Case<prim::TransposeOp>([&](auto transpose) {
        Access inner = access;
        for (auto [k, dim] : llvm::enumerate(transpose.getPermutation()))
          inner[dim] = access[k];
        return getScalar(transpose.getOperand(), inner);
      })
      .Case<prim::SliceOp>([&](auto slice) {
        Access inner;
        for (auto [index, start, stride] : llvm::zip_equal(access, slice.getStarts().getResults(), slice.getStrides()))
          inner.push_back(add(multiply(index, getAffineConstantExpr(stride, emitter.getContext())), start));
        return getScalar(slice.getOperand(), inner);
      })
      .Case<prim::ReverseOp>([&](auto reverse) {
        Access inner = access;
        ArrayRef<AffineExpr> sizes = emitter.getSizes(reverse.getOperand());
        for (int64_t dim : reverse.getDims()) {
          if (inner[dim].value)
            inner[dim] =
                Value(arith::SubIOp::create(builder, loc, evaluate(simplifySize(sizes[dim] - 1)), inner[dim].value));
          else
            inner[dim] = sizes[dim] - 1 - inner[dim].expr;
        }
        return getScalar(reverse.getOperand(), inner);
      })
      .Case<prim::PadOp>([&](auto pad) { return pullPad(pad, access); })
      .Case<prim::ConcatenateOp>([&](auto concatenate) { return pullConcatenate(concatenate, access); })
      .Case<prim::GatherOp>([&](auto gather) { return pullGather(gather, access); })
      .Case<prim::ReshapeOp>([&](auto reshape) { return pullReshape(reshape, access); });
}
