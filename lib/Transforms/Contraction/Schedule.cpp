// How one contraction will be run: roles, loop order, kernel and packing.
#include "lib/Transforms/Contraction/Schedule.h"
#include <limits>

using namespace mlir;
using namespace lamina::contraction;

/// With at most this many rows the sums of a dot kernel cost less than packing B.
static constexpr int64_t kDotRows = 8;
/// With at most this many rows a copy of a row-major B is not worth its time.
static constexpr int64_t kInPlaceRows = 16;
/// Both limits where a matrix unit does the arithmetic.
static constexpr int64_t kMatrixRows = 4;
/// The same where the rows of B are near each other and all of it stays in the L2 cache.
static constexpr int64_t kInPlaceRowsNear = 64, kNearStride = 512, kNearElements = 1 << 18;
/// Fewer pixels in a row than this are gathered one by one.
static constexpr int64_t kMinPixels = 4;
/// A vector times a row-major matrix streams whole rows, this many at a time, and keeps the sums in the L1 cache, from
/// this many columns on.
static constexpr int64_t kStreamRows = 16, kStreamColumns = 512, kStreamColumnsMax = 1 << 13;

static int64_t strideOr(const Operand &operand, unsigned loop) {
  return getConstantIntValue(operand.strides[loop]).value_or(std::numeric_limits<int64_t>::max());
}

/// The longest run of loops, outermost first, that walks through `operand` as one loop does and ends with the loop of
/// the smallest stride.
static SmallVector<unsigned> innermostRun(const Problem &problem, const Operand &operand, ArrayRef<unsigned> loops) {
  SmallVector<unsigned> sorted(loops);
  llvm::stable_sort(sorted, [&](unsigned x, unsigned y) { return strideOr(operand, x) > strideOr(operand, y); });
  unsigned first = sorted.empty() ? 0 : sorted.size() - 1;
  while (first > 0 && problem.size(sorted[first]) && problem.mergeable(operand, sorted[first - 1], sorted[first]))
    --first;
  return SmallVector<unsigned>(ArrayRef<unsigned>(sorted).drop_front(first));
}

static int64_t boundOf(const Problem &problem, ArrayRef<unsigned> loops) {
  int64_t product = 1;
  for (unsigned loop : loops) {
    if (problem.bounds[loop] == ShapedType::kDynamic)
      return std::numeric_limits<int64_t>::max();
    product = std::min<int64_t>(product * std::max<int64_t>(problem.bounds[loop], 1), int64_t(1) << 40);
  }
  return product;
}

static std::optional<unsigned> unitLoop(const Operand &operand, ArrayRef<unsigned> loops) {
  for (unsigned loop : loops)
    if (strideOr(operand, loop) == 1)
      return loop;
  return std::nullopt;
}

static unsigned largest(const Problem &problem, ArrayRef<unsigned> loops) {
  unsigned best = loops.back();
  for (unsigned loop : loops)
    if (boundOf(problem, {loop}) > boundOf(problem, {best}))
      best = loop;
  return best;
}

Schedule lamina::contraction::makeSchedule(Emitter &e, Problem &problem, int64_t vectorBits, bool matrixUnit) {
  problem.collapse(e);
  Schedule schedule;
  schedule.lanes = vectorBits / problem.accumulator.getIntOrFloatBitWidth();
  problem.findPanels(e, schedule.lanes);
  bool canTile = matrixUnit && problem.a.element.isBF16() && problem.b.element.isBF16() && problem.accumulator.isF32();
  int64_t dotRows = canTile ? kMatrixRows : kDotRows, inPlaceRows = canTile ? kMatrixRows : kInPlaceRows;

  // A loop contiguous in both operands, for dot products.
  std::optional<unsigned> dotLoop;
  for (unsigned loop : problem.k)
    if (!problem.packedColumns && strideOr(problem.a, loop) == 1 && strideOr(problem.b, loop) == 1)
      dotLoop = loop;
  if (!problem.packedColumns) {
    bool unitM = unitLoop(problem.c, problem.m).has_value(), unitN = unitLoop(problem.c, problem.n).has_value();
    bool few = dotLoop && boundOf(problem, problem.n) <= dotRows && boundOf(problem, problem.m) > dotRows;
    if ((problem.n.empty() && !problem.m.empty()) || few || (unitM && !unitN && !problem.m.empty()))
      problem.transpose();
  }

  if (!problem.m.empty())
    schedule.m = {largest(problem, problem.m)};
  int64_t rows = boundOf(problem, schedule.m);
  auto unitColumn = unitLoop(problem.c, problem.n);
  schedule.unitColumns = problem.n.empty() || unitColumn;
  if (unitColumn)
    schedule.n = innermostRun(problem, problem.c, problem.n);
  else if (!problem.n.empty())
    schedule.n = {largest(problem, problem.n)};
  auto innerColumnStride = [&] { return schedule.n.empty() ? 1 : strideOr(problem.b, schedule.n.back()); };
  auto keepInnermost = [](SmallVector<unsigned> &loops) {
    if (loops.size() > 1)
      loops = {loops.back()};
  };

  int64_t stride = innerColumnStride();
  bool strided = stride == 1 || stride == 2;
  bool flat = schedule.n.size() <= 1;
  if (problem.packedColumns) {
    schedule.access = Access::Prepacked;
    keepInnermost(schedule.n);
    schedule.k = {problem.k.back()};
    schedule.matrix = problem.packedRows == 2;
  } else if (dotLoop && rows <= dotRows && !(strided && unitColumn)) {
    schedule.access = Access::Dot;
    schedule.n = problem.n.empty() ? SmallVector<unsigned>() : SmallVector<unsigned>{largest(problem, problem.n)};
    schedule.k = {*dotLoop};
  } else if (strided &&
             (rows <= 4 || (flat && rows <= inPlaceRows) ||
              (flat && problem.k.size() == 1 && !canTile && rows <= kInPlaceRowsNear &&
               strideOr(problem.b, problem.k[0]) <= kNearStride &&
               boundOf(problem, problem.k) * std::min(boundOf(problem, problem.n), kNearElements) <= kNearElements))) {
    schedule.access = Access::InPlace;
    keepInnermost(schedule.n);
    // In place, any order of the reduction loops does; the smallest stride goes last.
    schedule.k.assign(problem.k.begin(), problem.k.end());
    llvm::stable_sort(schedule.k,
                      [&](unsigned x, unsigned y) { return strideOr(problem.b, x) > strideOr(problem.b, y); });
    int64_t columns = boundOf(problem, problem.n);
    if (rows == 1 && flat && stride == 1 && schedule.k.size() == 1 && columns >= kStreamColumns &&
        columns <= kStreamColumnsMax) {
      schedule.depthBlock = kStreamRows;
      schedule.deep = boundOf(problem, schedule.k) > kStreamRows;
    }
  } else {
    schedule.k = innermostRun(problem, problem.a, problem.k);
    for (unsigned i = 1; i < schedule.n.size(); ++i)
      if (!problem.size(schedule.n[i]))
        flat = true;
    if (flat)
      keepInnermost(schedule.n);
    stride = innerColumnStride();
    auto pixels = schedule.n.empty() ? std::optional<int64_t>(1) : problem.size(schedule.n.back());
    if (schedule.n.size() <= 1 && stride == 1)
      schedule.access = Access::Rows;
    else if (schedule.n.size() == 1 && schedule.k.size() == 1 && strideOr(problem.b, schedule.k[0]) == 1 &&
             schedule.lanes <= 16)
      schedule.access = Access::Transposed;
    else if ((stride == 1 || stride == 2) && pixels && *pixels >= kMinPixels)
      schedule.access = Access::Pixels;
    else
      schedule.access = Access::Scalars;
    schedule.matrix =
        canTile && schedule.k.size() == 1 && (schedule.access == Access::Rows || schedule.access == Access::Transposed);
    // A block of the packed rows is a multiple of the inner reduction loops.
    std::optional<int64_t> depth = 1;
    int64_t multiple = schedule.matrix ? kTileDepth : 1;
    for (auto [i, loop] : llvm::enumerate(schedule.k)) {
      depth = depth && problem.size(loop) ? std::optional<int64_t>(*depth * *problem.size(loop)) : std::nullopt;
      if (i)
        multiple *= *problem.size(loop);
    }
    schedule.depthBlock = chooseDepthBlock(depth, std::max<int64_t>(multiple, 1));
    schedule.deep = !depth || *depth > schedule.depthBlock;
    if (int64_t bound = boundOf(problem, schedule.k); bound <= schedule.depthBlock) {
      schedule.depthBlock = bound;
      schedule.deep = false;
    }
  }

  // For the size of cache blocks only.
  if (!schedule.depthBlock)
    schedule.depthBlock = std::min<int64_t>(boundOf(problem, schedule.k), 2048);

  auto leave = [&](ArrayRef<unsigned> all, ArrayRef<unsigned> kept) {
    for (unsigned loop : all)
      if (!llvm::is_contained(kept, loop))
        schedule.outer.push_back(loop);
  };
  leave(problem.batch, {});
  leave(problem.m, schedule.m);
  leave(problem.n, schedule.n);
  schedule.accumulates = schedule.deep || problem.k.size() > schedule.k.size();
  leave(problem.k, schedule.k);
  return schedule;
}
