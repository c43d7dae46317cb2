// lamina-bufferize-kernels: kernels on tensors become kernels on memrefs.
#include "dialects/Kernel/Kernel.h"
#include "lib/Transforms/Lowering/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotAnalysis.h"
#include "mlir/Dialect/Bufferization/Transforms/Transforms.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

namespace lamina {
#define GEN_PASS_DEF_BUFFERIZEKERNELS
#include "lib/Transforms/Lowering/Passes.h.inc"
} // namespace lamina

using namespace mlir;
using namespace lamina;

/// The memory that an argument of type `type` has.
static MemRefType getBufferType(RankedTensorType type, AffineMapAttr strides) {
  auto contiguous = MemRefType::get(type.getShape(), type.getElementType());
  if (!strides)
    return contiguous;
  SmallVector<int64_t> values;
  for (AffineExpr stride : strides.getValue().getResults()) {
    auto constant = dyn_cast<AffineConstantExpr>(stride);
    values.push_back(constant ? constant.getValue() : ShapedType::kDynamic);
  }
  if (type.hasStaticShape() && values == contiguous.getStridesAndOffset().first)
    return contiguous;
  return MemRefType::get(type.getShape(), type.getElementType(),
                         StridedLayoutAttr::get(type.getContext(), /*offset=*/0, values));
}

/// Arguments become memrefs behind `to_tensor`, and the returned values are written to the outputs.
static void bufferizeBoundary(kernel::FuncOp kernel) {
  OpBuilder builder = OpBuilder::atBlockBegin(&kernel.getBody().front());
  SmallVector<Type> types;
  for (BlockArgument arg : kernel.getArguments()) {
    unsigned number = arg.getArgNumber();
    auto tensorType = dyn_cast<RankedTensorType>(arg.getType());
    if (tensorType) {
      arg.setType(getBufferType(tensorType, kernel.getArgAttrOfType<AffineMapAttr>(number, "kernel.strides")));
      bool isOut = number >= kernel.getNumIns();
      Value tensor = bufferization::ToTensorOp::create(builder, arg.getLoc(), tensorType, arg, /*restrict=*/true,
                                                       /*writable=*/isOut);
      arg.replaceAllUsesExcept(tensor, tensor.getDefiningOp());
    }
    types.push_back(arg.getType());
  }
  kernel.setFunctionType(FunctionType::get(kernel.getContext(), types, {}));

  auto ret = cast<kernel::ReturnOp>(kernel.getBody().front().getTerminator());
  builder.setInsertionPoint(ret);
  for (auto [number, value] : llvm::enumerate(ret.getOperands()))
    bufferization::MaterializeInDestinationOp::create(builder, ret.getLoc(), /*result=*/Type(), value,
                                                      kernel.getArgument(kernel.getNumIns() + number),
                                                      /*restrict=*/true, /*writable=*/true);
  ret->setOperands({});
}

/// Whether the operand's memory is where a result of its op goes.
static bool isDestination(OpOperand &operand) {
  Operation *op = operand.getOwner();
  if (auto destinationStyle = dyn_cast<DestinationStyleOpInterface>(op))
    return destinationStyle.isDpsInit(&operand);
  auto loop = dyn_cast<LoopLikeOpInterface>(op);
  return loop && loop.getTiedLoopResult(&operand);
}

/// Gives each op that writes over a computed tensor one of its own, where CSE has made them one. The analysis sees no
/// conflict where one result takes the memory of the shared tensor, in an output, and another is then stored to that
/// output.
static void separateDestinations(kernel::FuncOp kernel) {
  SmallVector<OpOperand *> operands;
  auto add = [&](Operation *op) {
    for (OpOperand &operand : op->getOpOperands())
      if (isa<RankedTensorType>(operand.get().getType()) && isDestination(operand))
        operands.push_back(&operand);
  };
  kernel.walk(add);
  while (!operands.empty()) {
    OpOperand *operand = operands.pop_back_val();
    Operation *source = operand->get().getDefiningOp();
    if (!isa_and_nonnull<linalg::LinalgOp, tensor::EmptyOp>(source))
      continue;
    bool isShared =
        llvm::any_of(operand->get().getUses(), [&](OpOperand &use) { return &use != operand && isDestination(use); });
    if (!isShared)
      continue;
    OpBuilder builder(source);
    Operation *clone = builder.clone(*source);
    operand->set(clone->getResult(cast<OpResult>(operand->get()).getResultNumber()));
    add(clone);
  }
}

static void replaceCopy(memref::CopyOp copy) {
  OpBuilder builder(copy);
  auto type = cast<MemRefType>(copy.getTarget().getType());
  AffineMap identity = builder.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> iterators(type.getRank(), utils::IteratorType::parallel);
  linalg::GenericOp::create(
      builder, copy.getLoc(), copy.getSource(), copy.getTarget(), ArrayRef<AffineMap>{identity, identity}, iterators,
      [](OpBuilder &nested, Location loc, ValueRange args) { linalg::YieldOp::create(nested, loc, args.front()); });
  copy.erase();
}

namespace {
struct BufferizeKernels : lamina::impl::BufferizeKernelsBase<BufferizeKernels> {
  using BufferizeKernelsBase::BufferizeKernelsBase;

  LogicalResult bufferize(kernel::FuncOp kernel) {
    separateDestinations(kernel);
    bufferizeBoundary(kernel);
    IRRewriter rewriter(&getContext());
    // A value that is computed into a fresh tensor and then stored is computed in its place instead.
    if (failed(bufferization::eliminateEmptyTensors(rewriter, kernel)))
      return failure();
    bufferization::OneShotBufferizationOptions options;
    bufferization::BufferizationState state;
    if (failed(bufferization::runOneShotBufferize(kernel, options, state)))
      return failure();
    OpPassManager cleanup(kernel.getOperationName());
    cleanup.addPass(createCanonicalizerPass());
    cleanup.addPass(createCSEPass());
    if (failed(runPipeline(cleanup, kernel)))
      return failure();
    kernel.walk([&](memref::CopyOp copy) {
      // Equal subviews have become one value in CSE.
      if (copy.getSource() == copy.getTarget())
        return copy.erase();
      replaceCopy(copy);
      ++numCopies;
    });
    kernel.walk([&](memref::AllocOp) { ++numAllocs; });
    return success();
  }

  void getDependentDialects(DialectRegistry &registry) const override {
    BufferizeKernelsBase::getDependentDialects(registry);
    // What canonicalisation may need.
    registry.insert<kernel::KernelDialect>();
  }

  void runOnOperation() override {
    for (auto kernel : llvm::make_early_inc_range(getOperation().getOps<kernel::FuncOp>()))
      if (failed(bufferize(kernel)))
        return signalPassFailure();
  }
};
} // namespace
