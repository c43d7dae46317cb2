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
  mapping.map(value, init.unique(builder.clone(*value.getDefiningOp(), mapping)));
  return mapping.lookup(value);
}

/// The inner one of the two parts into which `leaf` is split.
static std::optional<unsigned> split(Factors &factors, unsigned leaf, int64_t inner) {
  MLIRContext *context = factors.size(leaf).getContext();
  int64_t size = *getConstant(factors.size(leaf));
  if (size == inner)
    return leaf;
  Factors::List parts{factors.create(getAffineConstantExpr(size / inner, context)),
                      factors.create(getAffineConstantExpr(inner, context))};
  if (!factors.unify({leaf}, parts))
    return std::nullopt;
  return factors.leaves({leaf}).back();
}

/// With so many rows vectors gain nothing from panels that are there already: packing them at each call is a small part
/// of the product, and a second copy of the constant is saved.
static constexpr int64_t kManyRows = 96;

static bool hasManyRows(const KernelGraph &graph, unsigned lhs) {
  int64_t rows = 1;
  for (unsigned leaf : graph.leaves(graph.nodes[lhs]))
    if (!graph.factors.isBlocked(leaf)) {
      std::optional<int64_t> size = getConstant(graph.factors.size(leaf));
      if (!size)
        return false;
      rows *= *size;
    }
  return rows >= kManyRows;
}

/// The matrix unit takes this many rows at a time.
static constexpr int64_t kTileDepth = 32;

void lamina::packConstants(KernelGraph &graph, const PanelOptions &options, InitFunction &init) {
  auto it = llvm::find_if(graph.memberNodes, [](auto &entry) { return isa<DotGeneralOp>(entry.first); });
  if (it == graph.memberNodes.end())
    return;
  auto dot = cast<DotGeneralOp>(it->first);
  unsigned rhs = graph.nodes[it->second].operands[1];
  std::optional<unsigned> source = findSource(graph, rhs);
  if (!source || !dot.getRhsBatch().empty() || !InitFunction::isConstantArgument(graph.nodes[*source].view->base))
    return;
  // Innermost columns and rows, and whether all sizes are static.
  Factors &factors = graph.factors;
  std::optional<unsigned> inner, row;
  for (unsigned leaf : graph.leaves(graph.nodes[rhs])) {
    if (!getConstant(factors.size(leaf)))
      return;
    (factors.isBlocked(leaf) ? row : inner) = leaf;
  }
  if (!inner || factors.isRigid(*inner))
    return;
  auto findWidth = [&](ArrayRef<int64_t> widths) {
    auto *width = llvm::find_if(widths, [&](int64_t w) { return *getConstant(factors.size(*inner)) % w == 0; });
    return width == widths.end() ? std::nullopt : std::optional(*width);
  };
  auto isBF16 = [](Value value) { return cast<RankedTensorType>(value.getType()).getElementType().isBF16(); };
  std::optional<int64_t> width;
  std::optional<unsigned> pair;
  if (isBF16(dot.getLhs()) && isBF16(dot.getRhs()) && row && !factors.isRigid(*row) &&
      *getConstant(factors.size(*row)) % kTileDepth == 0 && (width = findWidth(options.tileWidths))) {
    pair = split(factors, *row, 2);
    if (!pair)
      return;
  }
  if (!width && (hasManyRows(graph, graph.nodes[it->second].operands[0]) || !(width = findWidth(options.widths))))
    return;
  inner = split(factors, *inner, *width);
  if (!inner)
    return;

  // The order in memory: other columns, rows, the panel's columns, the rows of a pair.
  Factors::List leaves = graph.leaves(graph.nodes[*source]), packed;
  for (unsigned leaf : leaves)
    if (!factors.isBlocked(leaf) && leaf != *inner)
      packed.push_back(leaf);
  for (unsigned leaf : leaves)
    if (factors.isBlocked(leaf) && leaf != pair)
      packed.push_back(leaf);
  packed.push_back(*inner);
  if (pair)
    packed.push_back(*pair);

  MLIRContext *context = dot.getContext();
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
  Value split =
      init.unique(ReshapeOp::create(builder, value.getLoc(), getTensorType(sizes, element), original, AffineMapAttr()));
  Value panels = init.unique(
      TransposeOp::create(builder, value.getLoc(), getTensorType(packedSizes, element), split, permutation));
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
