// Scatters: a loop nest over the updates, in row-major order, because later updates see earlier ones. Or, where
// programs are many, a reduction of each element over the updates that meet it; or atomic operations, in place.
#include "dialects/Kernel/Kernel.h"
#include "lib/Conversion/PrimToLinalg/Body.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace lamina;

static prim::Combiner getCombiner(prim::ScatterMode mode) {
  switch (mode) {
  case prim::ScatterMode::prod:
    return prim::Combiner::prod;
  case prim::ScatterMode::max:
    return prim::Combiner::max;
  case prim::ScatterMode::min:
    return prim::Combiner::min;
  default:
    return prim::Combiner::sum;
  }
}

/// The result with one update applied. An update whose index is outside the tensor changes nothing.
static Value applyUpdate(Emitter &emitter, prim::ScatterOp op, OpBuilder &b, ValueRange position, Value tensor) {
  Location loc = op.getLoc();
  Body body(emitter, loc, b);
  OpBuilder &inner = body.builder;
  unsigned numBatch = cast<RankedTensorType>(op.getIndices().front().getType()).getRank();
  Access all(position.begin(), position.end()), batch(all.begin(), all.begin() + numBatch);
  ArrayRef<AffineExpr> sizes = emitter.getSizes(op.getOperand());
  SmallVector<Value> indices;
  Value condition;
  unsigned next = numBatch;
  for (unsigned dim = 0; dim < sizes.size(); ++dim) {
    auto *at = llvm::find(op.getDims(), static_cast<int64_t>(dim));
    if (at == op.getDims().end()) {
      indices.push_back(position[next++]);
      continue;
    }
    Value index = body.getScalar(op.getIndices()[at - op.getDims().begin()], batch);
    index = arith::IndexCastOp::create(inner, loc, inner.getIndexType(), index);
    // Unsigned, so that a negative index is outside too.
    Value inside = arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::ult, index, body.getValue(sizes[dim]));
    condition = condition ? Value(arith::AndIOp::create(inner, loc, condition, inside)) : inside;
    indices.push_back(index);
  }
  auto branch = scf::IfOp::create(inner, loc, TypeRange{tensor.getType()}, condition, /*addThenBlock=*/true,
                                  /*addElseBlock=*/true);
  OpBuilder then = branch.getThenBodyBuilder();
  Body update(emitter, loc, then);
  Value element = update.getScalar(op.getUpdates(), all);
  Type elementType = op.getType().getElementType(), wide = getComputeType(elementType);
  if (op.getMode() != prim::ScatterMode::assign) {
    Value old = castFloat(update.builder, loc, tensor::ExtractOp::create(update.builder, loc, tensor, indices), wide);
    Value combined = buildCombination(update.builder, loc, getCombiner(op.getMode()), elementType, old,
                                      castFloat(update.builder, loc, element, wide));
    element = castFloat(update.builder, loc, combined, getScalarType(elementType));
  }
  Value changed = tensor::InsertOp::create(update.builder, loc, element, tensor, indices);
  scf::YieldOp::create(update.builder, loc, changed);
  OpBuilder otherwise = branch.getElseBodyBuilder();
  scf::YieldOp::create(otherwise, loc, tensor);
  return branch.getResult(0);
}

/// The operand's elements, in a tensor of the result's own.
static Value copyOperand(Emitter &emitter, prim::ScatterOp op, Type type) {
  Exprs sizes(emitter.getSizes(op.getOperand()));
  Body body(emitter, op.getLoc(), sizes);
  Value scalar = castFloat(body.builder, op.getLoc(), body.getScalar(op.getOperand(), body.getIdentity()), type);
  body.addOut(emitter.makeEmpty(op.getLoc(), sizes, scalar.getType()),
              AffineMap::getMultiDimIdentityMap(sizes.size(), emitter.getContext()));
  SmallVector<utils::IteratorType> iterators(sizes.size(), utils::IteratorType::parallel);
  return body.finish(iterators, scalar).getResult(0);
}

namespace {
/// A scatter as a reduction: loops over the result's elements, then over the positions of the indices.
class Reducer {
public:
  Reducer(Emitter &emitter, prim::ScatterOp op)
      : emitter(emitter), op(op), loc(op.getLoc()), elementType(op.getType().getElementType()),
        sizes(emitter.getSizes(op.getOperand())), batch(emitter.getSizes(op.getIndices().front())) {}

  Value run() {
    bool isAssignment = op.getMode() == prim::ScatterMode::assign;
    return isAssignment ? assign() : combine();
  }

private:
  /// Whether the update at the present position goes to the present element.
  Value isMet(Body &body);
  /// The update at a position for the element at `place`.
  Value getUpdate(Body &body, ArrayRef<Value> place, ArrayRef<Index> position);
  /// Over all positions: what `getElement` gives of the loops' indices where an update meets an element, else
  /// `otherwise`.
  Value reduce(Value init, TypedAttr otherwise, function_ref<Value(Body &, ArrayRef<Value>)> getElement,
               function_ref<Value(OpBuilder &, Value, Value)> combine);
  Value combine();
  Value assign();

  Emitter &emitter;
  prim::ScatterOp op;
  Location loc;
  Type elementType;
  Exprs sizes, batch;
};

Value Reducer::isMet(Body &body) {
  OpBuilder &b = body.builder;
  Access position;
  for (unsigned dim = 0; dim < batch.size(); ++dim)
    position.push_back(body.getLoop(sizes.size() + dim));
  Value all;
  for (auto [indices, dim] : llvm::zip_equal(op.getIndices(), op.getDims())) {
    Value here = arith::IndexCastOp::create(b, loc, b.getI64Type(), body.getValue(body.getLoop(dim)));
    Value equal = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, body.getScalar(indices, position), here);
    all = all ? Value(arith::AndIOp::create(b, loc, all, equal)) : equal;
  }
  return all;
}

Value Reducer::getUpdate(Body &body, ArrayRef<Value> place, ArrayRef<Index> position) {
  Access access(position.begin(), position.end());
  for (unsigned dim = 0; dim < sizes.size(); ++dim)
    if (!llvm::is_contained(op.getDims(), static_cast<int64_t>(dim)))
      access.push_back(place[dim]);
  return body.getScalar(op.getUpdates(), access);
}

Value Reducer::reduce(Value init, TypedAttr otherwise, function_ref<Value(Body &, ArrayRef<Value>)> getElement,
                      function_ref<Value(OpBuilder &, Value, Value)> combine) {
  Exprs loops(sizes);
  llvm::append_range(loops, batch);
  Body body(emitter, loc, loops);
  Value state = body.addOut(
      init, AffineMap::getMultiDimIdentityMap(loops.size(), emitter.getContext()).getMajorSubMap(sizes.size()));
  SmallVector<Value> indices;
  for (unsigned loop = 0; loop < loops.size(); ++loop)
    indices.push_back(body.getValue(body.getLoop(loop)));
  auto branch = scf::IfOp::create(body.builder, loc, state.getType(), isMet(body), /*withElseRegion=*/true);
  OpBuilder then = branch.getThenBodyBuilder(), other = branch.getElseBodyBuilder();
  Body inner(emitter, loc, then);
  Value element = getElement(inner, indices);
  scf::YieldOp::create(inner.builder, loc, element);
  scf::YieldOp::create(other, loc, Value(arith::ConstantOp::create(other, loc, otherwise)));
  SmallVector<utils::IteratorType> iterators(sizes.size(), utils::IteratorType::parallel);
  iterators.append(batch.size(), utils::IteratorType::reduction);
  return body.finish(iterators, combine(body.builder, state, branch.getResult(0))).getResult(0);
}

Value Reducer::combine() {
  prim::Combiner combiner = getCombiner(op.getMode());
  Type wide = getComputeType(elementType);
  auto getElement = [&](Body &body, ArrayRef<Value> indices) {
    ArrayRef<Value> place = indices.take_front(sizes.size()), position = indices.drop_front(sizes.size());
    return castFloat(body.builder, loc, getUpdate(body, place, Access(position.begin(), position.end())), wide);
  };
  return reduce(copyOperand(emitter, op, wide), getIdentity(emitter.builder, combiner, elementType), getElement,
                [&](OpBuilder &b, Value state, Value element) {
                  return buildCombination(b, loc, combiner, elementType, state, element);
                });
}

/// The last update that meets an element is found first, by its number.
Value Reducer::assign() {
  TypedAttr none = emitter.builder.getI64IntegerAttr(-1);
  auto getNumber = [&](Body &body, ArrayRef<Value> indices) -> Value {
    Index number = getAffineConstantExpr(0, emitter.getContext());
    for (auto [size, here] : llvm::zip_equal(batch, indices.drop_front(sizes.size())))
      number = body.add(body.multiply(number, size), here);
    return arith::IndexCastOp::create(body.builder, loc, body.builder.getI64Type(), body.getValue(number));
  };
  Value last = reduce(emitter.makeFilled(loc, sizes, none), none, getNumber,
                      [&](OpBuilder &b, Value x, Value y) { return arith::MaxSIOp::create(b, loc, x, y); });

  Body body(emitter, loc, sizes);
  OpBuilder &b = body.builder;
  AffineMap identity = AffineMap::getMultiDimIdentityMap(sizes.size(), emitter.getContext());
  Value number = body.addInput(last, identity), old = body.getScalar(op.getOperand(), body.getIdentity());
  Value zero = arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(0));
  Value isAssigned = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, number, zero);
  SmallVector<Value> place;
  for (unsigned dim = 0; dim < sizes.size(); ++dim)
    place.push_back(body.getValue(body.getLoop(dim)));
  auto branch = scf::IfOp::create(b, loc, old.getType(), isAssigned, /*withElseRegion=*/true);
  OpBuilder then = branch.getThenBodyBuilder(), other = branch.getElseBodyBuilder();
  Body inner(emitter, loc, then);
  Index left = Value(arith::IndexCastOp::create(inner.builder, loc, b.getIndexType(), number));
  Access position(batch.size(), Index(getAffineConstantExpr(0, emitter.getContext())));
  for (unsigned dim = batch.size(); dim-- > 0;) {
    position[dim] = dim == 0 ? left : inner.modulo(left, batch[dim]);
    left = inner.divide(left, batch[dim]);
  }
  Value update = getUpdate(inner, place, position);
  scf::YieldOp::create(inner.builder, loc, update);
  scf::YieldOp::create(other, loc, old);
  body.addOut(emitter.makeEmpty(loc, sizes, old.getType()), identity);
  SmallVector<utils::IteratorType> iterators(sizes.size(), utils::IteratorType::parallel);
  return body.finish(iterators, branch.getResult(0)).getResult(0);
}
} // namespace

static kernel::Atomic getAtomicKind(prim::ScatterOp op) {
  bool isFloat = isa<FloatType>(op.getType().getElementType());
  switch (op.getMode()) {
  case prim::ScatterMode::max:
    return kernel::Atomic::maxs;
  case prim::ScatterMode::min:
    return kernel::Atomic::mins;
  default:
    return isFloat ? kernel::Atomic::addf : kernel::Atomic::addi;
  }
}

static void emitInPlace(Emitter &emitter, prim::ScatterOp op) {
  SmallVector<Value> indices =
      llvm::map_to_vector(op.getIndices(), [&](Value index) { return emitter.getTensor(index); });
  Value dest = emitter.getTensor(op.getOperand());
  Value result = kernel::ScatterOp::create(
      emitter.builder, op.getLoc(), dest.getType(), emitter.getTensor(op.getUpdates()), indices, dest,
      kernel::AtomicAttr::get(op.getContext(), getAtomicKind(op)), op.getDimsAttr(),
      getExprs(op.getContext(), emitter.getSizes(op.getUpdates())), IntegerAttr());
  emitter.define(op.getResult(), result);
}

void lamina::emitScatter(Emitter &emitter, prim::ScatterOp op) {
  if (op.getInPlace())
    return emitInPlace(emitter, op);
  if (emitter.parallelScatters)
    return emitter.define(op.getResult(), Reducer(emitter, op).run());
  Location loc = op.getLoc();
  OpBuilder &builder = emitter.builder;
  Value tensor = copyOperand(emitter, op, getScalarType(op.getType().getElementType()));
  SmallVector<Value> low, high, step;
  for (AffineExpr size : emitter.getSizes(op.getUpdates())) {
    low.push_back(arith::ConstantIndexOp::create(builder, loc, 0));
    high.push_back(emitter.getSizeValue(size));
    step.push_back(arith::ConstantIndexOp::create(builder, loc, 1));
  }
  auto nest =
      scf::buildLoopNest(builder, loc, low, high, step, ValueRange{tensor},
                         [&](OpBuilder &b, Location, ValueRange position, ValueRange state) -> scf::ValueVector {
                           return {applyUpdate(emitter, op, b, position, state.front())};
                         });
  if (!nest.loops.empty())
    nest.loops.front()->setAttr("lamina.scatter", builder.getUnitAttr());
  emitter.define(op.getResult(), nest.results.front());
}
