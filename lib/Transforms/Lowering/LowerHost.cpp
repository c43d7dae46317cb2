// lamina-lower-host: host functions become functions on pointers that launch kernels.
#include "dialects/Kernel/Kernel.h"
#include "lib/Transforms/Lowering/Passes.h"
#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"

namespace lamina {
#define GEN_PASS_DEF_LOWERHOST
#include "lib/Transforms/Lowering/Passes.h.inc"
} // namespace lamina

using namespace mlir;
using namespace lamina;

namespace {

struct HostLowering {
  func::FuncOp host;
  SymbolTable &symbolTable;
  OpBuilder builder;
  Location loc;
  func::FuncOp func = {};

  HostLowering(func::FuncOp host, SymbolTable &symbolTable)
      : host(host), symbolTable(symbolTable), builder(host.getContext()), loc(host.getLoc()) {}

  LogicalResult run();

private:
  Value getSymbol(unsigned number);
  Value getExpr(AffineExpr expr);
  Value offsetPointer(Value base, Value bytes);
  Value getName(StringRef kernel);
  LogicalResult lowerLaunch(kernel::LaunchOp launch);

  Type pointerType = {};
  Value block = {};
  SmallVector<Value> symbols = {};
  DenseMap<Value, Value> pointers;
};

Value HostLowering::getSymbol(unsigned number) {
  if (symbols.size() <= number)
    symbols.resize(number + 1);
  if (!symbols[number]) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&func.front());
    Value address = LLVM::GEPOp::create(builder, loc, pointerType, builder.getI64Type(), func.getArgument(1),
                                        ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(number)});
    Value value = LLVM::LoadOp::create(builder, loc, builder.getI64Type(), address);
    symbols[number] = arith::IndexCastOp::create(builder, loc, builder.getIndexType(), value);
  }
  return symbols[number];
}

/// The expression's value as i64.
Value HostLowering::getExpr(AffineExpr expr) {
  SmallVector<Value> values;
  expr.walk([&](AffineExpr e) {
    if (auto symbol = dyn_cast<AffineSymbolExpr>(e)) {
      if (values.size() <= symbol.getPosition())
        values.resize(symbol.getPosition() + 1);
      values[symbol.getPosition()] = getSymbol(symbol.getPosition());
    }
  });
  Value value = affine::expandAffineExpr(builder, loc, expr, {}, values);
  return arith::IndexCastOp::create(builder, loc, builder.getI64Type(), value);
}

Value HostLowering::offsetPointer(Value base, Value bytes) {
  return LLVM::GEPOp::create(builder, loc, pointerType, builder.getI8Type(), base, ArrayRef<LLVM::GEPArg>{bytes});
}

/// The kernel's name as a C string, for profilers.
Value HostLowering::getName(StringRef kernel) {
  std::string symbol = (kernel + ".name").str();
  auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), kernel.size() + 1);
  if (!symbolTable.lookup(symbol)) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(func);
    auto global = LLVM::GlobalOp::create(builder, loc, type, /*isConstant=*/true, LLVM::Linkage::Private, symbol,
                                         builder.getStringAttr(std::string(kernel) + '\0'));
    symbolTable.insert(global);
  }
  return LLVM::AddressOfOp::create(builder, loc, pointerType, symbol);
}

LogicalResult HostLowering::lowerLaunch(kernel::LaunchOp launch) {
  loc = launch.getLoc();
  if (launch.getOuts().size() != launch.getNumResults())
    return launch.emitOpError("has no memory for its outputs");
  auto callee = symbolTable.lookup<func::FuncOp>(launch.getKernel());
  auto grid = callee ? callee->getAttrOfType<AffineMapAttr>("kernel.grid") : AffineMapAttr();
  if (!grid)
    return launch.emitOpError("launches @") << launch.getKernel() << ", which is no function with a kernel.grid";

  int64_t slot = 0;
  auto store = [&](Value value) {
    Value address = LLVM::GEPOp::create(builder, loc, pointerType, builder.getI64Type(), block,
                                        ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(slot++)});
    LLVM::StoreOp::create(builder, loc, value, address);
  };
  for (Value operand : llvm::concat<Value>(launch.getIns(), launch.getOuts()))
    store(pointers.lookup(operand));
  ArrayRef<AffineExpr> values = launch.getSymbols().getResults();
  for (AffineExpr value : values)
    store(getExpr(value));

  AffineExpr programs = builder.getAffineConstantExpr(1);
  Value product;
  for (AffineExpr count : grid.getValue().getResults()) {
    AffineExpr expr = count.replaceSymbols(values);
    if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
      programs = programs * constant.getValue();
      continue;
    }
    Value value = getExpr(expr);
    product = product ? arith::MulIOp::create(builder, loc, product, value).getResult() : value;
  }
  Value constant = getExpr(programs);
  product = product ? arith::MulIOp::create(builder, loc, product, constant).getResult() : constant;

  Value function = func::ConstantOp::create(builder, loc, callee.getFunctionType(), callee.getSymName());
  Value address = UnrealizedConversionCastOp::create(builder, loc, pointerType, function).getResult(0);
  func::CallOp::create(builder, loc, "lamina_launch", TypeRange{},
                       ValueRange{address, block, product, getName(launch.getKernel())});
  for (auto [result, out] : llvm::zip_equal(launch.getResults(), launch.getOuts()))
    pointers[result] = pointers.lookup(out);
  return success();
}

LogicalResult HostLowering::run() {
  pointerType = LLVM::LLVMPointerType::get(builder.getContext());
  builder.setInsertionPoint(host);
  auto type = builder.getFunctionType({pointerType, pointerType, pointerType}, {});
  func = func::FuncOp::create(builder, loc, host.getSymName(), type);
  for (NamedAttribute attr : host->getDiscardableAttrs())
    func->setAttr(attr.getName(), attr.getValue());
  builder.setInsertionPointToStart(func.addEntryBlock());

  for (BlockArgument arg : host.getArguments()) {
    Value address = LLVM::GEPOp::create(builder, loc, pointerType, builder.getI64Type(), func.getArgument(0),
                                        ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(arg.getArgNumber())});
    pointers[arg] = LLVM::LoadOp::create(builder, loc, pointerType, address);
  }
  // One block serves all launches: a launch has finished when it returns.
  int64_t slots = 1;
  host.walk([&](kernel::LaunchOp launch) {
    slots = std::max<int64_t>(slots,
                              launch.getIns().size() + launch.getOuts().size() + launch.getSymbols().getNumResults());
  });
  Value one = LLVM::ConstantOp::create(builder, loc, builder.getI64Type(), builder.getI64IntegerAttr(1));
  block = LLVM::AllocaOp::create(builder, loc, pointerType, LLVM::LLVMArrayType::get(builder.getI64Type(), slots), one,
                                 /*alignment=*/8);

  DataLayout layout = DataLayout::closest(host);
  for (Operation &op : host.front()) {
    loc = op.getLoc();
    if (auto launch = dyn_cast<kernel::LaunchOp>(op)) {
      if (failed(lowerLaunch(launch)))
        return failure();
    } else if (auto alloc = dyn_cast<kernel::AllocOp>(op)) {
      pointers[alloc] = offsetPointer(func.getArgument(2), getExpr(alloc.getOffset().getResult(0)));
    } else if (auto view = dyn_cast<kernel::ViewOp>(op)) {
      int64_t bytes = layout.getTypeSize(cast<RankedTensorType>(view.getOperand().getType()).getElementType());
      AffineExpr offset = view.getOffset().getResult(0) * bytes;
      Value base = pointers.lookup(view.getOperand());
      pointers[view] = offset == 0 ? base : offsetPointer(base, getExpr(offset));
    } else if (op.hasTrait<OpTrait::ReturnLike>()) {
      func::ReturnOp::create(builder, loc);
    } else {
      return op.emitOpError("is no operation of a host function");
    }
  }
  symbolTable.remove(host);
  host.erase();
  symbolTable.insert(func);
  return success();
}

struct LowerHost : lamina::impl::LowerHostBase<LowerHost> {
  using LowerHostBase::LowerHostBase;

  static bool isHost(func::FuncOp func) {
    auto isTensor = [](Type type) { return isa<RankedTensorType>(type); };
    if (func.isExternal() || func->hasAttr("kernel.grid"))
      return false;
    return llvm::any_of(func.getArgumentTypes(), isTensor) || llvm::any_of(func.getResultTypes(), isTensor) ||
           !func.getOps<kernel::LaunchOp>().empty();
  }

  void runOnOperation() override {
    SymbolTable symbolTable(getOperation());
    if (!symbolTable.lookup("lamina_launch")) {
      OpBuilder builder = OpBuilder::atBlockBegin(getOperation().getBody());
      auto pointer = LLVM::LLVMPointerType::get(&getContext());
      auto type = builder.getFunctionType({pointer, pointer, builder.getI64Type(), pointer}, {});
      auto launch = func::FuncOp::create(builder, getOperation().getLoc(), "lamina_launch", type);
      launch.setPrivate();
      symbolTable.insert(launch);
    }
    for (auto host : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      if (isHost(host) && failed(HostLowering(host, symbolTable).run()))
        return signalPassFailure();
  }
};
} // namespace
