// Ops on scalars, as ops on blocks: most are the same op, some are a function of libdevice or an op of Triton's own.
#include "lib/Conversion/TiledToTriton/ScalarOps.h"
#include "dialects/Kernel/Kernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace lamina;

/// The libdevice function of an op, without the prefix __nv_ and the suffix f of f32; empty if there is none. Triton
/// would lower exp, log, sin and the like to approximations that are less accurate than eager's functions, and others
/// not at all.
static StringRef getDeviceFunction(StringRef op) {
  static const llvm::StringMap<StringRef> table = {
      {"math.exp", "exp"},           {"math.exp2", "exp2"},      {"math.expm1", "expm1"}, {"math.log", "log"},
      {"math.log2", "log2"},         {"math.log10", "log10"},    {"math.log1p", "log1p"}, {"math.rsqrt", "rsqrt"},
      {"math.sin", "sin"},           {"math.cos", "cos"},        {"math.tan", "tan"},     {"math.asin", "asin"},
      {"math.acos", "acos"},         {"math.atan", "atan"},      {"math.sinh", "sinh"},   {"math.cosh", "cosh"},
      {"math.tanh", "tanh"},         {"math.asinh", "asinh"},    {"math.acosh", "acosh"}, {"math.atanh", "atanh"},
      {"math.erf", "erf"},           {"math.erfc", "erfc"},      {"math.cbrt", "cbrt"},   {"math.powf", "pow"},
      {"math.atan2", "atan2"},       {"math.roundeven", "rint"}, {"math.round", "round"}, {"math.trunc", "trunc"},
      {"math.copysign", "copysign"}, {"arith.remf", "fmod"},
  };
  return table.lookup(op);
}

/// Ops that Triton takes as they are, on scalars and blocks.
static bool isShared(Operation *op) {
  return isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp, arith::MaximumFOp, arith::MinimumFOp,
             arith::MaxNumFOp, arith::MinNumFOp, arith::CmpFOp, arith::ExtFOp, arith::TruncFOp, arith::SIToFPOp,
             arith::UIToFPOp, arith::FPToSIOp, arith::FPToUIOp, arith::AddIOp, arith::SubIOp, arith::MulIOp,
             arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp, arith::CeilDivSIOp, arith::CeilDivUIOp,
             arith::FloorDivSIOp, arith::MaxSIOp, arith::MaxUIOp, arith::MinSIOp, arith::MinUIOp, arith::AndIOp,
             arith::OrIOp, arith::XOrIOp, arith::ShLIOp, arith::ShRSIOp, arith::ShRUIOp, arith::CmpIOp, arith::ExtSIOp,
             arith::ExtUIOp, arith::TruncIOp, arith::SelectOp, math::AbsFOp, math::AbsIOp, math::CeilOp, math::FloorOp,
             math::FmaOp, math::SqrtOp>(op);
}

/// Whether an op is in a kernel of attention whose operands are all of 16 bits: its weights are rounded to that.
static bool isInNarrowAttention(Operation *op) {
  auto kernel = op->getParentOfType<kernel::FuncOp>();
  if (!kernel || !kernel->hasAttr("kernel.online"))
    return false;
  return llvm::all_of(kernel.getArgumentTypes(), [](Type type) {
    auto element = dyn_cast<FloatType>(getElementTypeOrSelf(type));
    return !element || element.getWidth() == 16;
  });
}

static AxisBlock callDevice(BlockBuilder &blocks, Operation *op, StringRef function, ArrayRef<AxisBlock> operands) {
  Type element = op->getResult(0).getType();
  if (!element.isF32() && !element.isF64())
    return {};
  std::string symbol = ("__nv_" + function + (element.isF32() ? "f" : "")).str();
  return blocks.apply(operands, [&](OpBuilder &b, ValueRange x) {
    return tt::ExternElementwiseOp::create(b, op->getLoc(), x[0].getType(), x, "", "", symbol, true);
  });
}

AxisBlock lamina::convertScalarOp(BlockBuilder &blocks, Operation *op, ArrayRef<AxisBlock> given) {
  if (op->getNumResults() != 1 || op->getNumRegions())
    return {};
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    if (constant.getType().isIndex())
      return blocks.index(cast<IntegerAttr>(constant.getValue()).getInt());
    return isa<IntegerAttr, FloatAttr>(constant.getValue()) ? blocks.constant(constant.getValue()) : AxisBlock();
  }
  SmallVector<AxisBlock> operands(given);
  Type type = op->getResult(0).getType();
  auto build = [&](auto make) {
    return blocks.apply(operands, [&](OpBuilder &b, ValueRange x) -> Value { return make(b, op->getLoc(), x); });
  };
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp>(op)) {
    // An index keeps the bits that it came with until it is used.
    if (!type.isIndex())
      return blocks.castInteger(operands[0], type, isa<arith::IndexCastOp>(op));
    if (operands[0].getElementType().getIntOrFloatBitWidth() < blocks.indexType.getIntOrFloatBitWidth())
      return blocks.castInteger(operands[0], blocks.indexType, isa<arith::IndexCastOp>(op));
    return operands[0];
  }
  if (isa<arith::NegFOp>(op)) {
    operands.insert(operands.begin(), blocks.constant(FloatAttr::get(cast<FloatType>(type), -0.0)));
    return build([](OpBuilder &b, Location loc, ValueRange x) { return arith::SubFOp::create(b, loc, x[0], x[1]); });
  }
  auto divide = [&](const AxisBlock &numerator, const AxisBlock &denominator) {
    return blocks.apply({numerator, denominator}, [&](OpBuilder &b, ValueRange x) -> Value {
      return tt::PreciseDivFOp::create(b, op->getLoc(), x[0].getType(), x[0], x[1]);
    });
  };
  if (isa<arith::DivFOp>(op) && type.isF32()) {
    // The sums of an online softmax are divided by those of the rows: one division a row, a product an element.
    bool byRow = !operands[1].axes.empty() && operands[1].axes.size() < operands[0].axes.size();
    if (auto kernel = op->getParentOfType<kernel::FuncOp>(); byRow && kernel && kernel->hasAttr("kernel.online")) {
      AxisBlock one = blocks.constant(FloatAttr::get(cast<FloatType>(type), 1.0));
      return blocks.make<arith::MulFOp>(operands[0], divide(one, operands[1]));
    }
    return divide(operands[0], operands[1]);
  }
  if (isa<math::SqrtOp>(op) && type.isF32())
    return build([](OpBuilder &b, Location loc, ValueRange x) {
      return tt::PreciseSqrtOp::create(b, loc, x[0].getType(), x[0]);
    });
  auto withAxes = [&](Value like, Type element) -> Type {
    auto block = dyn_cast<RankedTensorType>(like.getType());
    return block ? Type(block.clone(element)) : element;
  };
  if (isa<arith::BitcastOp>(op))
    return build([&](OpBuilder &b, Location loc, ValueRange x) {
      return tt::BitcastOp::create(b, loc, withAxes(x[0], type), x[0]);
    });
  if (isa<math::ExpOp>(op) && type.isF32() && isInNarrowAttention(op)) {
    // 2^(x log2 e) by the unit, whose error is below 2^-21 where weights that 16 bits tell from 0 are.
    AxisBlock factor = blocks.constant(FloatAttr::get(cast<FloatType>(type), llvm::numbers::log2e));
    return blocks.apply({operands[0], factor}, [&](OpBuilder &b, ValueRange x) -> Value {
      Value power = arith::MulFOp::create(b, op->getLoc(), x[0], x[1]);
      return math::Exp2Op::create(b, op->getLoc(), power);
    });
  }
  if (StringRef function = getDeviceFunction(op->getName().getStringRef()); !function.empty())
    return callDevice(blocks, op, function, operands);
  if (!isShared(op))
    return {};
  for (auto [i, operand] : llvm::enumerate(op->getOperands()))
    if (operand.getType().isIndex())
      for (unsigned other = 0; other < operands.size(); ++other) {
        Type wider = operands[other].getElementType();
        if (op->getOperand(other).getType().isIndex() &&
            wider.getIntOrFloatBitWidth() > operands[i].getElementType().getIntOrFloatBitWidth())
          operands[i] = blocks.castInteger(operands[i], wider);
      }
  return build([&](OpBuilder &b, Location loc, ValueRange x) {
    Type element = type.isIndex() ? getElementTypeOrSelf(x.back().getType()) : type;
    OperationState state(loc, op->getName(), x, withAxes(x.back(), element), op->getAttrs());
    return b.create(state)->getResult(0);
  });
}
