// lamina-convert-prim-to-linalg: the pass around the plan and the emitter.
#include "lib/Conversion/PrimToLinalg/Emitter.h"
#include "lib/Conversion/PrimToLinalg/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace lamina;

namespace lamina {
#define GEN_PASS_DEF_CONVERTPRIMTOLINALG
#include "lib/Conversion/PrimToLinalg/Passes.h.inc"
} // namespace lamina

namespace {
struct ConvertPrimToLinalg : lamina::impl::ConvertPrimToLinalgBase<ConvertPrimToLinalg> {
  using Base::Base;

  void runOnOperation() override {
    FunctionOpInterface func = getOperation();
    if (func.isExternal() || !isa<kernel::FuncOp, func::FuncOp>(func.getOperation()))
      return;
    Block &block = func.getFunctionBody().front();
    // Host functions of launches have nothing to convert.
    bool empty = func.getFunctionBody().hasOneBlock() && block.without_terminator().empty();
    bool anyPrim = llvm::any_of(func.getFunctionBody().getOps(), isPrim);
    if (!isa<kernel::FuncOp>(func.getOperation()) && !anyPrim && !empty)
      return;
    if (failed(checkOps(func)) || failed(checkSymbols(func, block)))
      return signalPassFailure();
    SizeAnalysis sizes(func);
    PlanOptions options;
    options.fuse = fuse;
    options.mergeReductions = fuse && mergeReductions;
    options.freshOutputs = isa<kernel::FuncOp>(func.getOperation());
    Plan plan = makePlan(func, sizes, options);
    numMerged += plan.numMerged;
    Emitter emitter(func, sizes, plan);
    emitter.parallelScatters = parallelScatters;
    if (failed(emitter.run()))
      return signalPassFailure();
    numGenerics += emitter.getNumGenerics();
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (isPrim(op))
        op.erase();
    dropSigns(func, block);
  }

  static bool isPrim(Operation &op) { return op.getName().getDialectNamespace() == "prim"; }

  /// The plan is made for one block of prim ops.
  LogicalResult checkOps(FunctionOpInterface func) {
    if (!func.getFunctionBody().hasOneBlock())
      return func.emitError("has more than one block");
    for (Operation &op : func.getFunctionBody().front().without_terminator())
      if (!isPrim(op))
        return op.emitOpError("is no prim op: a function is converted as a whole");
    return success();
  }

  /// A func.func's symbols are read from its arguments' sizes, so each one used must be some size.
  LogicalResult checkSymbols(FunctionOpInterface func, Block &block) {
    if (isa<kernel::FuncOp>(func.getOperation()))
      return success();
    llvm::SmallDenseSet<AffineExpr> bare;
    for (unsigned i = 0; i < func.getNumArguments(); ++i)
      if (auto sizes = func.getArgAttrOfType<AffineMapAttr>(i, "prim.sizes"))
        for (AffineExpr size : sizes.getValue().getResults())
          bare.insert(size);
    auto check = [&](Operation *op, Attribute attr) -> LogicalResult {
      auto map = dyn_cast_or_null<AffineMapAttr>(attr);
      if (!map)
        return success();
      LogicalResult result = success();
      for (AffineExpr expr : map.getValue().getResults())
        expr.walk([&](AffineExpr e) {
          if (isa<AffineSymbolExpr>(e) && !bare.contains(e) && succeeded(result))
            result = op->emitError("symbol s")
                     << cast<AffineSymbolExpr>(e).getPosition() << " is not the size of any argument dimension";
        });
      return result;
    };
    for (unsigned i = 0; i < func.getNumArguments(); ++i)
      if (failed(check(func, func.getArgAttr(i, "prim.sizes"))))
        return failure();
    for (Operation &op : block)
      for (NamedAttribute attr : op.getAttrs())
        if (failed(check(&op, attr.getValue())))
          return failure();
    return success();
  }

  /// Arguments and results lose the sign of their elements, as the ops already have.
  void dropSigns(FunctionOpInterface func, Block &block) {
    auto withoutSign = [](Type type) -> Type {
      auto tensor = dyn_cast<RankedTensorType>(type);
      return tensor ? tensor.clone(getScalarType(tensor.getElementType())) : type;
    };
    for (BlockArgument arg : block.getArguments())
      arg.setType(cast<RankedTensorType>(withoutSign(arg.getType())));
    for (Operation &op : llvm::make_early_inc_range(block))
      if (auto cast = dyn_cast<UnrealizedConversionCastOp>(op)) {
        cast.replaceAllUsesWith(cast.getInputs());
        cast.erase();
      }
    auto types = [&](ArrayRef<Type> old) { return llvm::map_to_vector(old, withoutSign); };
    func.setType(FunctionType::get(&getContext(), types(func.getArgumentTypes()), types(func.getResultTypes())));
  }
};
} // namespace
