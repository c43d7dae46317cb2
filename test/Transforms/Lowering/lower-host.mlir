// lamina-lower-host: blocks, the arena, views and grids.
// RUN: lamina-opt %s --split-input-file --lamina-lower-host | FileCheck %s
// RUN: lamina-opt %s --split-input-file --lamina-lower-host --lamina-cpu-to-llvm | FileCheck %s --check-prefix=LLVM

// CHECK: func.func private @lamina_run(!llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr)
// Two launches of kernel 0. The first: value 0 programs, two pointers (argument 0; 64 bytes into the arena), one symbol
// (value 1). The second: its input is the view, value 3 bytes into the arena; its output is argument 1.
// CHECK: llvm.mlir.global private constant @main.program(dense<[2, 0, -1, 2, 1, 0, 0, -1, 64, -2, 0, -3, 2, 1, -1, -4, 1, 0, -5]>
// CHECK: llvm.mlir.global private constant @k.name("k\00")
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[ARGS:.*]]: !llvm.ptr, %[[SYMBOLS:.*]]: !llvm.ptr, %[[ARENA:.*]]: !llvm.ptr) attributes {kernel.arena
// CHECK: %[[ENTRIES:.*]] = llvm.alloca {{.*}} x !llvm.array<2 x i64>
// CHECK: %[[F:.*]] = constant @k
// CHECK: builtin.unrealized_conversion_cast %[[F]]
// CHECK: %[[VALUES:.*]] = llvm.alloca {{.*}} x !llvm.array<5 x i64>
// CHECK: %[[LIST:.*]] = llvm.mlir.addressof @main.program
// CHECK: call @lamina_run(%[[LIST]], %[[ENTRIES]], %[[VALUES]], %[[ARGS]], %[[ARENA]])
// CHECK-NOT: kernel.launch
// LLVM-LABEL: llvm.func @main(%arg0: !llvm.ptr, %arg1: !llvm.ptr, %arg2: !llvm.ptr)
// LLVM: llvm.mlir.addressof @k : !llvm.ptr
// LLVM-NOT: unrealized_conversion_cast
func.func private @k(!llvm.ptr, index, index) attributes {kernel.grid = affine_map<()[s0] -> (s0 ceildiv 16)>}
func.func @main(%x: tensor<?xf32> {prim.sizes = affine_map<()[s0] -> (s0 * 3)>},
                %out: tensor<?xf32> {prim.sizes = affine_map<()[s0] -> (s0)>}) -> tensor<?xf32>
    attributes {kernel.arena = affine_map<()[s0] -> (s0 * 12 + 64)>} {
  %t = kernel.alloc slot 0 offset [64] bytes [s0 * 12] : tensor<?xf32>
  %a = kernel.launch @k [s0 * 3] ins(%x : tensor<?xf32>) outs(%t : tensor<?xf32>) -> tensor<?xf32>
  %v = kernel.view %a offset [s0 * 2] sizes [s0] strides [1] : tensor<?xf32> to tensor<?xf32>
  %b = kernel.launch @k [s0] ins(%v : tensor<?xf32>) outs(%out : tensor<?xf32>) -> tensor<?xf32>
  return %b : tensor<?xf32>
}

// -----

// Names that are taken get others. A negative offset is no value's number, so it is computed.
// CHECK: llvm.mlir.global private constant @[[$PROGRAM:main.program_[0-9]+]](dense<[1, 0, 1, 2, 1, 0, -1, 1, 0, 4]>
// CHECK: llvm.mlir.global private constant @[[$NAME:k.name_[0-9]+]]("k\00")
// CHECK-LABEL: func.func @main(
// CHECK: llvm.mlir.addressof @[[$NAME]]
// CHECK: arith.constant -16 : index
// CHECK: llvm.mlir.addressof @[[$PROGRAM]]
// LLVM-LABEL: llvm.func @main(
llvm.mlir.global private constant @main.program(1 : i32) : i32
llvm.mlir.global private constant @k.name(1 : i32) : i32
func.func private @k(!llvm.ptr, index, index) attributes {kernel.grid = affine_map<()[s0] -> (1)>}
func.func @main(%x: tensor<8xf32>, %o: tensor<4xf32>) {
  %w = kernel.view %x offset [-4] sizes [4] strides [1] : tensor<8xf32> to tensor<4xf32>
  %1 = kernel.launch @k [4] ins(%w : tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  return
}
