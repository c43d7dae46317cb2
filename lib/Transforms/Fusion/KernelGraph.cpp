// KernelGraph: building the graph of a kernel and relating the dimensions of its values.
#include "lib/Transforms/Fusion/KernelGraph.h"
#include "dialects/Prim/Prim.h"
#include "lib/Transforms/Fusion/Online.h"
#include "lib/Transforms/Fusion/SortedValues.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace lamina;
using namespace lamina::prim;

/// An elementwise op whose operands all come from nowhere is free up to this many ops: a mask made of iotas.
static constexpr unsigned kMaxFreeOps = 12;

/// Number of ops in the tree below an op that reads no memory; nullopt if it reads some or is too big.
static std::optional<unsigned> countMemorylessOps(Operation *op, unsigned budget) {
  unsigned count = 1;
  if (!isa<ConstantOp, IotaOp, SizeOp, BroadcastOp, TransposeOp, ReshapeOp>(op) &&
      !op->hasTrait<OpTrait::Elementwise>())
    return std::nullopt;
  for (Value operand : op->getOperands()) {
    Operation *def = operand.getDefiningOp();
    if (!def || count >= budget)
      return std::nullopt;
    std::optional<unsigned> below = countMemorylessOps(def, budget - count);
    if (!below)
      return std::nullopt;
    count += *below;
  }
  return count <= budget ? std::optional(count) : std::nullopt;
}

OpRole lamina::getRole(Operation *op) {
  if (isa<ConstantOp, IotaOp, SizeOp, BroadcastOp, TransposeOp, ReshapeOp, SliceOp>(op))
    return OpRole::Free;
  if (isa<DotGeneralOp, ConvolutionOp>(op))
    return OpRole::Contraction;
  if (isa<ReduceOp>(op))
    return OpRole::Reduction;
  if (op->hasTrait<OpTrait::Elementwise>())
    return countMemorylessOps(op, kMaxFreeOps) ? OpRole::Free : OpRole::Elementwise;
  return OpRole::Reader;
}

static bool isOne(AffineExpr expr) {
  auto constant = dyn_cast<AffineConstantExpr>(expr);
  return constant && constant.getValue() == 1;
}

/// Strides of `to` over the memory of (`from`, `strides`), or nullopt if it would need a copy.
static std::optional<Exprs> reshapeStrides(ArrayRef<AffineExpr> from, ArrayRef<AffineExpr> strides,
                                           ArrayRef<AffineExpr> to, MLIRContext *context) {
  if (ArrayRef<AffineExpr>(getRowMajorStrides(from, context)) == strides)
    return getRowMajorStrides(to, context);
  // Otherwise each dimension of `from` must be the product of a run of dimensions of `to`.
  Exprs out(to.size());
  int64_t j = static_cast<int64_t>(to.size()) - 1;
  for (int64_t i = static_cast<int64_t>(from.size()) - 1; i >= 0; --i) {
    if (isOne(from[i]))
      continue;
    AffineExpr rest = from[i], stride = strides[i];
    while (!isOne(rest)) {
      if (j < 0)
        return std::nullopt;
      std::optional<AffineExpr> quotient = divideExactly(rest, to[j]);
      if (!quotient)
        return std::nullopt;
      out[j] = stride;
      stride = simplifySize(stride * to[j--]);
      rest = *quotient;
    }
  }
  for (; j >= 0; --j) {
    if (!isOne(to[j]))
      return std::nullopt;
    out[j] = getAffineConstantExpr(1, context);
  }
  return out;
}

/// Moves a view of a slice's operand to where the slice's elements are; its sizes stay.
static void applySlice(SliceOp slice, StridedView &view) {
  for (auto [i, start, step] : llvm::enumerate(slice.getStarts().getResults(), slice.getStrides())) {
    view.offset = simplifySize(view.offset + start * view.strides[i]);
    view.strides[i] = simplifySize(view.strides[i] * step);
  }
}

/// Changes a view of the operand of a slice, transpose or reshape to one of its result, of this shape; false if the
/// result would need a copy.
static bool applyView(Operation *op, ArrayRef<AffineExpr> shape, StridedView &view) {
  if (auto slice = dyn_cast<SliceOp>(op)) {
    applySlice(slice, view);
  } else if (auto transpose = dyn_cast<TransposeOp>(op)) {
    view.strides =
        llvm::map_to_vector(transpose.getPermutation(), [&](int64_t dim) -> AffineExpr { return view.strides[dim]; });
  } else {
    std::optional<Exprs> strides = reshapeStrides(view.sizes, view.strides, shape, op->getContext());
    if (!strides)
      return false;
    view.strides = *strides;
  }
  view.sizes = Exprs(shape);
  return true;
}

std::optional<StridedView> KernelGraph::traceView(Value value) {
  MLIRContext *context = value.getContext();
  Operation *def = value.getDefiningOp();
  Exprs shape(sizes.getSizes(value));
  if (!def || isMaterialised(def) || !isa<SliceOp, TransposeOp, ReshapeOp>(def)) {
    if (def && getRole(def) == OpRole::Free && !isMaterialised(def)) {
      toMaterialise.push_back(def);
      return std::nullopt;
    }
    return StridedView{value, getAffineConstantExpr(0, context), shape, getRowMajorStrides(shape, context)};
  }
  std::optional<StridedView> view = traceView(def->getOperand(0));
  if (!view)
    return std::nullopt;
  if (!applyView(def, shape, *view)) {
    toMaterialise.push_back(def);
    return std::nullopt;
  }
  return view;
}

bool KernelGraph::hasCommonFactors(ReshapeOp reshape) {
  Factors own;
  auto createAll = [&](ArrayRef<AffineExpr> shape) {
    return llvm::map_to_vector<2>(shape, [&](AffineExpr size) { return own.create(size); });
  };
  Factors::List from = createAll(sizes.getSizes(reshape.getOperand()));
  Factors::List to = createAll(sizes.getSizes(reshape.getResult()));
  return own.unify(from, to);
}

std::optional<unsigned> KernelGraph::addCopy(Operation *op) {
  Value operand = op->getOperand(0);
  std::optional<StridedView> view = traceView(operand);
  if (!view)
    return std::nullopt;
  if (Operation *base = view->base.getDefiningOp(); base && memberSet.contains(base))
    return std::nullopt;
  if (!applyView(op, Exprs(sizes.getSizes(op->getResult(0))), *view)) {
    toMaterialise.push_back(operand.getDefiningOp());
    return std::nullopt;
  }
  return memberNodes[op] = *addLeaf(op->getResult(0), *view, /*foreign=*/false);
}

KernelGraph::KernelGraph(ArrayRef<Operation *> members, SizeAnalysis &sizes,
                         function_ref<bool(Operation *)> isMaterialised)
    : sizes(sizes), isMaterialised(isMaterialised), memberSet(members.begin(), members.end()) {
  for (Operation *op : members)
    if (!addMember(op)) {
      valid = false;
      return;
    }
  // A factor of size 1 that a reader keeps may come with a reshape, as by a broadcast, but cannot vanish in one.
  for (const Node &node : nodes) {
    if (!node.op || !isa<ReshapeOp>(node.op))
      continue;
    Factors::List rest = leaves(node), from = leaves(nodes[node.operands[0]]);
    llvm::erase_if(rest, [&](unsigned leaf) { return factors.isOne(leaf) && !llvm::is_contained(from, leaf); });
    if (rest != from) {
      valid = false;
      toMaterialise.push_back(node.op);
    }
  }
  // A value that has one factor twice, like x + transpose(x), is no projection of an iteration space.
  for (const Node &node : nodes) {
    Factors::List list = leaves(node);
    llvm::SmallDenseSet<unsigned> seen;
    for (unsigned leaf : list)
      if (!node.foreign && !seen.insert(leaf).second)
        valid = false;
  }
}

std::optional<unsigned> KernelGraph::addLeaf(Value value, const StridedView &view, bool foreign) {
  Node node;
  node.value = value;
  node.view = view;
  node.foreign = foreign;
  for (AffineExpr size : view.sizes)
    node.dims.push_back({factors.create(size, foreign)});
  nodes.push_back(node);
  return nodes.size() - 1;
}

std::optional<unsigned> KernelGraph::addOperand(Value value, bool fromMemory) {
  Operation *def = value.getDefiningOp();
  if (def && memberSet.contains(def)) {
    if (fromMemory)
      return std::nullopt;
    auto it = memberNodes.find(def);
    return it == memberNodes.end() ? std::nullopt : std::optional(it->second);
  }
  bool isInput = !def || isMaterialised(def) || getRole(def) != OpRole::Free;
  auto reshape = dyn_cast_or_null<ReshapeOp>(def);
  if (isInput || fromMemory || isa<SliceOp>(def) || (reshape && !hasCommonFactors(reshape))) {
    std::optional<StridedView> view = traceView(value);
    if (!view)
      return std::nullopt;
    if (Operation *base = view->base.getDefiningOp(); base && memberSet.contains(base))
      return std::nullopt;
    return addLeaf(value, *view, fromMemory);
  }
  // A free op: a node of its own for each use.
  Node node;
  node.op = def;
  node.value = value;
  for (Value operand : def->getOperands()) {
    std::optional<unsigned> index = addOperand(operand, false);
    if (!index) {
      if (toMaterialise.empty())
        toMaterialise.push_back(def);
      return std::nullopt;
    }
    node.operands.push_back(*index);
  }
  if (!relate(node)) {
    toMaterialise.push_back(def);
    return std::nullopt;
  }
  nodes.push_back(node);
  return nodes.size() - 1;
}

std::optional<unsigned> KernelGraph::addMember(Operation *op) {
  Node node;
  node.op = op;
  node.value = getKernelValue(op);
  OpRole role = getRole(op);
  if (auto reshape = dyn_cast<ReshapeOp>(op); isa<SliceOp>(op) || (reshape && !hasCommonFactors(reshape)))
    return addCopy(op);
  for (Value operand : op->getOperands()) {
    // The indices of a gather are computed in the kernel, all else that a reader reads is in memory.
    bool fromMemory = role == OpRole::Reader || isa<ConvolutionOp>(op);
    if (auto gather = dyn_cast<GatherOp>(op))
      fromMemory = operand == gather.getOperand();
    if (auto scatter = dyn_cast<ScatterOp>(op); scatter && scatter.getInPlace())
      fromMemory = operand == scatter.getOperand();
    if (auto pad = dyn_cast<PadOp>(op))
      fromMemory = operand != pad.getValue();
    bool maybeComputed = isOnlineProduct(op) || (isScores(op) && operand == op->getOperand(0));
    if (role == OpRole::Contraction && !fromMemory && !maybeComputed)
      if (Operation *def = operand.getDefiningOp())
        for (Operation *source = def; source;
             source = source->getNumOperands() ? source->getOperand(0).getDefiningOp() : nullptr) {
          if (memberSet.contains(source))
            return std::nullopt;
          if (!isa<BroadcastOp, TransposeOp, ReshapeOp, SliceOp>(source) || isMaterialised(source)) {
            if (getRole(source) == OpRole::Free && !isMaterialised(source)) {
              toMaterialise.push_back(source);
              return std::nullopt;
            }
            break;
          }
        }
    std::optional<unsigned> index = addOperand(operand, fromMemory);
    if (!index)
      return std::nullopt;
    node.operands.push_back(*index);
  }
  if (!relate(node)) {
    // A free operand that does not fit becomes a value in memory; then the op can be had alone.
    if (memberSet.size() == 1)
      for (Value operand : op->getOperands())
        if (Operation *def = operand.getDefiningOp(); def && !isMaterialised(def) && getRole(def) == OpRole::Free)
          toMaterialise.push_back(def);
    return std::nullopt;
  }
  nodes.push_back(node);
  memberNodes[op] = nodes.size() - 1;
  return nodes.size() - 1;
}

/// Gives the node's value its dimensions, and makes equal what the op says is equal.
bool KernelGraph::relate(Node &node) {
  Exprs shape(sizes.getSizes(node.value));
  bool rigid = getRole(node.op) == OpRole::Reader || isa<ConvolutionOp>(node.op);
  if (auto constant = dyn_cast<ConstantOp>(node.op))
    rigid = !isa<SplatElementsAttr>(constant.getValue());
  auto operandDims = [&](unsigned i) -> ArrayRef<Factors::List> { return nodes[node.operands[i]].dims; };
  for (unsigned i = 0; i < shape.size(); ++i) {
    bool rigidDim = rigid;
    if (auto iota = dyn_cast<IotaOp>(node.op))
      rigidDim = iota.getDim() == i;
    // The dimensions of the indices may have any form.
    if (auto gather = dyn_cast<GatherOp>(node.op))
      rigidDim = i >= static_cast<unsigned>(cast<RankedTensorType>(gather.getIndices().front().getType()).getRank());
    node.dims.push_back({factors.create(shape[i], rigidDim)});
  }
  auto concatenated = [](ArrayRef<Factors::List> dims) {
    Factors::List all;
    for (const Factors::List &dim : dims)
      all.append(dim.begin(), dim.end());
    return all;
  };
  if (node.op->hasTrait<OpTrait::Elementwise>()) {
    for (unsigned k = 0; k < node.operands.size(); ++k)
      for (unsigned i = 0; i < shape.size(); ++i)
        if (!factors.unifyDims(node.dims[i], operandDims(k)[i]))
          return false;
    return true;
  }
  return TypeSwitch<Operation *, bool>(node.op)
      .Case([&](BroadcastOp op) {
        for (auto [k, dim] : llvm::enumerate(op.getDims()))
          if (!factors.unifyDims(node.dims[dim], operandDims(0)[k]))
            return false;
        return true;
      })
      .Case([&](TransposeOp op) {
        for (auto [k, dim] : llvm::enumerate(op.getPermutation()))
          if (!factors.unifyDims(node.dims[k], operandDims(0)[dim]))
            return false;
        return true;
      })
      .Case([&](ReshapeOp op) { return factors.unify(concatenated(node.dims), concatenated(operandDims(0))); })
      .Case([&](ReduceOp op) {
        unsigned result = 0;
        for (unsigned i = 0; i < operandDims(0).size(); ++i) {
          if (llvm::is_contained(op.getDims(), static_cast<int64_t>(i)))
            factors.block(operandDims(0)[i]);
          else if (!factors.unifyDims(node.dims[result++], operandDims(0)[i]))
            return false;
        }
        return true;
      })
      .Case([&](DotGeneralOp op) {
        auto lhs = operandDims(0), rhs = operandDims(1);
        unsigned result = 0;
        for (auto [i, j] : llvm::zip(op.getLhsBatch(), op.getRhsBatch()))
          if (!factors.unifyDims(lhs[i], rhs[j]) || !factors.unifyDims(node.dims[result++], lhs[i]))
            return false;
        auto free = [&](ArrayRef<Factors::List> dims, ArrayRef<int64_t> batch, ArrayRef<int64_t> contract) {
          for (unsigned i = 0; i < dims.size(); ++i)
            if (!llvm::is_contained(batch, static_cast<int64_t>(i)) &&
                !llvm::is_contained(contract, static_cast<int64_t>(i)))
              if (!factors.unifyDims(node.dims[result++], dims[i]))
                return false;
          return true;
        };
        if (!free(lhs, op.getLhsBatch(), op.getLhsContract()) || !free(rhs, op.getRhsBatch(), op.getRhsContract()))
          return false;
        for (auto [i, j] : llvm::zip(op.getLhsContract(), op.getRhsContract())) {
          if (!factors.unifyDims(lhs[i], rhs[j]))
            return false;
          factors.block(lhs[i]);
        }
        return true;
      })
      .Case([&](GatherOp op) {
        // The leading dimensions are those of the indices.
        for (unsigned k = 1; k < node.operands.size(); ++k)
          for (unsigned i = 0; i < operandDims(k).size(); ++i)
            if (!factors.unifyDims(node.dims[i], operandDims(k)[i]))
              return false;
        return true;
      })
      .Case([&](ScanOp op) {
        factors.block(node.dims[op.getDim()]);
        return true;
      })
      .Case([&](SortOp op) {
        factors.block(node.dims[op.getDim()]);
        return true;
      })
      .Case([&](ScatterOp op) {
        // Updates may meet anywhere.
        for (const Factors::List &dim : node.dims)
          factors.block(dim);
        if (!op.getInPlace())
          return true;
        // Programs share the updates, whose leading dimensions are those of the indices.
        unsigned batch = cast<RankedTensorType>(op.getIndices().front().getType()).getRank();
        auto updates = operandDims(1);
        for (unsigned k = 2; k < node.operands.size(); ++k)
          for (unsigned i = 0; i < batch; ++i)
            if (!factors.unifyDims(updates[i], operandDims(k)[i]))
              return false;
        for (unsigned i = batch; i < updates.size(); ++i) {
          AffineExpr size = sizes.getSizes(op.getUpdates())[i];
          if (!factors.unifyDims(updates[i], {factors.create(size, /*rigid=*/true)}))
            return false;
        }
        return true;
      })
      .Default([](Operation *) { return true; });
}

Factors::List KernelGraph::leaves(const Node &node) const {
  Factors::List list;
  for (const Factors::List &dim : node.dims)
    for (unsigned leaf : factors.leaves(dim))
      if (!factors.isOne(leaf) || factors.isRigid(leaf))
        list.push_back(leaf);
  return list;
}

SmallVector<unsigned> KernelGraph::gridFactors(ArrayRef<unsigned> outputNodes) const {
  SmallVector<unsigned> grid;
  if (outputNodes.empty())
    return grid;
  // Programs share the updates of a scatter in place, not its elements.
  auto leavesOf = [&](unsigned i) {
    auto scatter = dyn_cast_or_null<ScatterOp>(nodes[i].op);
    return leaves(scatter && scatter.getInPlace() ? nodes[nodes[i].operands[1]] : nodes[i]);
  };
  for (unsigned leaf : leavesOf(outputNodes.front())) {
    bool everywhere = llvm::all_of(outputNodes, [&](unsigned i) { return llvm::is_contained(leavesOf(i), leaf); });
    if (everywhere && !factors.isBlocked(leaf))
      grid.push_back(leaf);
  }
  return grid;
}
