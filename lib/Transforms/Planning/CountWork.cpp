// lamina-count-work: what a launch of a kernel reads, writes and computes, as expressions over its symbols.
#include "dialects/Kernel/Kernel.h"
#include "dialects/Prim/Prim.h"
#include "dialects/Prim/PrimSizes.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/TypeSwitch.h"

namespace lamina {
#define GEN_PASS_DECL_COUNTWORK
#define GEN_PASS_DEF_COUNTWORK
#include "lib/Transforms/Planning/Passes.h.inc"
} // namespace lamina

using namespace mlir;
using namespace lamina;

namespace {
class Counter {
public:
  explicit Counter(kernel::FuncOp func) : func(func), sizes(func), context(func.getContext()) {}

  DictionaryAttr run() {
    SmallVector<Attribute> elements;
    for (BlockArgument argument : func.getBody().front().getArguments())
      elements.push_back(bounds(argument));
    func.walk([&](Operation *op) { count(op); });
    Builder builder(context);
    SmallVector<NamedAttribute> byType;
    for (auto [type, number] : products)
      byType.push_back(builder.getNamedAttr(text(type), list({number})));
    return builder.getDictionaryAttr({builder.getNamedAttr("elements", builder.getArrayAttr(elements)),
                                      builder.getNamedAttr("products", builder.getDictionaryAttr(byType)),
                                      builder.getNamedAttr("operations", list({operations}))});
  }

private:
  static std::string text(Type type) {
    std::string name;
    llvm::raw_string_ostream(name) << type;
    return name;
  }

  AffineExpr constant(int64_t value) { return getAffineConstantExpr(value, context); }
  AffineExpr volume(ArrayRef<AffineExpr> of) { return getNumElements(of, context); }
  AffineExpr volume(Value value) { return volume(sizes.getSizes(value)); }

  /// The expressions without those that depend on a size that is not known.
  AffineMapAttr list(ArrayRef<AffineExpr> exprs) {
    return getExprs(context, llvm::filter_to_vector(exprs, [](AffineExpr e) { return !hasUnknownSize(e); }));
  }

  AffineMapAttr bounds(BlockArgument argument) {
    unsigned outs = func.getOuts(), number = argument.getArgNumber();
    bool isOutput = number + outs >= func.getNumArguments();
    SmallVector<AffineExpr> found = memory(argument);
    // What is changed in place is read and written where there are updates.
    for (auto scatter : func.getOps<prim::ScatterOp>())
      if (scatter.getInPlace() && (isOutput || scatter.getOperand() == argument))
        found.push_back(volume(scatter.getUpdates()));
    if (!isOutput)
      if (AffineExpr reads = readsOf(argument))
        found.push_back(reads);
    return list(found);
  }

  /// Elements of memory that an argument is, and that lie between its first and its last.
  SmallVector<AffineExpr> memory(BlockArgument argument) {
    ArrayRef<AffineExpr> shape = sizes.getSizes(argument);
    auto strides = func.getArgAttrOfType<AffineMapAttr>(argument.getArgNumber(), "kernel.strides");
    if (!strides)
      return {volume(shape)};
    AffineExpr extent = constant(1);
    Exprs distinct;
    for (auto [size, stride] : llvm::zip_equal(shape, strides.getValue().getResults())) {
      extent = extent + (size - 1) * stride;
      if (stride != constant(0))
        distinct.push_back(size);
    }
    return {volume(distinct), simplifySize(extent)};
  }

  /// How many elements of a value are read, each as often as it is; null if a reader takes all of it.
  AffineExpr readsOf(Value value) {
    AffineExpr sum = constant(0);
    for (OpOperand &use : value.getUses()) {
      AffineExpr part =
          llvm::TypeSwitch<Operation *, AffineExpr>(use.getOwner())
              .Case([&](prim::GatherOp op) { return use.getOperandNumber() == 0 ? volume(op.getResult()) : nullptr; })
              .Case([&](prim::SliceOp op) {
                AffineExpr inner = readsOf(op.getResult());
                return inner ? inner : volume(op.getResult());
              })
              .Case<prim::TransposeOp, prim::ReverseOp, prim::BroadcastOp>(
                  [&](Operation *op) { return readsOf(op->getResult(0)); })
              .Default(AffineExpr());
      if (!part)
        return part;
      sum = sum + part;
    }
    return simplifySize(sum);
  }

  void add(AffineExpr &total, AffineExpr number) {
    if (!hasUnknownSize(number))
      total = simplifySize(total + number);
  }

  void addProducts(Value operand, AffineExpr number) {
    auto [place, isNew] = products.try_emplace(getElementTypeOrSelf(operand), constant(0));
    add(place->second, number * 2);
  }

  void count(Operation *op) {
    if (op->hasTrait<OpTrait::Elementwise>())
      return add(operations, volume(op->getResult(0)));
    llvm::TypeSwitch<Operation *>(op)
        .Case([&](prim::DotGeneralOp dot) {
          AffineExpr number = volume(dot.getResult());
          for (int64_t dim : dot.getLhsContract())
            number = number * sizes.getSizes(dot.getLhs())[dim];
          addProducts(dot.getLhs(), number);
        })
        .Case([&](prim::ConvolutionOp convolution) {
          // Each element of the result is a sum over all but the first dimension of the weights.
          ArrayRef<AffineExpr> weights = sizes.getSizes(convolution.getRhs());
          addProducts(convolution.getLhs(), volume(convolution.getResult()) * volume(weights.drop_front()));
        })
        .Case([&](prim::ReduceWindowOp window) {
          int64_t each = 1;
          for (int64_t size : window.getWindowSizes())
            each *= size;
          add(operations, volume(window.getResult()) * each);
        })
        .Case([&](prim::ScatterOp scatter) { add(operations, volume(scatter.getUpdates())); })
        .Case<prim::ReduceOp, prim::ArgReduceOp, prim::ScanOp, prim::SortOp>(
            [&](Operation *combining) { add(operations, volume(combining->getOperand(0))); });
  }

  kernel::FuncOp func;
  SizeAnalysis sizes;
  MLIRContext *context;
  llvm::MapVector<Type, AffineExpr> products;
  AffineExpr operations = constant(0);
};

struct CountWorkPass : lamina::impl::CountWorkBase<CountWorkPass> {
  void runOnOperation() override {
    auto kernel = dyn_cast<kernel::FuncOp>(getOperation().getOperation());
    if (kernel && !kernel.isExternal())
      kernel->setAttr("kernel.work", Counter(kernel).run());
    markAllAnalysesPreserved();
  }
};
} // namespace
