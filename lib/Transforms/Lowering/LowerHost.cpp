// lamina-lower-host: host functions become functions on pointers that launch kernels.
#include "dialects/Kernel/Kernel.h"
#include "lib/Transforms/Lowering/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "llvm/ADT/MapVector.h"

namespace lamina {
#define GEN_PASS_DEF_LOWERHOST
#include "lib/Transforms/Lowering/Passes.h.inc"
} // namespace lamina

using namespace mlir;
using namespace lamina;

namespace {

/// Where a value of the host lies: an argument, or the arena, and bytes from its start.
struct Place {
  int64_t base; // number of an argument, or kArena
  AffineExpr offset;
};
constexpr int64_t kArena = -1;

class HostLowering {
public:
  HostLowering(func::FuncOp host, SymbolTable &symbolTable)
      : host(host), symbolTable(symbolTable), builder(host.getContext()), loc(host.getLoc()),
        pointerType(LLVM::LLVMPointerType::get(builder.getContext())) {}

  LogicalResult run();

private:
  LogicalResult addLaunch(kernel::LaunchOp launch);
  /// A number in the program: a constant as it is, or -1 - i for value i that the host computes at each call.
  int64_t encode(AffineExpr expr);
  void emit();
  Value getName(StringRef kernel);
  Value elementAddress(Value array, int64_t index) {
    return LLVM::GEPOp::create(builder, loc, pointerType, builder.getI64Type(), array,
                               ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(index)});
  }
  Value makeArray(int64_t size) {
    Value one = LLVM::ConstantOp::create(builder, loc, builder.getI64Type(), builder.getI64IntegerAttr(1));
    return LLVM::AllocaOp::create(builder, loc, pointerType, LLVM::LLVMArrayType::get(builder.getI64Type(), size), one,
                                  /*alignment=*/8);
  }

  func::FuncOp host;
  SymbolTable &symbolTable;
  OpBuilder builder;
  Location loc;
  Type pointerType;
  func::FuncOp func;
  DenseMap<Value, Place> places;
  SmallVector<int64_t> program{0}; // the number of launches first
  llvm::MapVector<StringRef, func::FuncOp> kernels;
  llvm::MapVector<AffineExpr, unsigned> computed;
};

int64_t HostLowering::encode(AffineExpr expr) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr); constant && constant.getValue() >= 0)
    return constant.getValue();
  auto [it, isNew] = computed.try_emplace(expr, computed.size());
  return -1 - static_cast<int64_t>(it->second);
}

LogicalResult HostLowering::addLaunch(kernel::LaunchOp launch) {
  if (launch.getOuts().size() != launch.getNumResults())
    return launch.emitOpError("has no memory for its outputs");
  auto callee = symbolTable.lookup<func::FuncOp>(launch.getKernel());
  auto grid = callee ? callee->getAttrOfType<AffineMapAttr>("kernel.grid") : AffineMapAttr();
  if (!grid)
    return launch.emitOpError("launches @") << launch.getKernel() << ", which is no function with a kernel.grid";

  if (grid.getValue().getNumSymbols() > launch.getSymbols().getNumResults())
    return launch.emitOpError("gives ") << launch.getSymbols().getNumResults() << " symbols, the grid needs "
                                        << grid.getValue().getNumSymbols();
  kernels.try_emplace(callee.getSymName(), callee);
  ArrayRef<AffineExpr> values = launch.getSymbols().getResults();
  AffineExpr programs = builder.getAffineConstantExpr(1);
  for (AffineExpr count : grid.getValue().getResults())
    programs = programs * count.replaceSymbols(values);
  ++program[0];
  program.push_back(std::distance(kernels.begin(), kernels.find(callee.getSymName())));
  program.push_back(encode(programs));
  program.push_back(launch.getIns().size() + launch.getOuts().size());
  program.push_back(values.size());
  for (Value operand : llvm::concat<Value>(launch.getIns(), launch.getOuts())) {
    Place place = places.lookup(operand);
    program.push_back(place.base);
    program.push_back(encode(place.offset));
  }
  for (AffineExpr value : values)
    program.push_back(encode(value));
  for (auto [result, out] : llvm::zip_equal(launch.getResults(), launch.getOuts()))
    places[result] = places.lookup(out);
  return success();
}

/// The kernel's name as a C string, for profilers.
Value HostLowering::getName(StringRef kernel) {
  StringAttr text = builder.getStringAttr(std::string(kernel) + '\0');
  auto global = symbolTable.lookup<LLVM::GlobalOp>((kernel + ".name").str());
  if (!global || global.getValueAttr() != text) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(func);
    auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), kernel.size() + 1);
    global = LLVM::GlobalOp::create(builder, loc, type, /*isConstant=*/true, LLVM::Linkage::Private,
                                    (kernel + ".name").str(), text);
    symbolTable.insert(global); // may give it another name
  }
  return LLVM::AddressOfOp::create(builder, loc, global);
}

/// The function itself: it computes the values, lists the kernels, and has the runtime go through the program.
void HostLowering::emit() {
  builder.setInsertionPoint(func);
  auto programType = RankedTensorType::get({static_cast<int64_t>(program.size())}, builder.getI64Type());
  auto table =
      LLVM::GlobalOp::create(builder, loc, LLVM::LLVMArrayType::get(builder.getI64Type(), program.size()),
                             /*isConstant=*/true, LLVM::Linkage::Private, (host.getSymName() + ".program").str(),
                             DenseElementsAttr::get(programType, ArrayRef<int64_t>(program)));
  symbolTable.insert(table); // may give it another name

  builder.setInsertionPointToStart(func.addEntryBlock());
  Value entries = makeArray(2 * kernels.size());
  for (auto [i, entry] : llvm::enumerate(kernels)) {
    Value function = func::ConstantOp::create(builder, loc, entry.second.getFunctionType(), entry.first);
    Value address = UnrealizedConversionCastOp::create(builder, loc, pointerType, function).getResult(0);
    LLVM::StoreOp::create(builder, loc, address, elementAddress(entries, 2 * i));
    LLVM::StoreOp::create(builder, loc, getName(entry.first), elementAddress(entries, 2 * i + 1));
  }
  unsigned symbolCount = 0;
  for (auto &[expr, number] : computed)
    expr.walk([&](AffineExpr e) {
      if (auto s = dyn_cast<AffineSymbolExpr>(e))
        symbolCount = std::max(symbolCount, s.getPosition() + 1);
    });
  SmallVector<Value> symbols;
  for (unsigned i = 0; i < symbolCount; ++i) {
    Value value =
        LLVM::LoadOp::create(builder, loc, builder.getI64Type(), elementAddress(func.getArgument(1), i)).getResult();
    symbols.push_back(arith::IndexCastOp::create(builder, loc, builder.getIndexType(), value));
  }
  Value values = makeArray(computed.size());
  for (auto &[expr, number] : computed) {
    Value value = affine::expandAffineExpr(builder, loc, expr, {}, symbols);
    value = arith::IndexCastOp::create(builder, loc, builder.getI64Type(), value);
    LLVM::StoreOp::create(builder, loc, value, elementAddress(values, number));
  }
  Value list = LLVM::AddressOfOp::create(builder, loc, table);
  func::CallOp::create(builder, loc, "lamina_run", TypeRange{},
                       ValueRange{list, entries, values, func.getArgument(0), func.getArgument(2)});
  func::ReturnOp::create(builder, loc);
}

LogicalResult HostLowering::run() {
  builder.setInsertionPoint(host);
  auto type = builder.getFunctionType({pointerType, pointerType, pointerType}, {});
  func = func::FuncOp::create(builder, loc, host.getSymName(), type);
  for (NamedAttribute attr : host->getDiscardableAttrs())
    func->setAttr(attr.getName(), attr.getValue());

  AffineExpr zero = builder.getAffineConstantExpr(0);
  for (BlockArgument arg : host.getArguments())
    places[arg] = {arg.getArgNumber(), zero};
  DataLayout layout = DataLayout::closest(host);
  for (Operation &op : host.front()) {
    if (auto launch = dyn_cast<kernel::LaunchOp>(op)) {
      if (failed(addLaunch(launch)))
        return failure();
    } else if (auto alloc = dyn_cast<kernel::AllocOp>(op)) {
      places[alloc] = {kArena, alloc.getOffset().getResult(0)};
    } else if (auto view = dyn_cast<kernel::ViewOp>(op)) {
      int64_t bytes = layout.getTypeSize(cast<RankedTensorType>(view.getOperand().getType()).getElementType());
      Place place = places.lookup(view.getOperand());
      places[view] = {place.base, place.offset + view.getOffset().getResult(0) * bytes};
    } else if (!op.hasTrait<OpTrait::ReturnLike>()) {
      return op.emitOpError("is no operation of a host function");
    }
  }
  emit();
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
    OpBuilder builder = OpBuilder::atBlockBegin(getOperation().getBody());
    auto pointer = LLVM::LLVMPointerType::get(&getContext());
    auto type = builder.getFunctionType(SmallVector<Type>(5, pointer), {});
    if (Operation *known = symbolTable.lookup("lamina_run")) {
      auto run = dyn_cast<func::FuncOp>(known);
      if (!run || run.getFunctionType() != type) {
        known->emitOpError("has the name of a function of the runtime");
        return signalPassFailure();
      }
    } else {
      auto run = func::FuncOp::create(builder, getOperation().getLoc(), "lamina_run", type);
      run.setPrivate();
      symbolTable.insert(run);
    }
    for (auto host : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      if (isHost(host) && failed(HostLowering(host, symbolTable).run()))
        return signalPassFailure();
  }
};
} // namespace
