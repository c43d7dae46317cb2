// lamina-parallel-scatters: scatters whose updates may be applied in any order, by many programs at once.
#include "dialects/Prim/Prim.h"
#include "dialects/Prim/PrimSizes.h"
#include "lib/Support/PassOptions.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Pass/Pass.h"

namespace lamina {
#define GEN_PASS_DECL_PARALLELSCATTERS
#define GEN_PASS_DEF_PARALLELSCATTERS
#include "lib/Transforms/Fusion/Passes.h.inc"
} // namespace lamina

using namespace mlir;
using namespace lamina;
using namespace lamina::prim;

namespace {
/// Makes ops before a scatter.
class Maker {
public:
  explicit Maker(ScatterOp op) : builder(op), loc(op.getLoc()) {}

  OpBuilder builder;
  Location loc;

  AffineMapAttr getSizesAttr(RankedTensorType type, ArrayRef<AffineExpr> sizes) {
    return type.hasStaticShape() ? AffineMapAttr() : getExprs(builder.getContext(), sizes);
  }
  Value broadcast(Value value, ArrayRef<int64_t> dims, ArrayRef<AffineExpr> sizes) {
    RankedTensorType type = getTensorType(sizes, getElementTypeOrSelf(value));
    return BroadcastOp::create(builder, loc, type, value, dims, getSizesAttr(type, sizes));
  }
  Value splat(TypedAttr value, ArrayRef<AffineExpr> sizes) {
    auto elements = DenseElementsAttr::get(RankedTensorType::get({}, value.getType()), ArrayRef<Attribute>(value));
    return broadcast(ConstantOp::create(builder, loc, elements.getType(), elements), {}, sizes);
  }
  Value splat(Type element, const APInt &value, ArrayRef<AffineExpr> sizes) {
    return splat(TypedAttr(IntegerAttr::get(element, value)), sizes);
  }
  Value iota(Type element, ArrayRef<AffineExpr> sizes, int64_t dim) {
    RankedTensorType type = getTensorType(sizes, element);
    return IotaOp::create(builder, loc, type, builder.getI64IntegerAttr(dim), getSizesAttr(type, sizes));
  }
  Value convert(Value value, Type element) {
    auto type = cast<RankedTensorType>(value.getType());
    return type.getElementType() == element
               ? value
               : Value(ConvertOp::create(builder, loc, cast<RankedTensorType>(type.clone(element)), value));
  }
  Value reshape(Value value, ArrayRef<AffineExpr> sizes) {
    RankedTensorType type = getTensorType(sizes, getElementTypeOrSelf(value));
    return ReshapeOp::create(builder, loc, type, value, getSizesAttr(type, sizes));
  }
  Value compare(Value lhs, Value rhs, Comparison comparison) {
    return CompareOp::create(builder, loc, cast<RankedTensorType>(lhs.getType()).clone(builder.getI1Type()), comparison,
                             lhs, rhs);
  }
  template <typename Op> Value binary(Value lhs, Value rhs) {
    return Op::create(builder, loc, lhs.getType(), lhs, rhs);
  }
  Value bitcast(Value value, Type element) {
    return BitcastOp::create(builder, loc, cast<RankedTensorType>(value.getType()).clone(element), value);
  }
  /// The negative integers in opposite order, which is what turns the bits of floats into integers of their order, and
  /// back.
  Value mirrorNegative(Value bits, ArrayRef<AffineExpr> sizes) {
    Type element = getElementTypeOrSelf(bits);
    unsigned width = element.getIntOrFloatBitWidth();
    Value sign = binary<ShrOp>(bits, splat(element, APInt(width, width - 1), sizes));
    return binary<XorOp>(bits, binary<AndOp>(sign, splat(element, APInt::getSignedMaxValue(width), sizes)));
  }
};

struct ParallelScatters : lamina::impl::ParallelScattersBase<ParallelScatters> {
  using Base::Base;

  LogicalResult initialize(MLIRContext *context) override {
    return OptionCheck(*this, context).atLeast(leastPositions, 0).atLeast(leastWork, 0).atLeast(sizeHint, 1);
  }

  void runOnOperation() override {
    SizeAnalysis sizes(getOperation());
    SmallVector<ScatterOp> scatters;
    getOperation()->walk([&](ScatterOp op) {
      if (!op.getInPlace() && isWorthIt(op))
        scatters.push_back(op);
    });
    for (ScatterOp op : scatters) {
      Value result = op.getMode() == ScatterMode::assign ? assignLast(op, sizes) : combine(op, sizes);
      if (!result)
        continue;
      op.getResult().replaceAllUsesWith(result);
      op.erase();
      ++numScatters;
    }
  }

  double count(Value value) {
    double product = 1;
    for (int64_t size : cast<RankedTensorType>(value.getType()).getShape())
      product *= static_cast<double>(ShapedType::isDynamic(size) ? sizeHint : size);
    return product;
  }

  bool isWorthIt(ScatterOp op) {
    double positions = count(op.getIndices().front());
    return positions >= static_cast<double>(leastPositions) &&
           positions * count(op.getResult()) >= static_cast<double>(leastWork);
  }

  Value makeInPlace(Maker &make, Value operand, Value updates, ValueRange indices, ArrayRef<int64_t> dims,
                    ScatterMode mode) {
    return ScatterOp::create(make.builder, make.loc, operand.getType(), operand, updates, indices, dims, mode,
                             /*ordered=*/false, /*in_place=*/true);
  }

  /// Sums and extrema, in a type that there are atomic operations of. Null if there is none, or sums that have an
  /// order.
  Value combine(ScatterOp op, SizeAnalysis &sizes) {
    Type element = op.getType().getElementType();
    bool isFloat = isa<FloatType>(element), isSum = op.getMode() == ScatterMode::sum;
    if (op.getMode() == ScatterMode::prod || element.isInteger(1) || (isFloat && isSum && op.getOrdered()))
      return {};
    Maker make(op);
    Exprs shape(sizes.getSizes(op.getOperand())), updateShape(sizes.getSizes(op.getUpdates()));
    Builder &b = make.builder;
    Type wide = element.getIntOrFloatBitWidth() >= 32 ? element : isFloat ? Type(b.getF32Type()) : b.getI32Type();
    auto bits = b.getIntegerType(wide.getIntOrFloatBitWidth());
    // NaN, which has its way, becomes the largest or smallest of all.
    auto encode = [&](Value value, ArrayRef<AffineExpr> of) {
      value = make.convert(value, wide);
      if (!isFloat || isSum)
        return value;
      APFloat nan = APFloat::getNaN(cast<FloatType>(wide).getFloatSemantics(), op.getMode() == ScatterMode::min);
      Value isNaN = make.compare(value, value, Comparison::ne);
      value = SelectOp::create(make.builder, make.loc, value.getType(), isNaN,
                               make.splat(TypedAttr(FloatAttr::get(wide, nan)), of), value);
      return make.mirrorNegative(make.bitcast(value, bits), of);
    };
    Value operand = encode(op.getOperand(), shape), updates = encode(op.getUpdates(), updateShape);
    Value result = makeInPlace(make, operand, updates, op.getIndices(), op.getDims(), op.getMode());
    if (isFloat && !isSum)
      result = make.bitcast(make.mirrorNegative(result, shape), wide);
    return make.convert(result, element);
  }

  /// Whether a size is positive whatever the symbols are.
  bool isPositive(AffineExpr size) {
    if (auto constant = dyn_cast<AffineConstantExpr>(size))
      return constant.getValue() > 0;
    auto symbols = getOperation()->getAttrOfType<ArrayAttr>("prim.symbols");
    auto symbol = dyn_cast<AffineSymbolExpr>(size);
    if (!symbol || !symbols || symbol.getPosition() >= symbols.size())
      return false;
    auto known = dyn_cast<DictionaryAttr>(symbols[symbol.getPosition()]);
    auto least = known ? known.getAs<IntegerAttr>("min") : nullptr;
    return least && least.getInt() > 0;
  }

  /// The last update of each element is found first, by its number; the element is read from there.
  Value assignLast(ScatterOp op, SizeAnalysis &sizes) {
    MLIRContext *context = op.getContext();
    Exprs shape(sizes.getSizes(op.getOperand())), batch(sizes.getSizes(op.getIndices().front()));
    if (!llvm::all_of(batch, [&](AffineExpr size) { return isPositive(size); }))
      return {};
    Maker make(op);
    AffineExpr positions = getNumElements(batch, context);
    auto known = dyn_cast<AffineConstantExpr>(positions);
    Type number = make.builder.getIntegerType(known && known.getValue() <= INT32_MAX ? 32 : 64);
    unsigned width = number.getIntOrFloatBitWidth();

    SmallVector<int64_t> dims(op.getDims()), places, permutation;
    llvm::sort(dims);
    for (int64_t dim : op.getDims())
      places.push_back(llvm::find(dims, dim) - dims.begin());
    Exprs indexed, window;
    for (auto [dim, size] : llvm::enumerate(shape)) {
      const auto *at = llvm::find(dims, static_cast<int64_t>(dim));
      permutation.push_back(at == dims.end() ? dims.size() + window.size() : at - dims.begin());
      (at == dims.end() ? window : indexed).push_back(size);
    }

    Value numbers;
    AffineExpr stride = getAffineConstantExpr(1, context);
    for (int64_t dim = batch.size() - 1; dim >= 0; --dim) {
      Value term = make.iota(number, batch, dim);
      if (auto constant = dyn_cast<AffineConstantExpr>(stride)) {
        if (constant.getValue() != 1)
          term = make.binary<MulOp>(term, make.splat(number, APInt(width, constant.getValue()), batch));
      } else {
        Value size = SizeOp::create(make.builder, make.loc, RankedTensorType::get({}, make.builder.getI64Type()),
                                    getExprs(context, {stride}));
        term = make.binary<MulOp>(term, make.broadcast(make.convert(size, number), {}, batch));
      }
      numbers = numbers ? make.binary<AddOp>(term, numbers) : term;
      stride = simplifySize(stride * batch[dim]);
    }
    if (!numbers)
      numbers = make.splat(number, APInt(width, 0), batch);
    Value none = make.splat(number, APInt::getAllOnes(width), indexed);
    Value last = makeInPlace(make, none, numbers, op.getIndices(), places, ScatterMode::max);
    Value zero = make.splat(number, APInt(width, 0), indexed);
    Value isAssigned = make.broadcast(make.compare(last, zero, Comparison::ge), dims, shape);
    Value place = make.convert(make.binary<MaxOp>(last, zero), make.builder.getI64Type());
    Exprs flat(window), picked(indexed);
    flat.insert(flat.begin(), positions);
    llvm::append_range(picked, window);
    Type element = op.getType().getElementType();
    Value update = GatherOp::create(make.builder, make.loc, getTensorType(picked, element),
                                    make.reshape(op.getUpdates(), flat), ValueRange{place}, ArrayRef<int64_t>{0});
    update = TransposeOp::create(make.builder, make.loc, op.getType(), update, permutation);
    return SelectOp::create(make.builder, make.loc, op.getType(), isAssigned, update, op.getOperand());
  }
};
} // namespace
