// PackConstants: constant operands of contractions, laid out once as register kernels read them.
#include "lib/Transforms/Fusion/PackConstants.h"
#include "dialects/Prim/Prim.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace lamina;
using namespace lamina::prim;

static std::optional<int64_t> getConstant(AffineExpr expr) {
  auto constant = dyn_cast<AffineConstantExpr>(expr);
  return constant ? std::optional(constant.getValue()) : std::nullopt;
}

/// The memory node that `node` only permutes, or nullopt.
static std::optional<unsigned> findSource(const KernelGraph &graph, unsigned node) {
  while (graph.nodes[node].op) {
    if (!isa<TransposeOp, ReshapeOp>(graph.nodes[node].op))
      return std::nullopt;
    node = graph.nodes[node].operands[0];
  }
  return node;
}

/// Computes in @init what `value` is in @main: a constant argument under ops that read through it.
static Value copyToInit(Value value, InitFunction &init, IRMapping &mapping) {
  if (Value known = mapping.lookupOrNull(value))
    return known;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    mapping.map(value, init.valueOf(argument));
    return mapping.lookup(value);
  }
  for (Value operand : value.getDefiningOp()->getOperands())
    copyToInit(operand, init, mapping);
  OpBuilder builder = init.builder();
  builder.clone(*value.getDefiningOp(), mapping);
  return mapping.lookup(value);
}

void lamina::packConstants(KernelGraph &graph, ArrayRef<int64_t> panelWidths, InitFunction &init) {
  auto it = llvm::find_if(graph.memberNodes, [](auto &entry) { return isa<DotGeneralOp>(entry.first); });
  if (it == graph.memberNodes.end())
    return;
  auto dot = cast<DotGeneralOp>(it->first);
  unsigned rhs = graph.nodes[it->second].operands[1];
  std::optional<unsigned> source = findSource(graph, rhs);
  if (!source || !dot.getRhsBatch().empty() || !InitFunction::isConstantArgument(graph.nodes[*source].view->base))
    return;
  // Innermost columns, and whether all sizes are static.
  Factors &factors = graph.factors;
  unsigned inner = 0;
  bool found = false;
  for (unsigned leaf : graph.leaves(graph.nodes[rhs])) {
    if (!getConstant(factors.size(leaf)))
      return;
    if (!factors.isBlocked(leaf)) {
      inner = leaf;
      found = true;
    }
  }
  if (!found || factors.isRigid(inner))
    return;
  int64_t columns = *getConstant(factors.size(inner));
  auto *width = llvm::find_if(panelWidths, [&](int64_t w) { return columns % w == 0; });
  if (width == panelWidths.end())
    return;
  MLIRContext *context = dot.getContext();
  if (columns != *width) {
    Factors::List parts{factors.create(getAffineConstantExpr(columns / *width, context)),
                        factors.create(getAffineConstantExpr(*width, context))};
    if (!factors.unify({inner}, parts))
      return;
    inner = factors.leaves({inner}).back();
  }

  // The order in memory: other columns, rows, the panel's columns.
  Factors::List leaves = graph.leaves(graph.nodes[*source]), packed;
  for (unsigned leaf : leaves)
    if (!factors.isBlocked(leaf) && leaf != inner)
      packed.push_back(leaf);
  for (unsigned leaf : leaves)
    if (factors.isBlocked(leaf))
      packed.push_back(leaf);
  packed.push_back(inner);

  Value value = graph.nodes[*source].value;
  Type element = cast<RankedTensorType>(value.getType()).getElementType();
  IRMapping mapping;
  Value original = copyToInit(value, init, mapping);
  OpBuilder builder = init.builder();
  Exprs sizes, packedSizes;
  SmallVector<int64_t> permutation;
  for (unsigned leaf : leaves)
    sizes.push_back(factors.size(leaf));
  for (unsigned leaf : packed) {
    packedSizes.push_back(factors.size(leaf));
    permutation.push_back(llvm::find(leaves, leaf) - leaves.begin());
  }
  Value split = ReshapeOp::create(builder, value.getLoc(), getTensorType(sizes, element), original, AffineMapAttr());
  Value panels = TransposeOp::create(builder, value.getLoc(), getTensorType(packedSizes, element), split, permutation);
  BlockArgument argument = init.addResult(panels);

  KernelGraph::Node memory;
  memory.value = argument;
  memory.view =
      StridedView{argument, getAffineConstantExpr(0, context), packedSizes, getRowMajorStrides(packedSizes, context)};
  for (unsigned leaf : packed)
    memory.dims.push_back({leaf});
  graph.nodes.push_back(memory);
  graph.nodes[*source].view.reset();
  graph.nodes[*source].operands = {static_cast<unsigned>(graph.nodes.size() - 1)};
}
