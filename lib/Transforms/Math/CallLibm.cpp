// Math ops without an expansion become calls of the C library, one a lane.
#include "lib/Transforms/Math/CallLibm.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

static StringRef libmName(Operation *op) {
  static const llvm::StringMap<StringRef> renamed = {{"powf", "pow"}};
  static const llvm::StringSet<> known = {"acos",  "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt",
                                          "cos",   "cosh",  "erf",  "erfc",  "exp",  "exp2",  "expm1", "log",
                                          "log10", "log1p", "log2", "powf",  "sin",  "sinh",  "tan",   "tanh"};
  StringRef name = op->getName().stripDialect();
  if (!known.contains(name))
    return {};
  auto row = renamed.find(name);
  return row == renamed.end() ? name : row->second;
}

static func::FuncOp declare(ModuleOp module, StringRef name, FunctionType type) {
  if (auto function = module.lookupSymbol<func::FuncOp>(name))
    return function;
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  auto function = func::FuncOp::create(builder, module.getLoc(), name, type);
  function.setPrivate();
  // libm may set errno, which nothing reads: calls may be merged and removed.
  function->setAttr(LLVM::LLVMDialect::getReadnoneAttrName(), builder.getUnitAttr());
  return function;
}

Value lamina::math::callLibm(OpBuilder &builder, Operation *op, ValueRange operands) {
  Type element = operands[0].getType();
  std::string name = (libmName(op) + (element.isF32() ? "f" : "")).str();
  FunctionType type = FunctionType::get(op->getContext(), operands.getTypes(), element);
  func::FuncOp function = declare(op->getParentOfType<ModuleOp>(), name, type);
  return func::CallOp::create(builder, op->getLoc(), function, operands).getResult(0);
}

bool lamina::math::callLibm(Operation *op) {
  Type type = op->getResult(0).getType(), element = getElementTypeOrSelf(type);
  auto lanes = dyn_cast<VectorType>(type);
  if (libmName(op).empty() || !(element.isF32() || element.isF64()) || (lanes && lanes.isScalable()))
    return false;
  OpBuilder builder(op);
  Location loc = op->getLoc();
  Value result;
  if (auto vector = dyn_cast<VectorType>(type)) {
    result = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(vector));
    SmallVector<int64_t> strides = computeStrides(vector.getShape());
    for (int64_t lane = 0; lane < vector.getNumElements(); ++lane) {
      SmallVector<int64_t> position = delinearize(lane, strides);
      SmallVector<Value> operands;
      for (Value operand : op->getOperands())
        operands.push_back(vector::ExtractOp::create(builder, loc, operand, position));
      result = vector::InsertOp::create(builder, loc, callLibm(builder, op, operands), result, position);
    }
  } else {
    result = callLibm(builder, op, op->getOperands());
  }
  op->getResult(0).replaceAllUsesWith(result);
  op->erase();
  return true;
}
