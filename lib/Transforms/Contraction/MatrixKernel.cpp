// The innermost kernel on a matrix unit: a tile of C in the tile registers of AMX.
#include "lib/Transforms/Contraction/MatrixKernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace lamina::contraction;

// The intrinsics that name registers are used, not those on values: what is in a tile never crosses a call, and loops
// over tiles need no phi of a type that few passes know.
constexpr int64_t kTileRegisters = 8, kRowBytes = 64, kConfigBytes = 64;
/// Registers 0 to 3 hold sums, then come two for rows of A and two for columns of B.
constexpr int64_t kFirstA = 4, kFirstB = 6;

static void callIntrinsic(Emitter &e, StringRef name, ValueRange operands) {
  LLVM::CallIntrinsicOp::create(e.b, e.loc, e.b.getStringAttr(("llvm.x86." + name).str()), operands);
}

static Value tileNumber(Emitter &e, int64_t number) {
  return LLVM::ConstantOp::create(e.b, e.loc, e.b.getI8Type(), number);
}

static Value toI64(Emitter &e, Index index) {
  return arith::IndexCastOp::create(e.b, e.loc, e.b.getI64Type(), e.value(index));
}

static Value toPointer(Emitter &e, Index address) {
  return LLVM::IntToPtrOp::create(e.b, e.loc, LLVM::LLVMPointerType::get(e.b.getContext()), toI64(e, address));
}

static Index addressOf(Emitter &e, Value buffer) {
  return memref::ExtractAlignedPointerAsIndexOp::create(e.b, e.loc, buffer).getResult();
}

void lamina::contraction::configureTiles(Emitter &e, int64_t rows) {
  // Palette 1; from byte 16 on the bytes in a row of each tile, two bytes each; from byte 48 on the rows of each.
  SmallVector<int8_t> bytes(kConfigBytes, 0);
  bytes[0] = 1;
  for (int64_t tile = 0; tile < kTileRegisters; ++tile) {
    bytes[16 + 2 * tile] = kRowBytes;
    bytes[48 + tile] = tile < kFirstB ? rows : kTileRows;
  }
  auto type = VectorType::get({kConfigBytes}, e.b.getI8Type());
  Value config = e.scratch({kConfigBytes}, e.b.getI8Type());
  Value value = arith::ConstantOp::create(e.b, e.loc, DenseElementsAttr::get(type, ArrayRef<int8_t>(bytes)));
  vector::StoreOp::create(e.b, e.loc, value, config, ValueRange{e.value(e.constant(0))});
  callIntrinsic(e, "ldtilecfg", {toPointer(e, addressOf(e, config))});
}

void lamina::contraction::releaseTiles(Emitter &e) { callIntrinsic(e, "tilerelease", {}); }

TileMemory lamina::contraction::tileMemory(Emitter &e, Value buffer, Index start, Index pitch) {
  Index bytes = e.constant(cast<MemRefType>(buffer.getType()).getElementTypeBitWidth() / 8);
  return {e.add(addressOf(e, buffer), e.mul(start, bytes)), e.mul(pitch, bytes)};
}

void lamina::contraction::emitTileProduct(Emitter &e, const RegisterTile &tile, Index depth, TileMemory a, TileMemory b,
                                          TileMemory sums) {
  int64_t rows = llvm::divideCeil(tile.rows, kTileRows), columns = tile.vectors;
  auto sumRegister = [&](int64_t row, int64_t column) { return tileNumber(e, row * columns + column); };
  auto at = [&](TileMemory memory, int64_t row, int64_t column) {
    Index offset = e.add(e.mul(memory.pitch, e.constant(row * kTileRows)), e.constant(column * kRowBytes));
    return toPointer(e, e.add(memory.address, offset));
  };
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      callIntrinsic(e, "tilezero", {sumRegister(row, column)});
  Value aPitch = toI64(e, a.pitch), bPitch = toI64(e, b.pitch), sumPitch = toI64(e, sums.pitch);
  e.loop(e.constant(0), e.div(depth, e.constant(kTileDepth)), e.constant(1), [&](Index k) {
    TileMemory aHere{e.add(a.address, e.mul(k, e.constant(kRowBytes))), a.pitch};
    TileMemory bHere{e.add(b.address, e.mul(k, e.mul(b.pitch, e.constant(kTileRows)))), b.pitch};
    for (int64_t row = 0; row < rows; ++row)
      callIntrinsic(e, "tileloadd64", {tileNumber(e, kFirstA + row), at(aHere, row, 0), aPitch});
    for (int64_t column = 0; column < columns; ++column) {
      Value right = tileNumber(e, kFirstB + column % (kTileRegisters - kFirstB));
      callIntrinsic(e, "tileloadd64", {right, at(bHere, 0, column), bPitch});
      for (int64_t row = 0; row < rows; ++row)
        callIntrinsic(e, "tdpbf16ps", {sumRegister(row, column), tileNumber(e, kFirstA + row), right});
    }
  });
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      callIntrinsic(e, "tilestored64", {sumRegister(row, column), at(sums, row, column), sumPitch});
}
