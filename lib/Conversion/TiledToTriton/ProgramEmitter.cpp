// One program of a kernel: its place in the grid, scalars, reads and writes of memory.
#include "lib/Conversion/TiledToTriton/ProgramEmitter.h"
#include "lib/Conversion/TiledToTriton/ScalarOps.h"
#include "lib/Transforms/Tiling/GridChoice.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace lamina;

ProgramEmitter::ProgramEmitter(kernel::FuncOp kernel, tt::FuncOp program, Type indexType, const ProgramOptions &options)
    : kernel(kernel), program(program), options(options),
      blocks(&program.getBody().front(), kernel.getLoc(), indexType) {}

AxisBlock ProgramEmitter::fail(Operation *op, const Twine &message, Type type) {
  if (!failed)
    op->emitOpError(message) << ", in @" << kernel.getSymName();
  failed = true;
  return blocks.zero(type.isIndex() ? blocks.indexType : type);
}

/// Programs that run at the same time make a group of a few rows and as many columns as it takes, so that they share
/// blocks of both operands in the L2 cache.
std::pair<AxisBlock, AxisBlock> ProgramEmitter::placeInGroup(AxisBlock position, AxisBlock rows, AxisBlock columns) {
  constexpr int64_t kGroupRows = 8;
  AxisBlock height = blocks.index(kGroupRows);
  AxisBlock size = blocks.multiply(height, columns);
  AxisBlock first = blocks.multiply(blocks.make<arith::DivSIOp>(position, size), height);
  AxisBlock within = blocks.make<arith::RemSIOp>(position, size);
  APInt count;
  if (!matchPattern(rows.value, m_ConstantInt(&count)) || count.urem(kGroupRows) != 0)
    height = blocks.make<arith::MinSIOp>(blocks.make<arith::SubIOp>(rows, first), height);
  return {blocks.add(first, blocks.make<arith::RemSIOp>(within, height)), blocks.make<arith::DivSIOp>(within, height)};
}

LogicalResult ProgramEmitter::run() {
  Block &body = kernel.getBody().front();
  auto foralls = body.getOps<scf::ForallOp>();
  SmallVector<Output> outputs;
  if (auto scatters = body.getOps<kernel::ScatterOp>(); !scatters.empty()) {
    emitScatter(*scatters.begin());
  } else if (foralls.empty()) {
    padContractions();
    for (auto [i, value] : llvm::enumerate(body.getTerminator()->getOperands()))
      outputs.push_back({value, {}, {}, static_cast<unsigned>(kernel.getNumIns() + i)});
  } else {
    scf::ForallOp forall = *foralls.begin();
    OpBuilder b = blocks.at(0);
    AxisBlock left{tt::GetProgramIdOp::create(b, kernel.getLoc(), b.getI32Type(), b.getI32IntegerAttr(0)), {}, 0};
    left = blocks.castInteger(left, blocks.indexType);
    SmallVector<AxisBlock> steps, counts, positions(forall.getRank());
    for (unsigned dim = 0; dim < forall.getRank(); ++dim) {
      OpFoldResult bound = forall.getMixedUpperBound()[dim], step = forall.getMixedStep()[dim];
      steps.push_back(getScalar(step));
      std::optional<int64_t> size = getConstantIntValue(bound), tile = getConstantIntValue(step);
      counts.push_back(size && tile ? blocks.index(llvm::divideCeil(*size, *tile))
                                    : blocks.make<arith::CeilDivSIOp>(getScalar(bound), steps.back()));
    }
    int64_t dim = forall.getRank() - 1;
    if (kernel->hasAttr("kernel.grouped") && dim > 0) {
      AxisBlock both = blocks.multiply(counts[dim - 1], counts[dim]);
      AxisBlock position = dim > 1 ? blocks.make<arith::RemSIOp>(left, both) : left;
      left = blocks.make<arith::DivSIOp>(left, both);
      std::tie(positions[dim - 1], positions[dim]) = placeInGroup(position, counts[dim - 1], counts[dim]);
      dim -= 2;
    }
    for (; dim >= 0; --dim) {
      positions[dim] = dim == 0 ? left : blocks.make<arith::RemSIOp>(left, counts[dim]);
      if (dim != 0)
        left = blocks.make<arith::DivSIOp>(left, counts[dim]);
    }
    for (unsigned i = 0; i < forall.getRank(); ++i)
      scalars[forall.getInductionVar(i)] = blocks.multiply(positions[i], steps[i]);
    padContractions();
    for (auto insert : forall.getTerminator().getOps<tensor::ParallelInsertSliceOp>()) {
      unsigned number = cast<BlockArgument>(insert.getDest()).getArgNumber() - forall.getRank();
      auto argument = cast<BlockArgument>(forall.getOutputs()[number]);
      outputs.push_back(
          {insert.getSource(), insert.getMixedOffsets(), insert.getMixedSizes(), argument.getArgNumber()});
    }
  }
  emitOutputs(outputs);
  OpBuilder end = blocks.at(0);
  tt::ReturnOp::create(end, kernel.getLoc(), ValueRange());
  return failure(failed);
}

void ProgramEmitter::emitOutputs(ArrayRef<Output> outputs) {
  struct Plan {
    const Output *output;
    Indices indices;
    SmallVector<Loop> loops;
    AxisBlock value;
  };
  std::vector<Plan> plans;
  for (const Output &output : outputs) {
    Plan plan{&output, {}, {}, {}};
    SmallVector<std::pair<unsigned, Extent>> dims;
    for (int64_t dim = 0; dim < cast<RankedTensorType>(output.value.getType()).getRank(); ++dim)
      dims.push_back({dim, output.sizes.empty() ? getDimExtent(kernel.getArgument(output.argument), dim)
                                                : getExtent(output.sizes[dim])});
    plan.indices.resize(dims.size());
    plan.loops = choose(dims, {}, plan.indices);
    plans.push_back(std::move(plan));
  }
  // An output may have the memory of an input that another is computed from, so all is read before anything is written.
  for (Plan &plan : plans)
    if (plan.loops.empty())
      plan.value = read(plan.output->value, plan.indices);
  for (Plan &plan : plans)
    if (plan.loops.empty())
      store(*plan.output, plan.indices, plan.value);
  for (Plan &plan : plans)
    if (!plan.loops.empty()) {
      // The loop along which there are scans is the innermost, and carries their totals.
      llvm::MapVector<Operation *, unsigned> scans;
      SmallVector<std::optional<unsigned>> dims;
      for (unsigned dim = 0; dim < plan.indices.size(); ++dim)
        dims.push_back(dim);
      findScans(plan.output->value, dims, scans);
      SmallVector<Operation *> along;
      auto *inner = llvm::find_if(plan.loops, [&](const Loop &loop) {
        return llvm::any_of(scans, [&](auto &scan) { return scan.second == loop.dim; });
      });
      std::optional<Loop> last;
      if (inner != plan.loops.end()) {
        last = *inner;
        for (auto [op, dim] : scans)
          if (dim == last->dim)
            along.push_back(op);
        plan.loops.erase(inner);
      }
      SmallVector<Value> carried;
      runLoops(plan.loops, plan.indices, carried, [&](SmallVector<Value> &) {
        if (last)
          storeScanned(*plan.output, plan.indices, *last, along);
        else
          store(*plan.output, plan.indices, read(plan.output->value, plan.indices));
      });
    }
}

// ---- scalars

AxisBlock ProgramEmitter::getScalar(OpFoldResult value) {
  if (auto constant = getConstantIntValue(value))
    return blocks.index(*constant);
  return getScalar(cast<Value>(value));
}

AxisBlock ProgramEmitter::getScalar(Value value) {
  auto it = scalars.find(value);
  if (it != scalars.end())
    return it->second;
  Operation *op = value.getDefiningOp();
  AxisBlock result;
  if (!op)
    return fail(kernel, "has a scalar that is no argument of a Triton kernel", value.getType());
  if (auto symbol = dyn_cast<kernel::SymbolOp>(op)) {
    result = getSize(getAffineSymbolExpr(symbol.getNumber(), op->getContext()));
  } else if (auto apply = dyn_cast<affine::AffineApplyOp>(op)) {
    // Over symbols alone it is a size like those of arguments.
    AffineMap map = apply.getAffineMap();
    SmallVector<AffineExpr> symbols;
    for (Value operand : apply.getOperands())
      if (auto symbol = operand.getDefiningOp<kernel::SymbolOp>())
        symbols.push_back(getAffineSymbolExpr(symbol.getNumber(), op->getContext()));
    if (symbols.size() == apply.getOperands().size()) {
      ArrayRef<AffineExpr> all(symbols);
      result = getSize(
          map.getResult(0).replaceDimsAndSymbols(all.take_front(map.getNumDims()), all.drop_front(map.getNumDims())));
    } else {
      result = evaluateLeast(map, apply.getOperands(), false);
    }
  } else if (auto least = dyn_cast<affine::AffineMinOp>(op)) {
    result = evaluateLeast(least.getAffineMap(), least.getOperands(), false);
  } else if (auto most = dyn_cast<affine::AffineMaxOp>(op)) {
    result = evaluateLeast(most.getAffineMap(), most.getOperands(), false, true);
  } else if (auto size = dyn_cast<tensor::DimOp>(op); size && size.getConstantIndex()) {
    result = getDimExtent(size.getSource(), *size.getConstantIndex()).size;
  } else if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
    Indices indices;
    for (Value index : extract.getIndices())
      indices.push_back(blocks.castInteger(getScalar(index), blocks.indexType));
    result = read(extract.getTensor(), indices);
  } else {
    SmallVector<AxisBlock> operands;
    for (Value operand : op->getOperands()) {
      if (isa<ShapedType>(operand.getType()))
        return fail(op, "has no form in Triton IR", value.getType());
      operands.push_back(getScalar(operand));
    }
    result = convertScalarOp(blocks, op, operands);
    if (!result)
      return fail(op, "has no form in Triton IR", value.getType());
  }
  return scalars[value] = result;
}

/// Indices are never negative where they divide.
AxisBlock ProgramEmitter::evaluate(AffineExpr expr, ArrayRef<AxisBlock> dims, ArrayRef<AxisBlock> symbols) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return blocks.index(constant.getValue());
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return dims[dim.getPosition()];
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return symbols[symbol.getPosition()];
  auto binary = cast<AffineBinaryOpExpr>(expr);
  AxisBlock lhs = evaluate(binary.getLHS(), dims, symbols), rhs = evaluate(binary.getRHS(), dims, symbols);
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return blocks.add(lhs, rhs);
  case AffineExprKind::Mul:
    return blocks.multiply(lhs, rhs);
  case AffineExprKind::Mod:
    return blocks.make<arith::RemUIOp>(lhs, rhs);
  case AffineExprKind::FloorDiv:
    return blocks.make<arith::DivUIOp>(lhs, rhs);
  default:
    return blocks.make<arith::CeilDivUIOp>(lhs, rhs);
  }
}

AxisBlock ProgramEmitter::evaluateLeast(AffineMap map, ValueRange operands, bool skipConstants, bool isMost) {
  SmallVector<AxisBlock> values;
  for (Value operand : operands)
    values.push_back(getScalar(operand));
  AxisBlock least;
  for (AffineExpr expr : map.getResults()) {
    if (skipConstants && isa<AffineConstantExpr>(expr))
      continue;
    ArrayRef<AxisBlock> all(values);
    AxisBlock value = evaluate(expr, all.take_front(map.getNumDims()), all.drop_front(map.getNumDims()));
    if (least)
      value = isMost ? blocks.make<arith::MaxSIOp>(least, value) : blocks.make<arith::MinSIOp>(least, value);
    least = value;
  }
  return least;
}

AxisBlock ProgramEmitter::getSize(AffineExpr size) {
  AxisBlock &known = sizes[size];
  if (known)
    return known;
  if (auto symbol = dyn_cast<AffineSymbolExpr>(size)) {
    unsigned argument = kernel.getNumArguments() + symbol.getPosition();
    return known = {program.getArgument(argument), {}, 0};
  }
  SmallVector<AxisBlock> symbols;
  for (unsigned i = kernel.getNumArguments(); i < program.getNumArguments(); ++i)
    symbols.push_back({program.getArgument(i), {}, 0});
  AxisBlock value = evaluate(size, {}, symbols);
  return sizes[size] = value;
}

// ---- extents and axes

ProgramEmitter::Extent ProgramEmitter::getExtent(OpFoldResult size) {
  if (auto constant = getConstantIntValue(size))
    return {blocks.index(*constant), *constant, blocks.index(*constant)};
  Extent extent{getScalar(size), std::nullopt, {}};
  extent.limit = extent.size;
  if (auto least = cast<Value>(size).getDefiningOp<affine::AffineMinOp>()) {
    for (AffineExpr expr : least.getAffineMap().getResults())
      if (auto constant = dyn_cast<AffineConstantExpr>(expr))
        extent.bound = std::min(extent.bound.value_or(constant.getValue()), constant.getValue());
    if (extent.bound && getBlockSize(extent) == *extent.bound)
      extent.limit = evaluateLeast(least.getAffineMap(), least.getOperands(), true);
  }
  return extent;
}

ProgramEmitter::Extent ProgramEmitter::getDimExtent(Value tensor, unsigned dim) {
  auto type = cast<RankedTensorType>(tensor.getType());
  Builder b(tensor.getContext());
  if (!type.isDynamicDim(dim))
    return getExtent(b.getIndexAttr(type.getDimSize(dim)));
  if (auto argument = dyn_cast<BlockArgument>(tensor)) {
    if (auto forall = dyn_cast<scf::ForallOp>(argument.getOwner()->getParentOp()))
      return getDimExtent(forall.getOutputs()[argument.getArgNumber() - forall.getRank()], dim);
    AxisBlock size = getSize(getArgumentSizes(kernel, argument.getArgNumber())[dim]);
    return {size, std::nullopt, size};
  }
  Operation *op = tensor.getDefiningOp();
  if (auto empty = dyn_cast<tensor::EmptyOp>(op))
    return getExtent(empty.getMixedSizes()[dim]);
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    return getDimExtent(linalgOp.getDpsInitOperand(cast<OpResult>(tensor).getResultNumber())->get(), dim);
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
    return getExtent(expand.getMixedOutputShape()[dim]);
  if (auto cast = dyn_cast<tensor::CastOp>(op))
    return getDimExtent(cast.getSource(), dim);
  if (auto extract = dyn_cast<tensor::ExtractSliceOp>(op)) {
    llvm::SmallBitVector dropped = extract.getDroppedDims();
    unsigned kept = 0;
    for (auto [source, size] : llvm::enumerate(extract.getMixedSizes()))
      if (!dropped.test(source) && kept++ == dim)
        return getExtent(size);
  }
  AxisBlock none = fail(op, "has a size that is not known", b.getIndexType());
  return {none, std::nullopt, none};
}

ProgramEmitter::Extent ProgramEmitter::getLoopExtent(linalg::GenericOp op, unsigned loop) {
  if (int64_t range = op.getStaticLoopRanges()[loop]; range != ShapedType::kDynamic)
    return getExtent(Builder(op.getContext()).getIndexAttr(range));
  for (OpOperand &operand : op->getOpOperands())
    for (auto [dim, expr] : llvm::enumerate(op.getMatchingIndexingMap(&operand).getResults()))
      if (auto position = dyn_cast<AffineDimExpr>(expr); position && position.getPosition() == loop)
        return getDimExtent(operand.get(), dim);
  AxisBlock none = fail(op, "has a loop of unknown size", IndexType::get(op.getContext()));
  return {none, std::nullopt, none};
}

int64_t ProgramEmitter::getBlockSize(const Extent &extent) {
  int64_t bound = std::max<int64_t>(1, *extent.bound);
  return bound == 1 ? 1 : std::max<int64_t>(minBlock, llvm::PowerOf2Ceil(bound));
}

AxisBlock ProgramEmitter::getWhole(const Extent &extent, ArrayRef<const Axis *> used) {
  int64_t size = getBlockSize(extent);
  bool isStatic = matchPattern(extent.size.value, m_Constant());
  if (size == 1 && isStatic && *extent.bound == 1)
    return blocks.index(0);
  for (auto &[value, axis] : wholeAxes)
    if (value == extent.size.value && !llvm::is_contained(used, axis))
      return blocks.getIndex(axis);
  bool isFull = isStatic && *extent.bound == size;
  const Axis *axis = blocks.makeAxis(size, nextOrder++, {}, isFull ? AxisBlock() : extent.limit);
  wholeAxes.push_back({extent.size.value, axis});
  return blocks.getIndex(axis);
}

SmallVector<ProgramEmitter::Loop> ProgramEmitter::choose(ArrayRef<std::pair<unsigned, Extent>> dims,
                                                         ArrayRef<const Axis *> given, Indices &indices) {
  SmallVector<const Axis *> used(given);
  int64_t elements = 1;
  for (const Axis *axis : used)
    elements *= axis->size;
  SmallVector<bool> isWhole(dims.size());
  for (unsigned i = dims.size(); i-- > 0;) {
    const Extent &extent = dims[i].second;
    if (!extent.bound || getBlockSize(extent) > options.maxElements / elements)
      continue;
    isWhole[i] = true;
    elements *= getBlockSize(extent);
  }
  int64_t left = std::max<int64_t>(1, options.chunkElements / elements);
  SmallVector<Loop> loops;
  for (unsigned i = 0; i < dims.size(); ++i)
    if (isWhole[i]) {
      indices[dims[i].first] = getWhole(dims[i].second, used);
      llvm::append_range(used, indices[dims[i].first].axes);
    } else {
      loops.push_back({dims[i].first, dims[i].second, 1});
    }
  for (Loop &loop : llvm::reverse(loops)) {
    loop.chunk = loop.extent.bound ? std::min<int64_t>(left, llvm::PowerOf2Ceil(*loop.extent.bound)) : left;
    left /= loop.chunk;
  }
  return loops;
}

void ProgramEmitter::runLoops(ArrayRef<Loop> loops, Indices &indices, SmallVector<Value> &carried,
                              llvm::function_ref<void(SmallVector<Value> &)> body) {
  if (loops.empty())
    return body(carried);
  const Loop &loop = loops.front();
  bool isStatic = loop.extent.bound && matchPattern(loop.extent.size.value, m_Constant());
  if (isStatic && *loop.extent.bound > 0 && *loop.extent.bound <= loop.chunk) {
    // One iteration.
    bool isFull = *loop.extent.bound == loop.chunk;
    indices[loop.dim] =
        loop.chunk == 1
            ? blocks.index(0)
            : blocks.getIndex(blocks.makeAxis(loop.chunk, nextOrder++, {}, isFull ? AxisBlock() : loop.extent.size));
    return runLoops(loops.drop_front(), indices, carried, body);
  }
  scf::ForOp op = blocks.enterLoop(loop.extent.size, loop.chunk, carried);
  AxisBlock start{op.getInductionVar(), {}, blocks.getLevel()};
  if (loop.chunk == 1) {
    indices[loop.dim] = start;
  } else {
    bool isEven = isStatic && *loop.extent.bound % loop.chunk == 0;
    indices[loop.dim] =
        blocks.getIndex(blocks.makeAxis(loop.chunk, nextOrder++, start, isEven ? AxisBlock() : loop.extent.size));
  }
  carried.assign(op.getRegionIterArgs().begin(), op.getRegionIterArgs().end());
  runLoops(loops.drop_front(), indices, carried, body);
  blocks.leaveLoop(carried);
  carried.assign(op.getResults().begin(), op.getResults().end());
}

// ---- memory

Exprs ProgramEmitter::getStrides(unsigned argument) {
  Exprs strides;
  if (auto given = kernel.getArgAttrOfType<AffineMapAttr>(argument, "kernel.strides")) {
    strides.assign(given.getValue().getResults().begin(), given.getValue().getResults().end());
  } else {
    AffineExpr stride = getAffineConstantExpr(1, kernel.getContext());
    for (AffineExpr size : llvm::reverse(getArgumentSizes(kernel, argument))) {
      strides.insert(strides.begin(), stride);
      stride = simplifyAffineExpr(stride * size, 0, kMaxSymbols);
    }
  }
  return strides;
}

AxisBlock ProgramEmitter::getPointers(unsigned argument, const Indices &indices) {
  AxisBlock offset = blocks.index(0);
  for (auto [index, stride] : llvm::zip_equal(indices, getStrides(argument)))
    offset = blocks.add(offset, blocks.multiply(blocks.castInteger(index, blocks.indexType), getSize(stride)));
  AxisBlock base{program.getArgument(argument), {}, 0};
  if (matchPattern(offset.value, m_Zero()))
    return base;
  return blocks.apply({base, offset}, [&](OpBuilder &b, ValueRange x) {
    return tt::AddPtrOp::create(b, blocks.loc, x[0].getType(), x[0], x[1]);
  });
}

AxisBlock ProgramEmitter::load(unsigned argument, const Indices &indices) {
  if (describedAxis)
    if (AxisBlock block = loadDescribed(argument, indices))
      return block;
  AxisBlock pointers = getPointers(argument, indices), mask = blocks.getMask(pointers.axes);
  if (guard)
    mask = mask ? blocks.make<arith::AndIOp>(mask, guard) : guard;
  Type element = cast<tt::PtrType>(pointers.getElementType()).getPointeeType();
  AxisBlock result;
  if (mask) {
    auto axes = blocks.join({pointers, mask});
    result = blocks.apply({pointers, mask, blocks.zero(element)}, [&](OpBuilder &b, ValueRange x) {
      return tt::LoadOp::create(b, blocks.loc, blocks.getType(element, axes), x[0], x[1], x[2]);
    });
  } else {
    result = blocks.apply(pointers, [&](OpBuilder &b, ValueRange x) {
      return tt::LoadOp::create(b, blocks.loc, blocks.getType(element, pointers.axes), x[0], Value(), Value());
    });
  }
  if (!cast<RankedTensorType>(kernel.getArgument(argument).getType()).getElementType().isInteger(1))
    return result;
  return blocks.apply({result, blocks.zero(element)}, [&](OpBuilder &b, ValueRange x) {
    return arith::CmpIOp::create(b, blocks.loc, arith::CmpIPredicate::ne, x[0], x[1]);
  });
}

void ProgramEmitter::store(const Output &output, const Indices &indices, const AxisBlock &given) {
  Indices places;
  for (auto [dim, index] : llvm::enumerate(indices))
    places.push_back(output.offsets.empty() ? index : blocks.add(getScalar(output.offsets[dim]), index));
  AxisBlock pointers = getPointers(output.argument, places), mask = blocks.getMask(pointers.axes), value = given;
  if (value.getElementType().isInteger(1))
    value = blocks.castInteger(value, IntegerType::get(kernel.getContext(), 8), false);
  SmallVector<AxisBlock> operands{pointers, value};
  if (mask)
    operands.push_back(mask);
  SmallVector<Value> values;
  unsigned level = blocks.getLevel();
  for (const AxisBlock &operand : operands)
    values.push_back(blocks.expand(operand, blocks.join(operands)).value);
  OpBuilder b = blocks.at(level);
  tt::StoreOp::create(b, blocks.loc, values[0], values[1], mask ? values[2] : Value());
}
