// Outline: from a group of ops to a kernel.func and the launch of it.
#include "lib/Transforms/Fusion/Outline.h"
#include "dialects/Prim/Prim.h"
#include "lib/Transforms/Fusion/Online.h"
#include "lib/Transforms/Fusion/SortedValues.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace lamina;
using namespace lamina::prim;

KernelTable::KernelTable(ModuleOp module) : symbols(module) {}

kernel::FuncOp KernelTable::unique(kernel::FuncOp func, StringRef name) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  func->print(stream, OpPrintingFlags().useLocalScope().printGenericOpForm());
  auto [it, isNew] = kernels.try_emplace(text, func);
  if (!isNew) {
    func->erase();
    return it->second;
  }
  func.setName(name);
  symbols.insert(func);
  return func;
}

namespace {

/// Numbers the host's symbols as the kernel meets them.
class SymbolNumbers {
public:
  explicit SymbolNumbers(MLIRContext *context) : context(context) {}

  AffineExpr map(AffineExpr expr) {
    expr.walk([&](AffineExpr e) {
      if (auto symbol = dyn_cast<AffineSymbolExpr>(e))
        number(symbol.getPosition());
    });
    return expr.replaceSymbols(replacements);
  }
  Exprs map(ArrayRef<AffineExpr> exprs) {
    Exprs out;
    for (AffineExpr expr : exprs)
      out.push_back(map(expr));
    return out;
  }
  AffineMapAttr map(AffineMapAttr attr) { return getExprs(context, map(attr.getValue().getResults())); }
  AffineMapAttr hostSymbols() const { return getExprs(context, host); }

private:
  void number(unsigned symbol) {
    for (unsigned i = replacements.size(); i <= symbol; ++i)
      replacements.push_back(getAffineSymbolExpr(i, context));
    if (!seen.insert(symbol).second)
      return;
    replacements[symbol] = getAffineSymbolExpr(host.size(), context);
    host.push_back(getAffineSymbolExpr(symbol, context));
  }

  MLIRContext *context;
  SmallVector<AffineExpr> replacements;
  llvm::SmallSet<unsigned, 4> seen;
  Exprs host;
};

/// Merges factors that always stand side by side.
class Coalescing {
public:
  explicit Coalescing(const KernelGraph &graph) : graph(graph) {
    for (const KernelGraph::Node &node : graph.nodes)
      if (!node.foreign)
        lists.push_back({graph.leaves(node), &node});
    for (bool changed = true; changed;) {
      changed = false;
      for (auto &[list, node] : lists)
        for (unsigned i = 0; i + 1 < list.size() && !changed; ++i)
          changed = tryMerge(list[i], list[i + 1]);
    }
  }

  /// The merged factors of a node's value.
  Factors::List dims(const KernelGraph::Node &node) const {
    Factors::List out;
    for (unsigned leaf : graph.leaves(node))
      if (unsigned root = find(leaf); out.empty() || out.back() != root)
        out.push_back(root);
    return out;
  }
  AffineExpr size(unsigned root) const {
    auto it = sizes.find(root);
    return it == sizes.end() ? graph.factors.size(root) : it->second;
  }
  unsigned find(unsigned leaf) const {
    auto it = parent.find(leaf);
    return it == parent.end() ? leaf : find(it->second);
  }

private:
  bool tryMerge(unsigned a, unsigned b) {
    if (graph.factors.isRigid(a) || graph.factors.isRigid(b))
      return false;
    for (auto &[list, node] : lists) {
      auto *it = llvm::find(list, a);
      bool hasB = llvm::is_contained(list, b);
      if ((it != list.end()) != hasB)
        return false;
      if (it == list.end())
        continue;
      if (it + 1 == list.end() || *(it + 1) != b)
        return false;
      if (node->view && !isDense(*node, a, b))
        return false;
    }
    // The merged factor takes a's name.
    AffineExpr merged = simplifySize(size(a) * size(b));
    parent[b] = a;
    sizes[a] = merged;
    for (auto &[list, node] : lists)
      if (auto *it = llvm::find(list, b); it != list.end())
        list.erase(it);
    return true;
  }

  /// Whether in memory b's elements follow each other where a steps.
  bool isDense(const KernelGraph::Node &node, unsigned a, unsigned b) const {
    Exprs strides = leafStrides(node);
    AffineExpr strideA, strideB;
    Factors::List leaves = graph.leaves(node);
    for (auto [leaf, stride] : llvm::zip(leaves, strides)) {
      if (find(leaf) == a)
        strideA = stride;
      if (find(leaf) == b)
        strideB = stride;
    }
    return simplifySize(strideB * size(b)) == strideA;
  }

public:
  /// Strides in memory of each unsplit factor of a node that is read from there.
  Exprs leafStrides(const KernelGraph::Node &node) const {
    Exprs out;
    for (auto [dim, stride] : llvm::zip(node.dims, node.view->strides)) {
      Factors::List leaves = graph.factors.leaves(dim);
      Exprs strides(leaves.size());
      AffineExpr next = stride;
      for (int64_t i = leaves.size() - 1; i >= 0; --i) {
        strides[i] = next;
        next = simplifySize(next * graph.factors.size(leaves[i]));
      }
      for (auto [leaf, leafStride] : llvm::zip(leaves, strides))
        if (!graph.factors.isOne(leaf) || graph.factors.isRigid(leaf))
          out.push_back(leafStride);
    }
    return out;
  }

private:
  const KernelGraph &graph;
  std::vector<std::pair<Factors::List, const KernelGraph::Node *>> lists;
  DenseMap<unsigned, unsigned> parent;
  DenseMap<unsigned, AffineExpr> sizes;
};

/// What a kernel argument is on the host.
struct Argument {
  Value base;
  AffineExpr offset;
  Exprs sizes, strides;
  bool operator==(const Argument &other) const {
    return base == other.base && offset == other.offset && sizes == other.sizes && strides == other.strides;
  }
};

class Outliner {
public:
  Outliner(KernelGraph &graph, SizeAnalysis &sizes, OpBuilder &host)
      : graph(graph), merged(graph), sizes(sizes), host(host), context(host.getContext()), symbols(context) {}

  void run(ArrayRef<Operation *> members, ArrayRef<Operation *> outputs, DenseMap<Value, Value> &hostValues,
           KernelTable &table);

private:
  Exprs sizesOf(const KernelGraph::Node &node) const {
    if (node.foreign)
      return node.view->sizes;
    Exprs out;
    for (unsigned dim : merged.dims(node))
      out.push_back(merged.size(dim));
    return out;
  }
  RankedTensorType typeOf(const KernelGraph::Node &node) const {
    return getTensorType(sizesOf(node), cast<RankedTensorType>(node.value.getType()).getElementType());
  }
  Argument argumentOf(const KernelGraph::Node &node) const;
  Value emit(unsigned index);
  Value emitTranspose(const KernelGraph::Node &node, Value operand, Location loc);
  Value emitOp(const KernelGraph::Node &node, ValueRange operands);
  AffineMapAttr sizesAttr(const KernelGraph::Node &node) {
    return typeOf(node).hasStaticShape() ? AffineMapAttr() : symbols.map(getExprs(context, sizesOf(node)));
  }
  /// Positions in `list` of the merged factors of dimensions `dims` of a node.
  SmallVector<int64_t> positions(const KernelGraph::Node &node, ArrayRef<int64_t> dims) const;

  KernelGraph &graph;
  Coalescing merged;
  SizeAnalysis &sizes;
  OpBuilder &host;
  MLIRContext *context;
  SymbolNumbers symbols;
  OpBuilder body{host.getContext()};
  std::vector<Argument> arguments;
  SmallVector<Value> values; // of the nodes, in the kernel
};

Argument Outliner::argumentOf(const KernelGraph::Node &node) const {
  const StridedView &view = *node.view;
  if (node.foreign)
    return {view.base, view.offset, view.sizes, view.strides};
  Argument argument{view.base, view.offset, sizesOf(node), {}};
  // The stride of a merged factor is that of its innermost part.
  Factors::List leaves = graph.leaves(node);
  Exprs strides = merged.leafStrides(node);
  for (unsigned dim : merged.dims(node)) {
    AffineExpr last;
    for (auto [leaf, stride] : llvm::zip(leaves, strides))
      if (merged.find(leaf) == dim)
        last = stride;
    argument.strides.push_back(last);
  }
  return argument;
}

SmallVector<int64_t> Outliner::positions(const KernelGraph::Node &node, ArrayRef<int64_t> dims) const {
  Factors::List list = merged.dims(node);
  SmallVector<int64_t> out;
  for (int64_t dim : dims)
    for (unsigned leaf : graph.factors.leaves(node.dims[dim]))
      if (!graph.factors.isOne(leaf) || graph.factors.isRigid(leaf)) {
        int64_t at = llvm::find(list, merged.find(leaf)) - list.begin();
        if (!llvm::is_contained(out, at))
          out.push_back(at);
      }
  return out;
}

Value Outliner::emitOp(const KernelGraph::Node &node, ValueRange operands) {
  Operation *op = node.op;
  RankedTensorType type = typeOf(node);
  Location loc = op->getLoc();
  auto operandDims = [&](unsigned i) { return merged.dims(graph.nodes[node.operands[i]]); };
  auto operandNode = [&](unsigned i) -> const KernelGraph::Node & { return graph.nodes[node.operands[i]]; };
  auto clone = [&]() -> Value {
    OperationState state(loc, op->getName(), operands, TypeRange{type}, op->getAttrs());
    Operation *copy = body.create(state);
    for (NamedAttribute attr : op->getAttrs())
      if (auto exprs = dyn_cast<AffineMapAttr>(attr.getValue()))
        copy->setAttr(attr.getName(), symbols.map(exprs));
    return copy->getResult(0);
  };
  Factors::List list = merged.dims(node);
  return TypeSwitch<Operation *, Value>(op)
      .Case([&](ConstantOp constant) -> Value {
        auto value = cast<DenseElementsAttr>(constant.getValue());
        return ConstantOp::create(body, loc, type, value.isSplat() ? value.resizeSplat(type) : value.reshape(type));
      })
      .Case([&](IotaOp iota) -> Value {
        SmallVector<int64_t> at = positions(node, {static_cast<int64_t>(iota.getDim())});
        return IotaOp::create(body, loc, type, body.getI64IntegerAttr(at.front()), sizesAttr(node));
      })
      // A reshape adds dimensions of size 1 at most.
      .Case<BroadcastOp, ReshapeOp>([&](auto) -> Value {
        Factors::List from = operandDims(0);
        if (from == list)
          return operands[0];
        SmallVector<int64_t> dims;
        for (unsigned dim : from)
          dims.push_back(llvm::find(list, dim) - list.begin());
        return BroadcastOp::create(body, loc, type, operands[0], body.getDenseI64ArrayAttr(dims), sizesAttr(node));
      })
      .Case([&](TransposeOp) -> Value { return emitTranspose(node, operands[0], loc); })
      .Case([&](ReduceOp reduce) -> Value {
        SmallVector<int64_t> dims = positions(operandNode(0), reduce.getDims());
        return ReduceOp::create(body, loc, type, operands[0], reduce.getCombinerAttr(),
                                body.getDenseI64ArrayAttr(dims));
      })
      .Case([&](DotGeneralOp dot) -> Value {
        auto at = [&](unsigned i, ArrayRef<int64_t> dims) {
          return body.getDenseI64ArrayAttr(positions(operandNode(i), dims));
        };
        return DotGeneralOp::create(body, loc, type, operands[0], operands[1], at(0, dot.getLhsBatch()),
                                    at(1, dot.getRhsBatch()), at(0, dot.getLhsContract()), at(1, dot.getRhsContract()),
                                    dot.getTf32Attr());
      })
      .Case([&](SortOp sort) -> Value {
        Type values = type.clone(sort.getValues().getType().getElementType());
        return SortOp::create(body, loc, TypeRange{values, type}, operands[0], sort.getDimAttr(),
                              sort.getDescendingAttr())
            .getIndices();
      })
      .Default([&](Operation *) -> Value { return clone(); });
}

Value Outliner::emitTranspose(const KernelGraph::Node &node, Value operand, Location loc) {
  Factors::List from = merged.dims(graph.nodes[node.operands[0]]), to = merged.dims(node);
  if (from == to)
    return operand;
  SmallVector<int64_t> permutation;
  for (unsigned dim : to)
    permutation.push_back(llvm::find(from, dim) - from.begin());
  return TransposeOp::create(body, loc, typeOf(node), operand, permutation);
}

Value Outliner::emit(unsigned index) {
  if (values[index])
    return values[index];
  const KernelGraph::Node &node = graph.nodes[index];
  SmallVector<Value> operands;
  for (unsigned operand : node.operands)
    operands.push_back(emit(operand));
  return values[index] = node.op ? emitOp(node, operands) : emitTranspose(node, operands[0], node.value.getLoc());
}

/// A C identifier that says what the kernel does: its first few telling ops.
std::string nameKernel(ArrayRef<Operation *> members) {
  std::string name = "k";
  unsigned count = 0;
  StringRef last;
  for (Operation *op : members) {
    StringRef mnemonic = op->getName().stripDialect();
    if (getRole(op) == OpRole::Free || mnemonic == last || mnemonic == "convert")
      continue;
    last = mnemonic;
    if (auto reduce = dyn_cast<ReduceOp>(op))
      name += ("_" + stringifyCombiner(reduce.getCombiner())).str();
    else
      name += ("_" + mnemonic).str();
    if (++count == 5)
      break;
  }
  return count ? name : "k_copy";
}

void Outliner::run(ArrayRef<Operation *> members, ArrayRef<Operation *> outputs, DenseMap<Value, Value> &hostValues,
                   KernelTable &table) {
  // Arguments: equal views are passed once.
  SmallVector<unsigned> argumentOfNode(graph.nodes.size());
  for (auto [i, node] : llvm::enumerate(graph.nodes)) {
    if (!node.view)
      continue;
    Argument argument = argumentOf(node);
    auto it = llvm::find(arguments, argument);
    argumentOfNode[i] = it - arguments.begin();
    if (it == arguments.end())
      arguments.push_back(argument);
  }
  auto elementType = [](Value value) { return cast<RankedTensorType>(value.getType()).getElementType(); };
  SmallVector<Type> types;
  std::vector<SmallVector<NamedAttribute>> attrs;
  auto addType = [&](ArrayRef<AffineExpr> shape, ArrayRef<AffineExpr> strides, Type element) {
    RankedTensorType type = getTensorType(shape, element);
    types.push_back(type);
    attrs.emplace_back();
    SmallVector<NamedAttribute> &list = attrs.back();
    if (!type.hasStaticShape())
      list.push_back(host.getNamedAttr("prim.sizes", symbols.map(getExprs(context, shape))));
    if (!strides.empty() && getRowMajorStrides(shape, context) != Exprs(strides))
      list.push_back(host.getNamedAttr("kernel.strides", symbols.map(getExprs(context, strides))));
  };
  for (const Argument &argument : arguments)
    addType(argument.sizes, argument.strides, elementType(argument.base));
  SmallVector<unsigned> outputNodes;
  for (Operation *op : outputs) {
    outputNodes.push_back(graph.memberNodes.lookup(op));
    addType(sizesOf(graph.nodes[outputNodes.back()]), {}, elementType(getKernelValue(op)));
  }

  SmallVector<Location> locs;
  for (Operation *op : members)
    locs.push_back(op->getLoc());
  Location loc = host.getFusedLoc(locs);
  OpBuilder detached(context);
  auto func = kernel::FuncOp::create(detached, loc, "kernel", detached.getFunctionType(types, {}), outputs.size());
  SmallVector<Attribute> argAttrs;
  for (auto &list : attrs)
    argAttrs.push_back(DictionaryAttr::get(context, list));
  func.setAllArgAttrs(argAttrs);
  if (llvm::any_of(members, isOnlineProduct) && llvm::count_if(members, isOnline) >= 3)
    markOnline(func);
  SmallVector<int64_t> inPlace;
  for (unsigned node : outputNodes) {
    auto scatter = dyn_cast_or_null<ScatterOp>(graph.nodes[node].op);
    bool isInPlace = scatter && scatter.getInPlace();
    inPlace.push_back(isInPlace ? static_cast<int64_t>(argumentOfNode[graph.nodes[node].operands[0]]) : -1);
  }
  if (llvm::any_of(inPlace, [](int64_t input) { return input >= 0; }))
    func->setAttr("kernel.in_place", detached.getDenseI64ArrayAttr(inPlace));
  Block *block = new Block;
  func.getBody().push_back(block);
  for (Type type : types)
    block->addArgument(type, loc);
  body.setInsertionPointToStart(block);
  values.resize(graph.nodes.size());
  for (auto [i, node] : llvm::enumerate(graph.nodes))
    if (node.view)
      values[i] = block->getArgument(argumentOfNode[i]);
  for (unsigned i = 0; i < graph.nodes.size(); ++i)
    emit(i);
  SmallVector<Value> results;
  for (unsigned node : outputNodes)
    results.push_back(values[node]);
  kernel::ReturnOp::create(body, loc, results);
  func = table.unique(func, nameKernel(members));

  // The host's side.
  SmallVector<Value> ins;
  for (const Argument &argument : arguments) {
    Value base = hostValues.lookup(argument.base);
    RankedTensorType type = getTensorType(argument.sizes, elementType(base));
    Exprs dense = getRowMajorStrides(argument.sizes, context);
    auto zero = dyn_cast<AffineConstantExpr>(argument.offset);
    if (base.getType() != type || argument.strides != dense || !zero || zero.getValue())
      base = kernel::ViewOp::create(host, loc, type, base, getExprs(context, {argument.offset}),
                                    getExprs(context, argument.sizes), getExprs(context, argument.strides));
    ins.push_back(base);
  }
  SmallVector<Type> resultTypes(types.begin() + arguments.size(), types.end());
  auto launch = kernel::LaunchOp::create(host, loc, resultTypes, FlatSymbolRefAttr::get(func.getNameAttr()),
                                         symbols.hostSymbols(), ins, ValueRange());
  for (auto [op, result] : llvm::zip(outputs, launch.getResults())) {
    Value value = result, made = getKernelValue(op);
    if (value.getType() != made.getType()) {
      Exprs shape(sizes.getSizes(made));
      value = kernel::ViewOp::create(host, loc, made.getType(), value, getExprs(context, ArrayRef<int64_t>{0}),
                                     getExprs(context, shape), getExprs(context, getRowMajorStrides(shape, context)));
    }
    hostValues[made] = value;
  }
}

} // namespace

void lamina::outlineKernel(KernelGraph &graph, ArrayRef<Operation *> members, ArrayRef<Operation *> outputs,
                           SizeAnalysis &sizes, OpBuilder &builder, DenseMap<Value, Value> &hostValues,
                           KernelTable &table) {
  Outliner(graph, sizes, builder).run(members, outputs, hostValues, table);
}
