// Division by what does not change in a loop: a reciprocal before it, and products that give the quotient's own bits.
#include "lib/Transforms/Math/Division.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace lamina::math;

// Within these bounds no quotient, and no remainder of one, leaves the normal numbers.
constexpr int32_t kSignless = 0x7fffffff;
constexpr float kDividendMin = 0x1p-64f, kDividendMax = 0x1p64f, kDivisorMin = 0x1p-32f, kDivisorMax = 0x1p32f;

/// Whether the magnitude is out of bounds. NaN and infinity are.
static Value outside(const Emitter &e, Value bits, float min, float max) {
  int32_t low = llvm::bit_cast<int32_t>(min), high = llvm::bit_cast<int32_t>(max);
  Value above = e.subI(e.andI(bits, e.constant(kSignless)), e.constant(low));
  return e.compare(CmpIPredicate::ugt, above, e.constant(high - low));
}

Value lamina::math::divideByInvariant(arith::DivFOp op) {
  auto type = dyn_cast<VectorType>(op.getType());
  auto broadcast = op.getRhs().getDefiningOp<vector::BroadcastOp>();
  auto loop = op->getParentOfType<scf::ForOp>();
  if (!type || !type.getElementType().isF32() || type.getRank() != 1 || !broadcast || !loop)
    return {};
  Value divisor = broadcast.getSource();
  if (!divisor.getType().isF32() || loop->isAncestor(divisor.getParentRegion()->getParentOp()))
    return {};
  OpBuilder before(loop);
  Emitter scalar(before, op.getLoc(), divisor.getType());
  Value reciprocal = scalar.div(scalar.constant(1.0f), divisor);
  Value unsafeDivisor = outside(scalar, scalar.bits(divisor), kDivisorMin, kDivisorMax);

  OpBuilder b(op);
  Emitter e(b, op.getLoc(), type);
  Value a = op.getLhs(), d = op.getRhs(), bits = e.bits(a);
  // Exact zeros are safe and common: masked attention is full of them.
  Value unsafe =
      e.andI(outside(e, bits, kDividendMin, kDividendMax), e.compare(CmpIPredicate::ne, bits, e.constant(0)));
  Value any = vector::ReductionOp::create(b, op.getLoc(), vector::CombiningKind::OR, unsafe);
  Value slow = arith::OrIOp::create(b, op.getLoc(), any, unsafeDivisor);
  auto branch = scf::IfOp::create(b, op.getLoc(), TypeRange{type}, slow, /*withElseRegion=*/true);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, op.getLoc(), e.div(a, d));
  b.setInsertionPointToStart(branch.elseBlock());
  // The first correction brings the quotient within one unit of its last place; the second, of an exact remainder by a
  // correctly rounded reciprocal, rounds it correctly.
  Value r = vector::BroadcastOp::create(b, op.getLoc(), type, reciprocal);
  Value q = e.mul(a, r), minusD = e.neg(d);
  for (int step = 0; step < 2; ++step)
    q = e.fma(e.fma(minusD, q, a), r, q);
  scf::YieldOp::create(b, op.getLoc(), q);
  return branch.getResult(0);
}
