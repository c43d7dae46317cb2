// lamina-fuse-kernels: outlines the ops of each prim function into kernels.
#include "dialects/Kernel/Kernel.h"
#include "dialects/Prim/Prim.h"
#include "lib/Support/PassOptions.h"
#include "lib/Transforms/Fusion/Grouping.h"
#include "lib/Transforms/Fusion/Outline.h"
#include "lib/Transforms/Fusion/PackConstants.h"
#include "lib/Transforms/Fusion/SortedValues.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace lamina {
#define GEN_PASS_DECL_FUSEKERNELS
#define GEN_PASS_DEF_FUSEKERNELS
#include "lib/Transforms/Fusion/Passes.h.inc"
} // namespace lamina

using namespace mlir;
using namespace lamina;

namespace {

/// A result must be memory of its own: arguments, and values returned twice, are copied.
void copySharedResults(func::FuncOp func) {
  Operation *terminator = func.getBody().front().getTerminator();
  OpBuilder builder(terminator);
  llvm::SmallPtrSet<Value, 8> returned;
  for (OpOperand &operand : terminator->getOpOperands()) {
    Value value = operand.get();
    if (returned.insert(value).second && value.getDefiningOp())
      continue;
    auto type = cast<RankedTensorType>(value.getType());
    SizeAnalysis sizes(func);
    AffineMapAttr shape = type.hasStaticShape() ? AffineMapAttr() : getExprs(type.getContext(), sizes.getSizes(value));
    operand.set(prim::ReshapeOp::create(builder, terminator->getLoc(), type, value, shape));
  }
}

/// What a scatter changes in place must be memory that nothing else reads, and that a kernel has written.
void copyScattered(func::FuncOp func) {
  SizeAnalysis sizes(func);
  for (auto scatter : func.getOps<prim::ScatterOp>()) {
    Value operand = scatter.getOperand();
    Operation *def = operand.getDefiningOp();
    if (!scatter.getInPlace() || (def && operand.hasOneUse() && getRole(def) != OpRole::Free))
      continue;
    OpBuilder builder(scatter);
    RankedTensorType type = scatter.getType();
    AffineMapAttr shape =
        type.hasStaticShape() ? AffineMapAttr() : getExprs(type.getContext(), sizes.getSizes(operand));
    scatter.getOperandMutable().assign(prim::ReshapeOp::create(builder, scatter.getLoc(), type, operand, shape));
  }
}

struct FuseKernels : lamina::impl::FuseKernelsBase<FuseKernels> {
  using FuseKernelsBase::FuseKernelsBase;

  LogicalResult initialize(MLIRContext *context) override {
    return OptionCheck(*this, context)
        .atLeast(minParallelism, 1)
        .atLeast(sizeHint, 1)
        .atLeast(packWidths, 1)
        .atLeast(packTileWidths, 1);
  }

  void runOnOperation() override {
    KernelTable table(getOperation());
    // @init last: the others may add to it.
    SmallVector<func::FuncOp> funcs(getOperation().getOps<func::FuncOp>());
    llvm::erase_if(funcs, [](func::FuncOp func) { return func.getName() == "init"; });
    for (func::FuncOp func : funcs)
      if (!func.isExternal() && failed(fuse(func, table)))
        return signalPassFailure();
    if (auto init = getOperation().lookupSymbol<func::FuncOp>("init"))
      if (!init.isExternal() && failed(fuse(init, table)))
        return signalPassFailure();
    numKernels = table.size();
  }

  LogicalResult fuse(func::FuncOp func, KernelTable &table) {
    Block &block = func.getBody().front();
    if (func.getBody().getBlocks().size() != 1)
      return func.emitOpError("has several blocks; kernels are made of straight-line functions");
    for (Operation &op : block.without_terminator())
      if (!isa<prim::PrimDialect>(op.getDialect()) || (op.getNumResults() != 1 && !isa<prim::SortOp>(op)))
        return op.emitOpError("cannot be put in a kernel");
    for (BlockArgument argument : block.getArguments()) {
      auto type = dyn_cast<RankedTensorType>(argument.getType());
      if (!type)
        return func.emitOpError("argument ") << argument.getArgNumber() << " is no ranked tensor";
      if (!type.hasStaticShape() && !func.getArgAttr(argument.getArgNumber(), "prim.sizes"))
        return func.emitOpError("argument ") << argument.getArgNumber() << " has a dynamic size and no prim.sizes";
    }
    gatherSortedValues(func);
    copySharedResults(func);
    copyScattered(func);
    SizeAnalysis sizes(func);
    FusionOptions options;
    options.minParallelism = minParallelism;
    options.sizeHint = sizeHint;
    Grouping grouping(func, sizes, options);
    if (failed(grouping.run()))
      return failure();

    Operation *terminator = block.getTerminator();
    OpBuilder builder(terminator);
    DenseMap<Value, Value> hostValues;
    SmallVector<Operation *> old;
    for (Operation &op : block.without_terminator())
      old.push_back(&op);
    std::optional<InitFunction> init;
    if (func.getName() == "main" && !(packWidths.empty() && packTileWidths.empty())) {
      if (failed(InitFunction::check(func)))
        return failure();
      init.emplace(func);
    }
    SmallVector<const Grouping::Group *> groups = grouping.groups();
    std::vector<KernelGraph> graphs;
    // What kernels read from memory: a kernel that was made before a reshape came to memory reads what that is made of.
    llvm::DenseSet<Value> stored(terminator->operand_begin(), terminator->operand_end());
    for (const Grouping::Group *group : groups) {
      KernelGraph &graph = graphs.emplace_back(grouping.makeGraph(*group));
      if (!graph.ok())
        return group->members.front()->emitOpError("was put in a kernel that has no iteration space");
      for (const KernelGraph::Node &node : graph.nodes)
        if (node.view)
          stored.insert(node.view->base);
    }
    for (auto [group, graph] : llvm::zip_equal(groups, graphs)) {
      if (init)
        packConstants(graph, {*packWidths, *packTileWidths}, *init);
      for (BlockArgument argument : block.getArguments())
        hostValues[argument] = argument;
      SmallVector<Operation *> outputs;
      for (Operation *op : group->members)
        if (stored.contains(getKernelValue(op)))
          outputs.push_back(op);
      outlineKernel(graph, group->members, outputs, sizes, builder, hostValues, table);
      ++numLaunches;
    }
    for (OpOperand &operand : terminator->getOpOperands())
      operand.set(hostValues.lookup(operand.get()));
    for (Operation *op : llvm::reverse(old))
      op->erase();
    if (init)
      init->finish();
    return success();
  }
};

} // namespace
