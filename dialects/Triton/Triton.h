// The C++ classes of the mirror of Triton's dialect.
#ifndef LAMINA_TRITON_H
#define LAMINA_TRITON_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace lamina::tt {
/// The most elements of a block.
constexpr int64_t kMaxBlockElements = 1 << 20;
/// Whether all sizes are powers of two and the block is not too large.
bool isBlockShape(llvm::ArrayRef<int64_t> shape);
} // namespace lamina::tt

#include "dialects/Triton/TritonDialect.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/Triton/TritonTypes.h.inc"
#define GET_OP_CLASSES
#include "dialects/Triton/TritonOps.h.inc"

#endif
