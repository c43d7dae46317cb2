// The prim ops: verifiers and type inference. Messages quote the constraints of the ops' descriptions.
#include "dialects/Prim/Prim.h"
#include "dialects/Prim/PrimSizes.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace lamina;
using namespace lamina::prim;

using EmitError = llvm::function_ref<InFlightDiagnostic()>;
using OptionalLocation = std::optional<Location>;

static InFlightDiagnostic emitAt(OptionalLocation loc, StringRef op) {
  if (!loc)
    return {};
  return emitError(*loc) << "'" << op << "' op ";
}

// ---- checks that several ops share -----------------------------------------------------------------------------

static LogicalResult verifyDim(int64_t dim, int64_t rank, StringRef constraint, EmitError emitError) {
  if (dim < 0 || dim >= rank)
    return emitError() << constraint << ": dimension " << dim << " is not in 0.." << rank - 1;
  return success();
}

static LogicalResult verifyDims(ArrayRef<int64_t> dims, int64_t rank, StringRef constraint, EmitError emitError) {
  for (auto [i, dim] : llvm::enumerate(dims)) {
    if (failed(verifyDim(dim, rank, constraint, emitError)))
      return failure();
    if (llvm::is_contained(dims.take_front(i), dim))
      return emitError() << constraint << ": dimension " << dim << " occurs twice";
  }
  return success();
}

static LogicalResult verifyCount(size_t count, size_t expected, StringRef what, StringRef constraint,
                                 EmitError emitError) {
  if (count != expected)
    return emitError() << constraint << ": " << what << " has " << count << " entries, not " << expected;
  return success();
}

static LogicalResult verifyAtLeast(ArrayRef<int64_t> values, int64_t least, StringRef what, StringRef constraint,
                                   EmitError emitError) {
  for (int64_t value : values)
    if (value < least)
      return emitError() << constraint << ": " << what << " has " << value << ", which is below " << least;
  return success();
}

static bool differ(int64_t a, int64_t b) { return !ShapedType::isDynamic(a) && !ShapedType::isDynamic(b) && a != b; }

static LogicalResult verifyCombiner(Combiner combiner, Type elementType, EmitError emitError) {
  bool logical = combiner == Combiner::any || combiner == Combiner::all;
  if (logical && !elementType.isInteger(1))
    return emitError() << "C2: " << stringifyCombiner(combiner) << " takes i1, not " << elementType;
  if ((combiner == Combiner::sum || combiner == Combiner::prod) && elementType.isInteger(1))
    return emitError() << "C2: " << stringifyCombiner(combiner) << " takes numbers, not i1";
  return success();
}

/// The attribute `sizes` is there iff the result type has ?, and agrees with it.
static LogicalResult verifySizesAttr(std::optional<AffineMap> sizes, RankedTensorType type, StringRef constraint,
                                     EmitError emitError) {
  if (type.hasStaticShape())
    return sizes ? emitError() << constraint << ": sizes are given, but the result type has no ?" : success();
  if (!sizes)
    return emitError() << constraint << ": the result type has ?, but no sizes are given";
  return verifySizes(*sizes, type.getShape(), (constraint + ": sizes").str(), emitError);
}

/// Compares the static sizes of a result with those that follow from the operands.
static LogicalResult verifyResultSizes(Operation *op, StringRef constraint) {
  SmallVector<Exprs> operands;
  unsigned next = kFirstUnknownSymbol;
  for (Value operand : op->getOperands())
    operands.push_back(getTypeSizes(cast<RankedTensorType>(operand.getType()), next));
  FailureOr<SmallVector<Exprs>> inferred = inferUnrefinedSizes(op, operands);
  if (failed(inferred))
    return op->emitOpError("has no sizes");
  for (auto [value, sizes] : llvm::zip(op->getResults(), *inferred)) {
    ArrayRef<int64_t> shape = cast<RankedTensorType>(value.getType()).getShape();
    if (shape.size() != sizes.size())
      return op->emitOpError(constraint) << ": the result has rank " << shape.size() << ", not " << sizes.size();
    for (auto [i, size] : llvm::enumerate(sizes)) {
      auto constant = dyn_cast<AffineConstantExpr>(size);
      if (constant && constant.getValue() < 0)
        return op->emitOpError(constraint) << ": size of result dimension " << i << " would be " << constant.getValue();
      if (constant && differ(constant.getValue(), shape[i]))
        return op->emitOpError(constraint)
               << ": size of result dimension " << i << " is " << shape[i] << ", not " << constant.getValue();
    }
  }
  return success();
}

static RankedTensorType getTensor(Value value) { return dyn_cast<RankedTensorType>(value.getType()); }

/// The operands' sizes for type inference, which comes before any check of the operands' types.
static LogicalResult getOperandSizes(ValueRange operands, size_t least, SmallVectorImpl<Exprs> &sizes,
                                     EmitError emitError) {
  if (operands.size() < least)
    return emitError() << "has " << operands.size() << " operands, and needs " << least;
  unsigned next = kFirstUnknownSymbol;
  for (Value operand : operands) {
    RankedTensorType type = getTensor(operand);
    if (!type)
      return emitError() << "takes ranked tensors, not " << operand.getType();
    sizes.push_back(getTypeSizes(type, next));
  }
  return success();
}

/// The operands' sizes for type inference, and the dimension of the first that the attribute `dim` names.
static FailureOr<int64_t> getSizesAndDim(ValueRange operands, IntegerAttr dim, StringRef constraint,
                                         SmallVectorImpl<Exprs> &sizes, EmitError emitError) {
  if (failed(getOperandSizes(operands, 1, sizes, emitError)))
    return failure();
  if (!dim)
    return emitError() << "has no dim";
  if (failed(verifyDim(dim.getInt(), sizes[0].size(), constraint, emitError)))
    return failure();
  return dim.getInt();
}

/// All sizes but that of `except` (-1: none) are equal where static.
static LogicalResult verifySameShape(ValueRange values, int64_t except, StringRef constraint, EmitError emitError) {
  RankedTensorType first = getTensor(values.front());
  for (auto [k, value] : llvm::enumerate(values)) {
    RankedTensorType type = getTensor(value);
    if (type.getRank() != first.getRank())
      return emitError() << constraint << ": operand " << k << " has rank " << type.getRank() << ", the first has "
                         << first.getRank();
    if (type.getElementType() != first.getElementType())
      return emitError() << constraint << ": operand " << k << " has elements " << type.getElementType()
                         << ", the first has " << first.getElementType();
    for (int64_t i = 0; i < type.getRank(); ++i)
      if (i != except && differ(type.getDimSize(i), first.getDimSize(i)))
        return emitError() << constraint << ": size of dimension " << i << " is " << type.getDimSize(i)
                           << " in operand " << k << ", " << first.getDimSize(i) << " in the first";
  }
  return success();
}

bool prim::areCompatibleTypes(TypeRange lhs, TypeRange rhs) {
  return lhs.size() == rhs.size() && llvm::all_of(llvm::zip(lhs, rhs), [](auto pair) {
           auto [a, b] = pair;
           return getElementTypeOrSelf(a) == getElementTypeOrSelf(b) && succeeded(verifyCompatibleShape(a, b));
         });
}

// ---- attributes of functions -----------------------------------------------------------------------------------

static LogicalResult verifySymbols(Operation *op, Attribute attr) {
  auto array = dyn_cast<ArrayAttr>(attr);
  if (!array)
    return op->emitOpError("prim.symbols is an array of dictionaries");
  const StringRef keys[] = {"min", "max"};
  if (array.size() > kMaxSymbols)
    return op->emitOpError("prim.symbols has more than ") << kMaxSymbols << " symbols";
  for (auto [i, entry] : llvm::enumerate(array)) {
    auto dict = dyn_cast<DictionaryAttr>(entry);
    if (!dict || !dict.getAs<StringAttr>("name"))
      return op->emitOpError("prim.symbols: entry ") << i << " is no dictionary with a string `name`";
    int64_t bounds[2] = {0, std::numeric_limits<int64_t>::max()};
    for (auto [k, key] : llvm::enumerate(keys))
      if (Attribute bound = dict.get(key)) {
        auto integer = dyn_cast<IntegerAttr>(bound);
        if (!integer || !integer.getType().isInteger(64))
          return op->emitOpError("prim.symbols: `") << key << "` of entry " << i << " is not an i64";
        bounds[k] = integer.getInt();
      }
    if (bounds[0] < 0 || bounds[0] > bounds[1])
      return op->emitOpError("prim.symbols: entry ") << i << " needs 0 <= min <= max";
  }
  return success();
}

static LogicalResult verifyChecks(FunctionOpInterface func, Attribute attr) {
  auto array = dyn_cast<ArrayAttr>(attr);
  if (!array || !llvm::all_of(array, llvm::IsaPred<StringAttr>))
    return func.emitOpError("prim.checks is an array of strings");
  // Once memory is planned the results are arguments.
  ArrayRef<Type> results = func.getResultTypes();
  if (results.empty())
    return success();
  if (results.size() < array.size())
    return func.emitOpError("prim.checks has ") << array.size() << " messages for " << results.size() << " results";
  for (Type type : results.take_back(array.size()))
    if (auto tensor = dyn_cast<RankedTensorType>(type);
        !tensor || tensor.getRank() != 0 || !tensor.getElementType().isInteger(1))
      return func.emitOpError("prim.checks: the last ") << array.size() << " results must be 0-d i1 tensors";
  return success();
}

LogicalResult PrimDialect::verifyOperationAttribute(Operation *op, NamedAttribute attr) {
  bool symbols = attr.getName() == "prim.symbols", checks = attr.getName() == "prim.checks";
  if (!symbols && !checks)
    return success();
  auto func = dyn_cast<FunctionOpInterface>(op);
  if (!func)
    return op->emitOpError() << attr.getName().getValue() << " is an attribute of functions";
  return symbols ? verifySymbols(op, attr.getValue()) : verifyChecks(func, attr.getValue());
}

LogicalResult PrimDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned index, NamedAttribute attr) {
  if (attr.getName() == "prim.constant") {
    auto key = dyn_cast<StringAttr>(attr.getValue());
    return key && !key.empty() ? success() : op->emitOpError("prim.constant is the key of a constant, a string");
  }
  if (attr.getName() != "prim.sizes")
    return success();
  auto sizes = dyn_cast<AffineMapAttr>(attr.getValue());
  if (!sizes)
    return op->emitOpError("prim.sizes is an affine map");
  auto func = dyn_cast<FunctionOpInterface>(op);
  if (!func || index >= func.getArgumentTypes().size())
    return op->emitOpError("prim.sizes is an attribute of function arguments");
  auto type = dyn_cast<ShapedType>(func.getArgumentTypes()[index]);
  if (!type || !type.hasRank())
    return success(); // a pointer, once the kernel is lowered
  std::string what = llvm::formatv("prim.sizes of argument {0}", index);
  return verifySizes(sizes.getValue(), type.getShape(), what, [&] { return op->emitOpError(); });
}

// ---- elementwise -----------------------------------------------------------------------------------------------

LogicalResult CompareOp::inferReturnTypes(MLIRContext *context, OptionalLocation loc, ValueRange operands,
                                          DictionaryAttr, OpaqueProperties, RegionRange, SmallVectorImpl<Type> &types) {
  auto emit = [&] { return emitAt(loc, getOperationName()); };
  SmallVector<Exprs> sizes;
  if (failed(getOperandSizes(operands, 2, sizes, emit)) || failed(verifySameShape(operands, -1, "C1", emit)))
    return failure();
  types.push_back(getTensorType(elementwiseSizes(sizes), IntegerType::get(context, 1)));
  return success();
}

LogicalResult BitcastOp::verify() {
  Type from = getOperand().getType().getElementType(), to = getType().getElementType();
  if (from.getIntOrFloatBitWidth() != to.getIntOrFloatBitWidth())
    return emitOpError("C1: ") << from << " and " << to << " differ in width";
  return success();
}

// ---- shapes ----------------------------------------------------------------------------------------------------

LogicalResult SizeOp::verify() {
  if (getType().getRank() != 0)
    return emitOpError("C2: the result has rank ") << getType().getRank() << ", not 0";
  return verifyExprs(getValue(), 1, "C1: value", [&] { return emitOpError(); });
}

LogicalResult IotaOp::verify() {
  auto emit = [&] { return emitOpError(); };
  if (failed(verifyDim(getDim(), getType().getRank(), "C1", emit)))
    return failure();
  return verifySizesAttr(getSizes(), getType(), "C2", emit);
}

LogicalResult BroadcastOp::verify() {
  auto emit = [&] { return emitOpError(); };
  RankedTensorType from = getOperand().getType(), to = getType();
  ArrayRef<int64_t> dims = getDims();
  if (failed(verifyCount(dims.size(), from.getRank(), "dims", "C1", emit)) ||
      failed(verifyDims(dims, to.getRank(), "C1", emit)))
    return failure();
  if (!llvm::is_sorted(dims))
    return emitOpError("C1: dims are not increasing");
  for (auto [i, dim] : llvm::enumerate(dims))
    if (differ(from.getDimSize(i), to.getDimSize(dim)))
      return emitOpError("C2: size of operand dimension ")
             << i << " is " << from.getDimSize(i) << ", the result's is " << to.getDimSize(dim);
  if (from.getElementType() != to.getElementType())
    return emitOpError("C3: element types are ") << from.getElementType() << " and " << to.getElementType();
  return verifySizesAttr(getSizes(), to, "C4", emit);
}

LogicalResult TransposeOp::inferReturnTypes(MLIRContext *, OptionalLocation loc, ValueRange operands, DictionaryAttr,
                                            OpaqueProperties properties, RegionRange, SmallVectorImpl<Type> &types) {
  auto emit = [&] { return emitAt(loc, getOperationName()); };
  SmallVector<Exprs> sizes;
  DenseI64ArrayAttr permutation = properties.as<Properties *>()->permutation;
  if (failed(getOperandSizes(operands, 1, sizes, emit)))
    return failure();
  if (!permutation)
    return emit() << "has no permutation";
  if (failed(verifyCount(permutation.size(), sizes[0].size(), "permutation", "C1", emit)) ||
      failed(verifyDims(permutation, sizes[0].size(), "C1", emit)))
    return failure();
  types.push_back(getTensorType(transposeSizes(sizes[0], permutation), getTensor(operands[0]).getElementType()));
  return success();
}

LogicalResult ReshapeOp::verify() {
  RankedTensorType from = getOperand().getType(), to = getType();
  if (from.getElementType() != to.getElementType())
    return emitOpError("C2: element types are ") << from.getElementType() << " and " << to.getElementType();
  if (from.hasStaticShape() && to.hasStaticShape()) {
    AffineExpr a = getNumElements(getStaticSizes(from), getContext()),
               b = getNumElements(getStaticSizes(to), getContext());
    if (a != b)
      return emitOpError("C1: the operand has ") << toString(a) << " elements, the result " << toString(b);
  }
  return verifySizesAttr(getSizes(), to, "C3", [&] { return emitOpError(); });
}

LogicalResult SliceOp::verify() {
  auto emit = [&] { return emitOpError(); };
  RankedTensorType from = getOperand().getType(), to = getType();
  size_t rank = from.getRank();
  if (failed(verifyExprs(getStarts(), rank, "C1: starts", emit)) ||
      failed(verifyExprs(getLimits(), rank, "C1: limits", emit)) ||
      failed(verifyCount(getStrides().size(), rank, "step", "C1", emit)) ||
      failed(verifyAtLeast(getStrides(), 1, "step", "C3", emit)))
    return failure();
  if (from.getElementType() != to.getElementType())
    return emitOpError("C5: element types are ") << from.getElementType() << " and " << to.getElementType();
  for (auto [i, start, limit] : llvm::enumerate(getStarts().getResults(), getLimits().getResults())) {
    auto first = dyn_cast<AffineConstantExpr>(start), last = dyn_cast<AffineConstantExpr>(limit);
    if ((first && first.getValue() < 0) || (last && last.getValue() < 0) ||
        (first && last && first.getValue() > last.getValue()) ||
        (last && !from.isDynamicDim(i) && last.getValue() > from.getDimSize(i)) ||
        (first && !from.isDynamicDim(i) && first.getValue() > from.getDimSize(i)))
      return emitOpError("C2: dimension ")
             << i << ": 0 <= " << toString(start) << " <= " << toString(limit) << " <= size does not hold";
  }
  return verifyResultSizes(*this, "C4");
}

LogicalResult PadOp::verify() {
  auto emit = [&] { return emitOpError(); };
  size_t rank = getOperand().getType().getRank();
  if (failed(verifyExprs(getLow(), rank, "C1: low", emit)) || failed(verifyExprs(getHigh(), rank, "C1: high", emit)))
    return failure();
  for (AffineMap amounts : {getLow(), getHigh()})
    for (AffineExpr amount : amounts.getResults())
      if (auto constant = dyn_cast<AffineConstantExpr>(amount); constant && constant.getValue() < 0)
        return emitOpError("C1: an amount is ") << constant.getValue() << ", which is below 0";
  if (getValue().getType().getRank() != 0)
    return emitOpError("C2: value has rank ") << getValue().getType().getRank() << ", not 0";
  return verifyResultSizes(*this, "C3");
}

LogicalResult ConcatenateOp::inferReturnTypes(MLIRContext *, OptionalLocation loc, ValueRange operands, DictionaryAttr,
                                              OpaqueProperties properties, RegionRange, SmallVectorImpl<Type> &types) {
  auto emit = [&] { return emitAt(loc, getOperationName()); };
  SmallVector<Exprs> sizes;
  if (operands.empty())
    return emit() << "C1: there are no operands";
  FailureOr<int64_t> dim = getSizesAndDim(operands, properties.as<Properties *>()->dim, "C2", sizes, emit);
  if (failed(dim) || failed(verifySameShape(operands, *dim, "C3", emit)))
    return failure();
  types.push_back(getTensorType(concatenateSizes(sizes, *dim), getTensor(operands[0]).getElementType()));
  return success();
}

LogicalResult ReverseOp::verify() {
  return verifyDims(getDims(), getType().getRank(), "C1", [&] { return emitOpError(); });
}

static LogicalResult verifyIndexed(ValueRange operand, ValueRange indices, ArrayRef<int64_t> dims,
                                   EmitError emitError) {
  if (dims.empty())
    return emitError() << "C1: there are no dims";
  if (failed(verifyDims(dims, getTensor(operand[0]).getRank(), "C1", emitError)))
    return failure();
  if (indices.size() != dims.size())
    return emitError() << "C1: there are " << indices.size() << " index tensors for " << dims.size() << " dims";
  return verifySameShape(indices, -1, "C2", emitError);
}

LogicalResult GatherOp::inferReturnTypes(MLIRContext *, OptionalLocation loc, ValueRange operands, DictionaryAttr,
                                         OpaqueProperties properties, RegionRange, SmallVectorImpl<Type> &types) {
  auto emit = [&] { return emitAt(loc, getOperationName()); };
  SmallVector<Exprs> sizes;
  DenseI64ArrayAttr dims = properties.as<Properties *>()->dims;
  if (failed(getOperandSizes(operands, 1, sizes, emit)))
    return failure();
  if (!dims)
    return emit() << "has no dims";
  if (failed(verifyIndexed(operands.take_front(1), operands.drop_front(), dims, emit)))
    return failure();
  Exprs batch = elementwiseSizes(ArrayRef<Exprs>(sizes).drop_front());
  types.push_back(getTensorType(gatherSizes(sizes[0], batch, dims), getTensor(operands[0]).getElementType()));
  return success();
}

LogicalResult ScatterOp::verify() {
  auto emit = [&] { return emitOpError(); };
  Value operand = getOperand();
  if (failed(verifyIndexed(operand, getIndices(), getDims(), emit)))
    return failure();
  SmallVector<Exprs> sizes;
  if (failed(getOperandSizes(getOperands(), 2, sizes, emit)))
    return failure();
  Exprs batch = elementwiseSizes(ArrayRef<Exprs>(sizes).drop_front(2));
  RankedTensorType expected = getTensorType(gatherSizes(sizes[0], batch, getDims()), getType().getElementType());
  if (!areCompatibleTypes(expected, getUpdates().getType()))
    return emitOpError("C4: the updates have type ") << getUpdates().getType() << ", not " << expected;
  if (getInPlace()) {
    Type element = getType().getElementType();
    bool isSum = getMode() == ScatterMode::sum,
         isExtremum = llvm::is_contained({ScatterMode::max, ScatterMode::min}, getMode());
    bool isInteger = element.isSignlessInteger(32) || element.isSignlessInteger(64);
    if (!(isInteger && (isSum || isExtremum)) && !(isSum && (element.isF32() || element.isF64())))
      return emitOpError("C5: there is no ") << stringifyScatterMode(getMode()) << " of " << element << " in place";
  }
  return success();
}

// ---- reductions ------------------------------------------------------------------------------------------------

LogicalResult ReduceOp::inferReturnTypes(MLIRContext *, OptionalLocation loc, ValueRange operands, DictionaryAttr,
                                         OpaqueProperties opaque, RegionRange, SmallVectorImpl<Type> &types) {
  auto emit = [&] { return emitAt(loc, getOperationName()); };
  SmallVector<Exprs> sizes;
  Properties &properties = *opaque.as<Properties *>();
  if (failed(getOperandSizes(operands, 1, sizes, emit)))
    return failure();
  if (!properties.dims || !properties.combiner)
    return emit() << "has no dims or no combiner";
  Type elementType = getTensor(operands[0]).getElementType();
  if (failed(verifyDims(properties.dims, sizes[0].size(), "C1", emit)) ||
      failed(verifyCombiner(properties.combiner.getValue(), elementType, emit)))
    return failure();
  types.push_back(getTensorType(dropSizes(sizes[0], properties.dims), elementType));
  return success();
}

LogicalResult ArgReduceOp::inferReturnTypes(MLIRContext *context, OptionalLocation loc, ValueRange operands,
                                            DictionaryAttr, OpaqueProperties properties, RegionRange,
                                            SmallVectorImpl<Type> &types) {
  auto emit = [&] { return emitAt(loc, getOperationName()); };
  SmallVector<Exprs> sizes;
  FailureOr<int64_t> dim = getSizesAndDim(operands, properties.as<Properties *>()->dim, "C1", sizes, emit);
  if (failed(dim))
    return failure();
  if (sizes[0][*dim] == 0)
    return emit() << "C2: the size of dimension " << *dim << " is 0";
  types.push_back(getTensorType(dropSizes(sizes[0], *dim), IntegerType::get(context, 64)));
  return success();
}

LogicalResult ScanOp::verify() {
  auto emit = [&] { return emitOpError(); };
  if (failed(verifyDim(getDim(), getType().getRank(), "C1", emit)))
    return failure();
  return verifyCombiner(getCombiner(), getType().getElementType(), emit);
}

LogicalResult SortOp::inferReturnTypes(MLIRContext *context, OptionalLocation loc, ValueRange operands, DictionaryAttr,
                                       OpaqueProperties properties, RegionRange, SmallVectorImpl<Type> &types) {
  auto emit = [&] { return emitAt(loc, getOperationName()); };
  SmallVector<Exprs> sizes;
  FailureOr<int64_t> dim = getSizesAndDim(operands, properties.as<Properties *>()->dim, "C1", sizes, emit);
  if (failed(dim))
    return failure();
  RankedTensorType type = getTensor(operands[0]);
  types.push_back(type);
  types.push_back(type.clone(IntegerType::get(context, 64)));
  return success();
}

LogicalResult ReduceWindowOp::verify() {
  auto emit = [&] { return emitOpError(); };
  size_t rank = getOperand().getType().getRank();
  for (auto [values, what] :
       {std::pair(getWindowSizes(), "window"), std::pair(getStrides(), "strides"),
        std::pair(getDilations(), "dilations"), std::pair(getLow(), "low"), std::pair(getHigh(), "high")})
    if (failed(verifyCount(values.size(), rank, what, "C1", emit)))
      return failure();
  for (auto [values, what] : {std::pair(getWindowSizes(), "window"), std::pair(getStrides(), "strides"),
                              std::pair(getDilations(), "dilations")})
    if (failed(verifyAtLeast(values, 1, what, "C1", emit)))
      return failure();
  if (failed(verifyCombiner(getCombiner(), getType().getElementType(), emit)))
    return failure();
  return verifyResultSizes(*this, "C3");
}

// ---- contractions ----------------------------------------------------------------------------------------------

/// The element type of a sum of products: the operands', or f32 for f16 and bf16.
static LogicalResult verifyAccumulator(RankedTensorType operand, RankedTensorType result, StringRef constraint,
                                       EmitError emitError) {
  Type from = operand.getElementType(), to = result.getElementType();
  if (from != to && !((from.isF16() || from.isBF16()) && to.isF32()))
    return emitError() << constraint << ": " << to << " does not accumulate products of " << from;
  return success();
}

LogicalResult DotGeneralOp::verify() {
  auto emit = [&] { return emitOpError(); };
  RankedTensorType lhs = getLhs().getType(), rhs = getRhs().getType();
  if (getLhsBatch().size() != getRhsBatch().size() || getLhsContract().size() != getRhsContract().size())
    return emitOpError("C1: the two sides have different numbers of batch or contracted dimensions");
  SmallVector<int64_t> lhsDims(getLhsBatch()), rhsDims(getRhsBatch());
  llvm::append_range(lhsDims, getLhsContract());
  llvm::append_range(rhsDims, getRhsContract());
  if (failed(verifyDims(lhsDims, lhs.getRank(), "C1", emit)) || failed(verifyDims(rhsDims, rhs.getRank(), "C1", emit)))
    return failure();
  for (auto [i, j] : llvm::zip(lhsDims, rhsDims))
    if (differ(lhs.getDimSize(i), rhs.getDimSize(j)))
      return emitOpError("C1: size of lhs dimension ")
             << i << " is " << lhs.getDimSize(i) << ", that of rhs dimension " << j << " is " << rhs.getDimSize(j);
  if (lhs.getElementType() != rhs.getElementType())
    return emitOpError("C2: element types are ") << lhs.getElementType() << " and " << rhs.getElementType();
  if (getTf32() && !lhs.getElementType().isF32())
    return emitOpError("C5: tf32 is for f32, not ") << lhs.getElementType();
  if (failed(verifyAccumulator(lhs, getType(), "C4", emit)))
    return failure();
  return verifyResultSizes(*this, "C3");
}

LogicalResult ConvolutionOp::verify() {
  auto emit = [&] { return emitOpError(); };
  RankedTensorType lhs = getLhs().getType(), rhs = getRhs().getType();
  int64_t spatial = lhs.getRank() - 2;
  if (spatial < 1 || spatial > 3 || rhs.getRank() != lhs.getRank())
    return emitOpError("C1: the operands have ranks ")
           << lhs.getRank() << " and " << rhs.getRank() << ", not one of 3 to 5";
  std::pair<ArrayRef<int64_t>, StringRef> lists[] = {{getStrides(), "strides"},
                                                     {getDilations(), "dilations"},
                                                     {getLhsDilations(), "lhs_dilations"},
                                                     {getLow(), "low"},
                                                     {getHigh(), "high"}};
  for (auto [values, what] : lists)
    if (failed(verifyCount(values.size(), spatial, what, "C1", emit)))
      return failure();
  for (auto [values, what] : ArrayRef(lists).take_front(3))
    if (failed(verifyAtLeast(values, 1, what, "C1", emit)))
      return failure();
  int64_t groups = getGroups();
  if (groups < 1)
    return emitOpError("C2: groups is ") << groups;
  int64_t channels = lhs.getDimSize(1), perGroup = rhs.getDimSize(1), outs = rhs.getDimSize(0);
  if (!ShapedType::isDynamic(channels) && channels % groups != 0)
    return emitOpError("C2: ") << channels << " channels are not divisible by " << groups << " groups";
  if (!ShapedType::isDynamic(channels) && differ(channels / groups, perGroup))
    return emitOpError("C2: rhs has ") << perGroup << " channels a group, lhs " << channels / groups;
  if (!ShapedType::isDynamic(outs) && outs % groups != 0)
    return emitOpError("C2: ") << outs << " outputs are not divisible by " << groups << " groups";
  if (lhs.getElementType() != rhs.getElementType())
    return emitOpError("C4: element types are ") << lhs.getElementType() << " and " << rhs.getElementType();
  if (getTf32() && !lhs.getElementType().isF32())
    return emitOpError("C4: tf32 is for f32, not ") << lhs.getElementType();
  if (failed(verifyAccumulator(lhs, getType(), "C4", emit)))
    return failure();
  return verifyResultSizes(*this, "C5");
}
