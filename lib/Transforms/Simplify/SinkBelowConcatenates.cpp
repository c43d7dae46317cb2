// lamina-sink-below-concatenates: what changes an operand of a concatenation is computed after it.
#include "dialects/Prim/Prim.h"
#include "dialects/Prim/PrimSizes.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Pass/Pass.h"

namespace lamina {
#define GEN_PASS_DEF_SINKBELOWCONCATENATES
#include "lib/Transforms/Simplify/Passes.h.inc"
} // namespace lamina

using namespace mlir;
using namespace lamina;
using namespace lamina::prim;

/// Each op that moves is computed for the elements of all operands.
static constexpr unsigned kMaxMoved = 4;

namespace {

/// The ops that change an operand, the last one first, and what they change: a part of a value in memory.
struct Changes {
  SmallVector<Operation *> ops;
  Value source;
};

bool isSplat(Value value) {
  auto constant = value.getDefiningOp<ConstantOp>();
  return constant && isa<SplatElementsAttr>(constant.getValue());
}

/// The one operand of an elementwise op that is no literal, of the type of its result; null if it is not so.
Value getChanged(Operation *op) {
  if (!isa_and_present<PrimDialect>(op->getDialect()) || !op->hasTrait<OpTrait::Elementwise>() || !op->hasOneUse())
    return {};
  Value changed;
  for (Value operand : op->getOperands()) {
    if (isSplat(operand))
      continue;
    if (changed && changed != operand)
      return {};
    changed = operand;
  }
  return changed && changed.getType() == op->getResult(0).getType() ? changed : Value();
}

Changes getChanges(Value operand) {
  Changes changes{{}, operand};
  while (Operation *def = changes.source.getDefiningOp()) {
    Value changed = getChanged(def);
    if (!changed)
      break;
    changes.ops.push_back(def);
    changes.source = changed;
  }
  // What computes the source could do the rest as well.
  Operation *def = changes.source.getDefiningOp();
  if (def && !isa<SliceOp, TransposeOp, ReshapeOp>(def))
    changes = {{}, operand};
  return changes;
}

struct SinkBelowConcatenates : lamina::impl::SinkBelowConcatenatesBase<SinkBelowConcatenates> {
  void runOnOperation() override {
    SizeAnalysis sizes(getOperation());
    SmallVector<ConcatenateOp> all;
    getOperation()->walk([&](ConcatenateOp op) { all.push_back(op); });
    for (ConcatenateOp op : all)
      sink(op, sizes);
  }

  void sink(ConcatenateOp op, SizeAnalysis &sizes) {
    auto type = cast<RankedTensorType>(op.getResult().getType());
    SmallVector<Changes> changes;
    SmallVector<int64_t> starts{0};
    unsigned moved = 0;
    for (Value operand : op.getOperands()) {
      int64_t size = cast<RankedTensorType>(operand.getType()).getDimSize(op.getDim());
      if (ShapedType::isDynamic(size))
        return;
      starts.push_back(starts.back() + size);
      changes.push_back(getChanges(operand));
      moved += changes.back().ops.size();
    }
    if (moved == 0 || moved > kMaxMoved)
      return;

    Location loc = op.getLoc();
    OpBuilder builder(op);
    AffineMapAttr shape =
        type.hasStaticShape() ? AffineMapAttr() : getExprs(type.getContext(), sizes.getSizes(op.getResult()));
    auto splat = [&](Type element, Attribute value) -> Value {
      auto scalar = RankedTensorType::get({}, element);
      Value literal = ConstantOp::create(builder, loc, scalar, DenseElementsAttr::get(scalar, value));
      return BroadcastOp::create(builder, loc, type.clone(element), literal, ArrayRef<int64_t>{}, shape);
    };
    auto index = [&](int64_t value) { return splat(builder.getI64Type(), builder.getI64IntegerAttr(value)); };
    Value position = IotaOp::create(builder, loc, type.clone(builder.getI64Type()), op.getDim(), shape);
    auto compare = [&](Comparison comparison, int64_t bound) -> Value {
      return CompareOp::create(builder, loc, type.clone(builder.getI1Type()), comparison, position, index(bound));
    };

    SmallVector<Value> sources;
    for (const Changes &change : changes)
      sources.push_back(change.source);
    Value joined = ConcatenateOp::create(builder, loc, type, sources, op.getDim());
    Value result = joined;
    for (auto [k, change] : llvm::enumerate(changes)) {
      if (change.ops.empty())
        continue;
      Value changed = joined;
      for (Operation *old : llvm::reverse(change.ops)) {
        SmallVector<Value> operands;
        for (Value operand : old->getOperands())
          operands.push_back(
              isSplat(operand)
                  ? splat(type.getElementType(), cast<SplatElementsAttr>(operand.getDefiningOp<ConstantOp>().getValue())
                                                     .getSplatValue<Attribute>())
                  : changed);
        OperationState state(old->getLoc(), old->getName(), operands, type, old->getAttrs());
        changed = builder.create(state)->getResult(0);
        ++numMoved;
      }
      bool first = k == 0, last = k + 1 == changes.size();
      Value inside = first ? Value() : compare(Comparison::ge, starts[k]);
      if (!last) {
        Value below = compare(Comparison::lt, starts[k + 1]);
        inside = inside ? Value(AndOp::create(builder, loc, inside.getType(), inside, below)) : below;
      }
      result = inside ? Value(SelectOp::create(builder, loc, type, inside, changed, result)) : changed;
    }
    op.getResult().replaceAllUsesWith(result);
    op.erase();
    for (const Changes &change : changes)
      for (Operation *old : change.ops)
        old->erase();
  }
};

} // namespace
