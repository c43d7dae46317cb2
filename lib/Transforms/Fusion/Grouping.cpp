// Grouping: which ops of a function share a kernel.
#include "lib/Transforms/Fusion/Grouping.h"
#include "dialects/Prim/Prim.h"
#include "lib/Transforms/Fusion/Online.h"

using namespace mlir;
using namespace lamina;
using namespace lamina::prim;

/// A kernel beyond this many ops gains nothing and costs compile time.
static constexpr unsigned kMaxMembers = 64;
/// Elements that a program walks in the time that a launch costs.
static constexpr double kLaunchElements = 1 << 14;

Grouping::Grouping(FunctionOpInterface func, SizeAnalysis &sizes, FusionOptions options)
    : func(func), sizes(sizes), options(options) {
  unsigned next = 0;
  for (Operation &op : func.getFunctionBody().front())
    position[&op] = next++;
}

KernelGraph Grouping::makeGraph(ArrayRef<Operation *> members) const {
  return KernelGraph(members, sizes, [&](Operation *op) { return groupOf.contains(op); });
}

KernelGraph Grouping::makeGraph(const Group &group) const {
  return KernelGraph(group.members, sizes, [&](Operation *op) {
    auto it = memberSince.find(op);
    return it != memberSince.end() && it->second <= group.age;
  });
}

int64_t Grouping::estimate(AffineExpr size) const {
  if (hasUnknownSize(size))
    return options.sizeHint;
  unsigned symbols = 0;
  size.walk([&](AffineExpr e) {
    if (auto symbol = dyn_cast<AffineSymbolExpr>(e))
      symbols = std::max(symbols, symbol.getPosition() + 1);
  });
  SmallVector<AffineExpr> hints(symbols, getAffineConstantExpr(options.sizeHint, size.getContext()));
  auto constant = dyn_cast<AffineConstantExpr>(size.replaceSymbols(hints));
  return constant ? constant.getValue() : options.sizeHint;
}

bool Grouping::isReadOutside(Operation *op, ArrayRef<Operation *> members) const {
  SmallVector<Operation *> pending(op->getUsers());
  while (!pending.empty()) {
    Operation *user = pending.pop_back_val();
    if (llvm::is_contained(members, user))
      continue;
    if (user->hasTrait<OpTrait::IsTerminator>() || getRole(user) != OpRole::Free || groupOf.contains(user))
      return true;
    llvm::append_range(pending, user->getUsers());
  }
  return false;
}

SmallVector<Operation *> Grouping::outputs(ArrayRef<Operation *> members) const {
  SmallVector<Operation *> out;
  for (Operation *op : members)
    if (isReadOutside(op, members))
      out.push_back(op);
  return out;
}

int64_t Grouping::parallelism(const KernelGraph &graph, ArrayRef<Operation *> members) const {
  SmallVector<unsigned> nodes;
  for (Operation *op : outputs(members))
    nodes.push_back(graph.memberNodes.lookup(op));
  int64_t programs = 1;
  for (unsigned leaf : graph.gridFactors(nodes))
    programs = std::min<int64_t>(programs * std::max<int64_t>(estimate(graph.factors.size(leaf)), 1), 1 << 30);
  return programs;
}

int64_t Grouping::work(const KernelGraph &graph) const {
  int64_t most = 1;
  for (const KernelGraph::Node &node : graph.nodes) {
    int64_t elements = 1;
    for (unsigned leaf : graph.leaves(node))
      elements = std::min<int64_t>(elements * std::max<int64_t>(estimate(graph.factors.size(leaf)), 1), 1 << 30);
    most = std::max(most, elements);
  }
  return most;
}

double Grouping::time(int64_t elements, int64_t programs) const {
  return static_cast<double>(elements) / std::min(programs, std::max<int64_t>(options.minParallelism, 1));
}

SmallVector<Operation *> Grouping::inOrder(ArrayRef<Operation *> a, ArrayRef<Operation *> b) const {
  SmallVector<Operation *> ops(a);
  ops.append(b.begin(), b.end());
  llvm::sort(ops, [&](Operation *x, Operation *y) { return position.lookup(x) < position.lookup(y); });
  return ops;
}

SmallVector<unsigned> Grouping::directDependencies(ArrayRef<Operation *> ops) const {
  SmallVector<unsigned> groups;
  SmallVector<Value> pending;
  for (Operation *op : ops)
    llvm::append_range(pending, op->getOperands());
  llvm::SmallPtrSet<Operation *, 16> seen;
  while (!pending.empty()) {
    Operation *def = pending.pop_back_val().getDefiningOp();
    if (!def || !seen.insert(def).second)
      continue;
    auto it = groupOf.find(def);
    if (it == groupOf.end())
      llvm::append_range(pending, def->getOperands());
    else if (!llvm::is_contained(groups, it->second))
      groups.push_back(it->second);
  }
  return groups;
}

/// Whether `members` make a legal kernel that runs no worse than its `parts` apart.
bool Grouping::isLegal(ArrayRef<Operation *> members, ArrayRef<ArrayRef<Operation *>> parts) const {
  if (members.size() > kMaxMembers)
    return false;
  // One contraction, and a product of what the kernel computes.
  Operation *contraction = nullptr, *product = nullptr;
  for (Operation *op : members) {
    if (getRole(op) != OpRole::Contraction)
      continue;
    Operation *&found = isOnlineProduct(op) ? product : contraction;
    if (found)
      return false;
    found = op;
  }
  if (contraction || product)
    for (Operation *op : members)
      if ((getRole(op) == OpRole::Reduction && !isOnline(op)) || getRole(op) == OpRole::Reader)
        return false;
  // A scatter in place, and what changes its indices and updates.
  auto isScatter = [](Operation *op) {
    auto scatter = dyn_cast<ScatterOp>(op);
    return scatter && scatter.getInPlace();
  };
  if (llvm::any_of(members, isScatter)) {
    SmallVector<Operation *> written = outputs(members);
    if (written.size() != 1 || !isScatter(written.front()))
      return false;
    for (Operation *op : members)
      if (op != written.front() && getRole(op) != OpRole::Elementwise && getRole(op) != OpRole::Free)
        return false;
  }
  KernelGraph graph = makeGraph(members);
  if (!graph.ok())
    return false;
  if (contraction || product) {
    // Prologues (of the rows of scores) and epilogues have the iteration space of the one or the other.
    auto spaceOf = [&](Operation *op) {
      Factors::List space = graph.leaves(graph.nodes[graph.memberNodes.lookup(op)]);
      llvm::sort(space);
      return space;
    };
    SmallVector<Factors::List> spaces;
    for (Operation *op : {contraction, product})
      if (op)
        spaces.push_back(spaceOf(op));
    if (contraction && isScores(contraction)) {
      const KernelGraph::Node &node = graph.nodes[graph.memberNodes.lookup(contraction)];
      spaces.push_back(graph.leaves(graph.nodes[node.operands[0]]));
      llvm::sort(spaces.back());
    }
    bool hasRows = llvm::any_of(members, [](Operation *op) { return isOnline(op) || isScores(op); });
    for (Operation *op : members) {
      Factors::List own = spaceOf(op);
      if (llvm::none_of(
              spaces, [&](const Factors::List &space) { return hasRows ? llvm::includes(space, own) : space == own; }))
        return false;
    }
    // What has the columns of a product of online sums is read within the kernel only.
    if (product)
      for (Operation *op : outputs(members))
        for (unsigned leaf : graph.leaves(graph.nodes[graph.memberNodes.lookup(op)]))
          if (graph.factors.isBlocked(leaf))
            return false;
  }
  // Together they walk the widest of their values once, on as many threads as there are programs; apart, one after
  // the other, each on its own.
  double apart = kLaunchElements;
  int64_t elements = 0;
  for (ArrayRef<Operation *> part : parts) {
    KernelGraph partGraph = makeGraph(part);
    if (!partGraph.ok())
      return true;
    int64_t own = work(partGraph);
    elements = std::max(elements, own);
    apart += time(own, parallelism(partGraph, part));
  }
  return time(elements, parallelism(graph, members)) <= apart;
}

void Grouping::assign(ArrayRef<Operation *> ops, unsigned group) {
  Group &g = all[group];
  g.members = inOrder(g.members, ops);
  g.age = ++clock;
  for (Operation *op : ops) {
    groupOf[op] = group;
    memberSince.try_emplace(op, clock);
    g.hasContraction |= getRole(op) == OpRole::Contraction;
  }
  for (unsigned dependency : directDependencies(g.members)) {
    if (dependency == group)
      continue;
    g.dependsOn.set(dependency);
    g.dependsOn |= all[dependency].dependsOn;
  }
  for (Group &other : all)
    if (other.dependsOn.test(group))
      other.dependsOn |= all[group].dependsOn;
}

void Grouping::addGroup(ArrayRef<Operation *> ops) {
  all.emplace_back();
  for (Group &group : all)
    group.dependsOn.resize(all.size());
  assign(ops, all.size() - 1);
}

bool Grouping::tryJoin(ArrayRef<Operation *> ops, unsigned group) {
  SmallVector<Operation *> members = inOrder(all[group].members, ops);
  for (unsigned dependency : directDependencies(members))
    if (dependency != group && all[dependency].dependsOn.test(group))
      return false;
  if (!isLegal(members, {all[group].members, ops}))
    return false;
  assign(ops, group);
  return true;
}

void Grouping::tryMerge(unsigned into, unsigned from) {
  Group &a = all[into], &b = all[from];
  if (into == from || b.members.empty() || (a.hasContraction && b.hasContraction))
    return;
  // Nothing may lie on a path between the two.
  for (unsigned middle : a.dependsOn.set_bits())
    if (middle != from && all[middle].dependsOn.test(from))
      return;
  for (unsigned middle : b.dependsOn.set_bits())
    if (middle != into && all[middle].dependsOn.test(into))
      return;
  SmallVector<Operation *> members = inOrder(a.members, b.members);
  for (unsigned dependency : directDependencies(members))
    if (dependency != into && dependency != from &&
        (all[dependency].dependsOn.test(into) || all[dependency].dependsOn.test(from)))
      return;
  if (!isLegal(members, {a.members, b.members}))
    return;
  SmallVector<Operation *> moved = std::move(b.members);
  b.members.clear();
  llvm::BitVector inherited = b.dependsOn;
  b.dependsOn.reset();
  inherited.reset(into);
  a.dependsOn.reset(from);
  a.dependsOn |= inherited;
  for (Group &other : all)
    if (other.dependsOn.test(from)) {
      other.dependsOn.reset(from);
      other.dependsOn.set(into);
    }
  assign(moved, into);
  all[into].dependsOn.reset(into);
}

/// A reshape that joins transposed dimensions would need a copy; its producer writes that order at once instead.
bool Grouping::trySink(Operation *reshape) {
  SmallVector<Operation *> chain{reshape};
  for (Value value = reshape->getOperand(0);;) {
    Operation *def = value.getDefiningOp();
    if (!def || !value.hasOneUse())
      return false;
    auto it = groupOf.find(def);
    if (it != groupOf.end()) {
      bool permutes = llvm::any_of(chain, [](Operation *op) { return isa<TransposeOp>(op); });
      return permutes && tryJoin(chain, it->second);
    }
    if (!isa<TransposeOp, ReshapeOp>(def))
      return false;
    chain.insert(chain.begin(), def);
    value = def->getOperand(0);
  }
}

SmallVector<Operation *> Grouping::readers(Operation *op, bool &isReturned) const {
  SmallVector<Operation *> pending(op->getUsers()), found;
  isReturned = false;
  while (!pending.empty()) {
    Operation *user = pending.pop_back_val();
    if (user->hasTrait<OpTrait::IsTerminator>())
      isReturned = true;
    else if (groupOf.contains(user))
      found.push_back(user);
    else
      llvm::append_range(pending, user->getUsers());
  }
  return found;
}

llvm::SmallSetVector<Value, 8> Grouping::inputs(ArrayRef<Operation *> members) const {
  llvm::SmallSetVector<Value, 8> found;
  SmallVector<Value> pending;
  for (Operation *op : members)
    llvm::append_range(pending, op->getOperands());
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    Operation *def = value.getDefiningOp();
    if (!def || groupOf.contains(def)) {
      if (!def || !llvm::is_contained(members, def))
        found.insert(value);
    } else {
      llvm::append_range(pending, def->getOperands());
    }
  }
  return found;
}

int64_t Grouping::bytes(Value value) const {
  auto type = cast<RankedTensorType>(value.getType());
  int64_t count = (type.getElementTypeBitWidth() + 7) / 8;
  for (AffineExpr size : sizes.getSizes(value))
    count = std::min<int64_t>(count * std::max<int64_t>(estimate(size), 1), int64_t(1) << 40);
  return count;
}

/// An output that only one other kernel reads is computed there, if that moves fewer bytes: where it is made of values
/// that are in memory anyway.
void Grouping::trySinkOutput(Operation *op, unsigned from) {
  bool isReturned;
  auto isMovable = [](Operation *member) {
    OpRole role = getRole(member);
    return role == OpRole::Elementwise || role == OpRole::Free;
  };
  SmallVector<Operation *> users = readers(op, isReturned);
  if (isReturned || users.empty() || !isMovable(op))
    return;
  unsigned into = groupOf.lookup(users.front());
  if (into == from || llvm::any_of(users, [&](Operation *user) { return groupOf.lookup(user) != into; }))
    return;
  // With it goes what is computed for it alone.
  SmallVector<Operation *> moved{op};
  for (Operation *member : llvm::reverse(all[from].members)) {
    SmallVector<Operation *> own = readers(member, isReturned);
    if (member != op && isMovable(member) && !isReturned && !own.empty() &&
        llvm::all_of(own, [&](Operation *user) { return llvm::is_contained(moved, user); }))
      moved.push_back(member);
  }
  SmallVector<Operation *> left(all[from].members);
  llvm::erase_if(left, [&](Operation *member) { return llvm::is_contained(moved, member); });
  if (left.empty())
    return;
  SmallVector<Operation *> members = inOrder(all[into].members, moved);
  int64_t saved = 2 * bytes(op->getResult(0)), spent = 0;
  SmallVector<Operation *> written = outputs(all[from].members);
  llvm::SmallSetVector<Value, 8> known = inputs(all[into].members);
  for (Value value : inputs(moved)) {
    if (!known.contains(value))
      spent += bytes(value);
    if (Operation *def = value.getDefiningOp(); llvm::is_contained(left, def) && !llvm::is_contained(written, def))
      spent += bytes(value);
  }
  if (spent >= saved || !isLegal(members, {all[into].members, moved}) || !isLegal(left, {all[from].members}))
    return;
  all[from].members = left;
  all[from].age = ++clock;
  assign(moved, into);
}

LogicalResult Grouping::place(Operation *op) {
  if (groupOf.contains(op))
    return success();
  // What is changed in place is in memory.
  auto scatter = dyn_cast<ScatterOp>(op);
  bool isInPlace = scatter && scatter.getInPlace();
  if (isInPlace && failed(place(scatter.getOperand().getDefiningOp())))
    return failure();
  // Free operands that cannot be read in place become values in memory.
  for (;;) {
    KernelGraph graph = makeGraph({op});
    if (graph.ok())
      break;
    if (graph.blockers().empty())
      return op->emitOpError("does not fit in a kernel: its operands have no common iteration space");
    for (Operation *blocker : graph.blockers()) {
      if (groupOf.contains(blocker) || blocker == op)
        return op->emitOpError("does not fit in a kernel: its operands have no common iteration space");
      if (failed(place(blocker)))
        return failure();
    }
  }
  OpRole role = getRole(op);
  SmallVector<unsigned> candidates = directDependencies({op});
  if ((role == OpRole::Contraction && !isOnlineProduct(op) && !isScores(op)) || role == OpRole::Reader) {
    addGroup({op});
    // Changes of indices are computed in the kernel that gathers or scatters by them.
    if (isa<GatherOp>(op) || isInPlace)
      for (unsigned candidate : candidates)
        if (llvm::all_of(all[candidate].members, [](Operation *m) { return getRole(m) == OpRole::Elementwise; }))
          tryMerge(all.size() - 1, candidate);
    return success();
  }
  if (isScores(op)) {
    // What changes the rows only is computed once a program.
    Operation *rows = op->getOperand(0).getDefiningOp();
    auto it = rows ? groupOf.find(rows) : groupOf.end();
    candidates = it == groupOf.end() ? SmallVector<unsigned>() : SmallVector<unsigned>{it->second};
  }
  llvm::sort(candidates, std::greater<>());
  for (unsigned candidate : candidates)
    if (tryJoin({op}, candidate)) {
      for (unsigned other : candidates)
        tryMerge(candidate, other);
      return success();
    }
  addGroup({op});
  return success();
}

LogicalResult Grouping::run() {
  for (Operation &op : func.getFunctionBody().front().without_terminator()) {
    if (op.use_empty())
      continue;
    if (getRole(&op) != OpRole::Free) {
      if (failed(place(&op)))
        return failure();
    } else if (isa<ReshapeOp>(op)) {
      trySink(&op);
    }
  }
  for (Value value : func.getFunctionBody().front().getTerminator()->getOperands())
    if (Operation *def = value.getDefiningOp())
      if (failed(place(def)))
        return failure();
  for (unsigned group = all.size(); group-- > 0;) {
    SmallVector<Operation *> written = outputs(all[group].members);
    for (Operation *op : llvm::reverse(written))
      trySinkOutput(op, group);
  }
  return success();
}

SmallVector<const Grouping::Group *> Grouping::groups() const {
  SmallVector<const Group *> order;
  llvm::BitVector done(all.size());
  std::function<void(unsigned)> visit = [&](unsigned group) {
    if (done.test(group) || all[group].members.empty())
      return;
    done.set(group);
    for (unsigned dependency : all[group].dependsOn.set_bits())
      visit(dependency);
    order.push_back(&all[group]);
  };
  for (unsigned group = 0; group < all.size(); ++group)
    visit(group);
  return order;
}
