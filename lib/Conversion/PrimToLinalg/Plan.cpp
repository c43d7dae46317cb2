// The choice of prim values that become tensors, and their grouping into generics.
#include "lib/Conversion/PrimToLinalg/Plan.h"
#include "dialects/Prim/Prim.h"
#include "lib/Conversion/PrimToLinalg/ScalarBody.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace lamina;

Value lamina::getContractionBase(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto convert = dyn_cast<prim::ConvertOp>(op)) {
      auto from = dyn_cast<FloatType>(getElementTypeOrSelf(convert.getOperand().getType()));
      auto to = dyn_cast<FloatType>(getElementTypeOrSelf(convert.getType()));
      if (!from || !to || from.getWidth() >= to.getWidth())
        return value;
    } else if (!isa<prim::TransposeOp, prim::BroadcastOp, prim::SliceOp>(op)) {
      return value;
    }
    value = op->getOperand(0);
  }
  return value;
}

bool lamina::needsPadding(Operation *op) {
  auto differs = [](ArrayRef<int64_t> values, int64_t neutral) {
    return llvm::any_of(values, [&](int64_t v) { return v != neutral; });
  };
  if (auto conv = dyn_cast<prim::ConvolutionOp>(op))
    return differs(conv.getLow(), 0) || differs(conv.getHigh(), 0) || differs(conv.getLhsDilations(), 1);
  auto window = cast<prim::ReduceWindowOp>(op);
  return differs(window.getLow(), 0) || differs(window.getHigh(), 0);
}

namespace {
/// Values that a body can compute from its operands' elements.
bool isPullable(Operation *op) {
  if (auto constant = dyn_cast<prim::ConstantOp>(op)) {
    auto elements = dyn_cast<DenseElementsAttr>(constant.getValue());
    return elements && elements.isSplat();
  }
  return hasScalarForm(op) || isa<prim::SizeOp, prim::IotaOp, prim::BroadcastOp, prim::TransposeOp, prim::ReshapeOp,
                                  prim::SliceOp, prim::PadOp, prim::ConcatenateOp, prim::ReverseOp, prim::GatherOp>(op);
}
/// Values that cost nothing to compute again.
bool isFree(Operation *op) {
  return isa<prim::ConstantOp, prim::SizeOp, prim::IotaOp, prim::BroadcastOp, prim::TransposeOp>(op);
}

Item::Kind getKind(Operation *op) {
  if (isa<prim::ReduceOp>(op))
    return Item::Reduce;
  return isPullable(op) ? Item::Pointwise : Item::Alone;
}

class Planner {
public:
  Planner(FunctionOpInterface func, SizeAnalysis &sizes, const PlanOptions &options)
      : block(func.getFunctionBody().front()), sizes(sizes), options(options) {}

  Plan run() {
    chooseRequired();
    chooseOutputs();
    makeGroups();
    if (options.fuse && chooseExpensive())
      makeGroups();
    return std::move(plan);
  }

private:
  void require(Value value) {
    if (value.getDefiningOp())
      made.insert(value);
  }
  void chooseRequired();
  void chooseOutputs();
  bool chooseExpensive();
  void makeGroups();
  void place(const Item &item);
  bool canJoin(unsigned index, const Item &item, const Exprs &loops, ArrayRef<bool> reduced);
  void collectLeaves(Value value, bool pointwise);
  Exprs getLoops(const Item &item, SmallVector<bool> &reduced);

  Block &block;
  SizeAnalysis &sizes;
  PlanOptions options;
  Plan plan;
  /// Values that become tensors.
  llvm::SetVector<Value> made;
  /// Reshapes that are views of a tensor; the others are index arithmetic.
  llvm::SmallPtrSet<Operation *, 4> views;
  SmallVector<Item> copies;
  DenseMap<Value, unsigned> groupOf;
  /// Of the item that is placed: the tensors that it reads, and whether it reads each only element by element.
  llvm::MapVector<Value, bool> leaves;
  llvm::SmallDenseSet<std::pair<Value, unsigned>> visited;
};

void Planner::chooseRequired() {
  for (Operation &op : block.without_terminator()) {
    if (op.getName().getDialectNamespace() != "prim")
      continue;
    if (auto reshape = dyn_cast<prim::ReshapeOp>(op)) {
      Operation *source = reshape.getOperand().getDefiningOp();
      if (!options.fuse || !source || !isPullable(source) || views.contains(source)) {
        require(reshape.getOperand());
        require(reshape.getResult());
        views.insert(reshape);
      }
    } else if (getKind(&op) != Item::Pointwise) {
      for (Value result : op.getResults())
        require(result);
    } else if (!options.fuse && !isFree(&op) && !op.getResult(0).hasOneUse()) {
      require(op.getResult(0));
    }
    if (isa<prim::DotGeneralOp>(op)) {
      require(getContractionBase(op.getOperand(0)));
      require(getContractionBase(op.getOperand(1)));
    } else if (isa<prim::ConvolutionOp>(op)) {
      require(getContractionBase(op.getOperand(1)));
      if (!needsPadding(&op))
        require(op.getOperand(0));
    } else if (isa<prim::ReduceWindowOp>(op)) {
      if (!needsPadding(&op))
        require(op.getOperand(0));
    } else if (auto scatter = dyn_cast<prim::ScatterOp>(op); scatter && scatter.getInPlace()) {
      for (Value operand : op.getOperands())
        require(operand);
    } else if (isa<prim::ScanOp, prim::ScatterOp, prim::SortOp>(op)) {
      require(op.getOperand(0));
    }
  }
}

void Planner::chooseOutputs() {
  llvm::SmallDenseSet<Value> returned;
  for (auto [index, value] : llvm::enumerate(block.getTerminator()->getOperands())) {
    Operation *op = value.getDefiningOp();
    bool isView = op && views.contains(op);
    if (op && !isView && getKind(op) == Item::Pointwise)
      require(value);
    Type type = getElementTypeOrSelf(value.getType());
    // An accumulator is wider than the result.
    bool isWide = op && isa<prim::ReduceOp, prim::DotGeneralOp, prim::ConvolutionOp, prim::ReduceWindowOp>(op) &&
                  getComputeType(type) != getScalarType(type);
    bool isShared = !returned.insert(value).second || !op || isView;
    if (isWide || (isShared && options.freshOutputs))
      copies.push_back({Item::Pointwise, value, static_cast<int64_t>(index)});
  }
}

Exprs Planner::getLoops(const Item &item, SmallVector<bool> &reduced) {
  auto reduce = item.kind == Item::Reduce ? cast<prim::ReduceOp>(item.value.getDefiningOp()) : nullptr;
  ArrayRef<AffineExpr> loops = sizes.getSizes(reduce ? reduce.getOperand() : item.value);
  reduced.assign(loops.size(), false);
  if (reduce)
    for (int64_t dim : reduce.getDims())
      reduced[dim] = true;
  return Exprs(loops);
}

/// Tensors and arguments are leaves; everything between is pulled.
void Planner::collectLeaves(Value value, bool pointwise) {
  Operation *op = value.getDefiningOp();
  if (!op || !visited.insert({value, pointwise}).second)
    return;
  if (made.contains(value)) {
    auto it = leaves.insert({value, pointwise}).first;
    it->second &= pointwise;
    return;
  }
  for (Value operand : op->getOperands())
    collectLeaves(operand, pointwise && hasScalarForm(op));
}

bool Planner::canJoin(unsigned index, const Item &item, const Exprs &loops, ArrayRef<bool> reduced) {
  const Group &group = plan.groups[index];
  if (group.items.front().kind == Item::Alone || group.loopSizes != loops)
    return false;
  bool isReduction = item.kind == Item::Reduce;
  if (!options.mergeReductions && (isReduction || group.hasReduction))
    return false;
  if (isReduction && group.hasReduction && ArrayRef<bool>(group.reduced) != reduced)
    return false;
  return llvm::all_of(leaves, [&](auto &leaf) {
    unsigned at = groupOf.lookup(leaf.first);
    return at < index || (at == index && leaf.second && getKind(leaf.first.getDefiningOp()) == Item::Pointwise);
  });
}

void Planner::place(const Item &item) {
  leaves.clear();
  visited.clear();
  SmallVector<bool> reduced;
  Exprs loops;
  Operation *op = item.value.getDefiningOp();
  if (item.output >= 0)
    collectLeaves(item.value, true);
  else
    for (Value operand : op->getOperands())
      collectLeaves(operand, hasScalarForm(op) || item.kind == Item::Reduce);
  unsigned index = plan.groups.size();
  if (item.kind != Item::Alone) {
    loops = getLoops(item, reduced);
    for (unsigned i = plan.groups.size(); options.fuse && i-- > 0;)
      if (canJoin(i, item, loops, reduced)) {
        index = i;
        break;
      }
  }
  if (index == plan.groups.size()) {
    plan.groups.emplace_back();
    plan.groups.back().loopSizes = loops;
  } else {
    ++plan.numMerged;
  }
  Group &group = plan.groups[index];
  group.items.push_back(item);
  if (item.kind == Item::Reduce || group.reduced.empty()) {
    group.hasReduction |= item.kind == Item::Reduce;
    group.reduced = reduced;
  }
  if (item.output < 0)
    for (Value result : item.value.getDefiningOp()->getResults())
      groupOf[result] = index;
}

void Planner::makeGroups() {
  plan = Plan();
  groupOf.clear();
  for (Operation &op : block.without_terminator())
    if (op.getNumResults() && made.contains(op.getResult(0)))
      place({views.contains(&op) ? Item::Alone : getKind(&op), op.getResult(0)});
  for (const Item &copy : copies)
    place(copy);
}

/// Makes tensors of expensive values that two groups read, and of those that a broadcast repeats. Whether a value is
/// expensive depends on what is a tensor already, so this goes from operands to users; a value with one pulled user
/// leaves the choice to that user, whose tensor serves as well.
bool Planner::chooseExpensive() {
  DenseMap<Value, llvm::SmallDenseSet<unsigned, 2>> readers;
  auto addReader = [&](Value value, unsigned group) { readers[value].insert(group); };
  for (Operation &op : llvm::reverse(block.without_terminator())) {
    for (Value result : op.getResults()) {
      if (made.contains(result)) {
        for (Value operand : op.getOperands())
          addReader(operand, groupOf.lookup(result));
      } else {
        for (unsigned group : llvm::to_vector(readers[result]))
          for (Value operand : op.getOperands())
            addReader(operand, group);
      }
    }
  }
  bool changed = false;
  llvm::SmallDenseSet<Value> expensive;
  for (Operation &op : block.without_terminator()) {
    if (op.getNumResults() != 1 || made.contains(op.getResult(0)))
      continue;
    Value value = op.getResult(0);
    bool isCostly =
        isExpensive(&op) || llvm::any_of(op.getOperands(), [&](Value operand) { return expensive.contains(operand); });
    if (!isCostly)
      continue;
    bool isRepeated = llvm::any_of(value.getUsers(), [&](Operation *user) {
      auto broadcast = dyn_cast<prim::BroadcastOp>(user);
      return broadcast && broadcast.getType() != value.getType();
    });
    bool isShared = readers[value].size() > 1 && !value.hasOneUse();
    if (isRepeated || isShared)
      changed |= made.insert(value);
    else
      expensive.insert(value);
  }
  return changed;
}
} // namespace

Plan lamina::makePlan(FunctionOpInterface func, SizeAnalysis &sizes, const PlanOptions &options) {
  return Planner(func, sizes, options).run();
}
