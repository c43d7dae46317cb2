// One program of a kernel: blocks of its tensors, computed on demand.
#ifndef LAMINA_CONVERSION_TILED_TO_TRITON_PROGRAM_EMITTER_H
#define LAMINA_CONVERSION_TILED_TO_TRITON_PROGRAM_EMITTER_H

#include "dialects/Kernel/Kernel.h"
#include "lib/Conversion/TiledToTriton/AxisBlock.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/MapVector.h"

namespace lamina {

struct Reduction;
struct ScanInfo;
struct SortInfo;

struct ProgramOptions {
  int64_t maxElements, chunkElements, depth;
  bool descriptors;
};

class ProgramEmitter {
public:
  /// The arguments of `program` are the kernel's, as pointers, then its symbols.
  ProgramEmitter(kernel::FuncOp kernel, tt::FuncOp program, mlir::Type indexType, const ProgramOptions &options);
  /// Emits all the program; an error has been reported if this fails.
  mlir::LogicalResult run();
  unsigned numDots = 0, numDescribed = 0;

private:
  using Indices = llvm::SmallVector<AxisBlock>;
  /// A result, the box of an output that it is written to, and that output's argument.
  struct Output {
    mlir::Value value;
    llvm::SmallVector<mlir::OpFoldResult> offsets, sizes;
    unsigned argument;
  };
  /// How far a dimension goes: a scalar, and the largest value that it is known to have.
  struct Extent {
    AxisBlock size;
    std::optional<int64_t> bound;
    /// What indices below the bound are compared with: may be larger than the size, where that is the least of this and
    /// the bound.
    AxisBlock limit;
  };
  /// How loops over dimensions are made: an axis each, of all the dimension or of a chunk of it.
  struct Loop {
    unsigned dim;
    Extent extent;
    int64_t chunk;
  };

  /// The row and the column of tiles at a position in a grid of both.
  std::pair<AxisBlock, AxisBlock> placeInGroup(AxisBlock position, AxisBlock rows, AxisBlock columns);

  // Scalars of the program, and reads of tensors.
  AxisBlock getScalar(mlir::Value value);
  AxisBlock getScalar(mlir::OpFoldResult value);
  AxisBlock evaluate(mlir::AffineExpr expr, llvm::ArrayRef<AxisBlock> dims, llvm::ArrayRef<AxisBlock> symbols);
  /// The least of the map's results, or the greatest.
  AxisBlock evaluateLeast(mlir::AffineMap map, mlir::ValueRange operands, bool skipConstants, bool isMost = false);
  AxisBlock read(mlir::Value tensor, const Indices &indices);
  AxisBlock compute(mlir::Value tensor, const Indices &indices);
  AxisBlock load(unsigned argument, const Indices &indices);
  /// The block by a tensor descriptor, if it can be; null if not.
  AxisBlock loadDescribed(unsigned argument, const Indices &indices);
  Exprs getStrides(unsigned argument);
  AxisBlock getPointers(unsigned argument, const Indices &indices);
  void store(const Output &output, const Indices &indices, const AxisBlock &value);
  /// The program's share of the updates of a scatter.
  void emitScatter(kernel::ScatterOp op);

  // Linalg ops.
  AxisBlock readGeneric(mlir::linalg::GenericOp op, unsigned result, const Indices &indices);
  AxisBlock getBodyValue(mlir::linalg::GenericOp op, mlir::Value value, const Indices &loops);
  AxisBlock computeBodyValue(mlir::linalg::GenericOp op, mlir::Value value, const Indices &loops);
  AxisBlock readOperand(mlir::linalg::GenericOp op, mlir::OpOperand &operand, const Indices &loops);
  AxisBlock convertLoop(mlir::linalg::GenericOp op, mlir::OpResult result, const Indices &loops);
  AxisBlock convertBranch(mlir::linalg::GenericOp op, mlir::OpResult result, const Indices &loops);
  AxisBlock reduce(mlir::linalg::GenericOp op, unsigned result, Indices loops);
  AxisBlock contract(mlir::linalg::GenericOp op, const Indices &loops);
  void padContractions();
  bool wantsDescriptors(mlir::linalg::GenericOp op, llvm::ArrayRef<Loop> loops);

  // Online reductions.
  /// The index of the dimension that an online op reduces; null for other ops.
  AxisBlock getOnlineIndex(mlir::linalg::GenericOp op, llvm::ArrayRef<std::pair<unsigned, Extent>> reduced,
                           llvm::ArrayRef<const Axis *> used);
  AxisBlock readOnline(mlir::scf::ForOp loop, unsigned asked, const Indices &given);
  /// The number of loops around what `value` of a tiled loop's body depends on.
  unsigned getLoopLevel(mlir::Value value);

  // Reductions, scans and sorts.
  /// Combines the states at all indices of `dims`, which are set in `loops` while `getState` is called.
  llvm::SmallVector<AxisBlock> reduceOver(mlir::Location loc, const Reduction &reduction,
                                          llvm::ArrayRef<std::pair<unsigned, Extent>> dims, Indices &loops,
                                          llvm::function_ref<llvm::SmallVector<AxisBlock>()> getState,
                                          mlir::linalg::GenericOp op = nullptr);
  llvm::SmallVector<AxisBlock> widenBooleans(llvm::ArrayRef<AxisBlock> state);
  void combineAlong(mlir::Location loc, const Reduction &reduction, const Axis *axis,
                    llvm::SmallVector<AxisBlock> &state);
  AxisBlock scanAlong(mlir::Location loc, const Reduction &reduction, const Axis *axis, AxisBlock block);
  AxisBlock readScan(mlir::Operation *op, const ScanInfo &info, mlir::Value operand, const Indices &indices);
  AxisBlock readSort(mlir::Operation *op, const SortInfo &info, mlir::Value operand, const Indices &indices);
  /// The scans that an output is made of element by element, along which of its dimensions.
  void findScans(mlir::Value value, llvm::ArrayRef<std::optional<unsigned>> dims,
                 llvm::MapVector<mlir::Operation *, unsigned> &scans);
  /// Stores an output in a loop along its dimension `loop`, carrying the totals of scans from chunk to chunk.
  void storeScanned(const Output &output, Indices &indices, const Loop &loop, llvm::ArrayRef<mlir::Operation *> scans);

  // Extents and axes.
  AxisBlock getSize(mlir::AffineExpr size);
  Extent getExtent(mlir::OpFoldResult size);
  Extent getDimExtent(mlir::Value tensor, unsigned dim);
  Extent getLoopExtent(mlir::linalg::GenericOp op, unsigned loop);
  /// The size of an axis for all of a bounded extent.
  int64_t getBlockSize(const Extent &extent);
  /// An index that runs over all of a bounded extent, along an axis that is none of `used`.
  AxisBlock getWhole(const Extent &extent, llvm::ArrayRef<const Axis *> used);
  /// Runs `body` inside loops over chunks, with the indices of `loops` set.
  void runLoops(llvm::ArrayRef<Loop> loops, Indices &indices, llvm::SmallVector<mlir::Value> &carried,
                llvm::function_ref<void(llvm::SmallVector<mlir::Value> &)> body);
  /// Chooses axes and loops for dimensions beside the axes of `used`; those that are whole are set in `indices`.
  llvm::SmallVector<Loop> choose(llvm::ArrayRef<std::pair<unsigned, Extent>> dims, llvm::ArrayRef<const Axis *> used,
                                 Indices &indices);

  AxisBlock fail(mlir::Operation *op, const llvm::Twine &message, mlir::Type type);
  /// What remembers the value of a tensor's elements or of a body's value at these indices, under the present guard.
  BlockBuilder::Key getKey(mlir::Value value, llvm::ArrayRef<AxisBlock> indices);
  unsigned getLevel(llvm::ArrayRef<AxisBlock> indices);
  void emitOutputs(llvm::ArrayRef<Output> outputs);

  kernel::FuncOp kernel;
  tt::FuncOp program;
  ProgramOptions options;
  BlockBuilder blocks;
  bool failed = false;
  /// The least size of an axis: tt.dot's, in a kernel with contractions.
  int64_t minBlock = 1;
  double nextOrder = 0;
  /// The block of the reduced dimension in the present online loop.
  const Axis *onlineAxis = nullptr;
  /// The axis along which the operand of a product that is being read is contracted, if it is to be read by a
  /// descriptor.
  const Axis *describedAxis = nullptr;
  llvm::DenseMap<mlir::Operation *, unsigned> loopLevels, valueLevels;
  /// The condition of the branches around what is being computed; where it is false, nothing is loaded.
  AxisBlock guard;
  /// Totals, over the chunks before the present one, of scans along the axis of a loop's chunks; and then with it.
  struct Carry {
    const Axis *axis;
    AxisBlock before, after;
  };
  llvm::DenseMap<mlir::Operation *, Carry> carries;
  llvm::DenseMap<mlir::Value, AxisBlock> scalars;
  llvm::DenseMap<mlir::AffineExpr, AxisBlock> sizes;
  /// Axes over a whole extent, by its size.
  std::vector<std::pair<mlir::Value, const Axis *>> wholeAxes;
};

/// Reductions: how two of their states combine, and what one element is as a state.
struct Reduction {
  /// The values in the generic's body of an element's state.
  llvm::SmallVector<mlir::Value> element;
  llvm::SmallVector<mlir::TypedAttr> identity;
  /// Combines two states of scalars or blocks.
  std::function<llvm::SmallVector<mlir::Value>(mlir::OpBuilder &, mlir::ValueRange, mlir::ValueRange)> combine;
  /// Which value of the state is the result.
  unsigned result = 0;
};
/// The reduction that makes a result of the op, if it is of a known form.
std::optional<Reduction> matchReduction(mlir::linalg::GenericOp op, unsigned result);

} // namespace lamina
#endif
