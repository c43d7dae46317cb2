// lamina-lower-host: blocks, the arena, views and grids.
// RUN: lamina-opt %s --split-input-file --lamina-lower-host | FileCheck %s
// RUN: lamina-opt %s --split-input-file --lamina-lower-host --lamina-cpu-to-llvm | FileCheck %s --check-prefix=LLVM

// CHECK: func.func private @lamina_launch(!llvm.ptr, !llvm.ptr, i64, !llvm.ptr)
// CHECK: llvm.mlir.global private constant @k.name("k\00")
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[ARGS:.*]]: !llvm.ptr, %[[SYMBOLS:.*]]: !llvm.ptr, %[[ARENA:.*]]: !llvm.ptr) attributes {kernel.arena
// CHECK: %[[BLOCK:.*]] = llvm.alloca {{.*}} x !llvm.array<3 x i64>
// CHECK: %[[T:.*]] = llvm.getelementptr %[[ARENA]]
// CHECK: llvm.store %[[T]]
// CHECK: %[[F:.*]] = constant @k
// CHECK: %[[P:.*]] = builtin.unrealized_conversion_cast %[[F]]
// CHECK: call @lamina_launch(%[[P]], %[[BLOCK]]
// The view starts 2 * s0 elements of 4 bytes into the temporary.
// CHECK: %[[V:.*]] = llvm.getelementptr %[[T]]
// CHECK: llvm.store %[[V]]
// CHECK: call @lamina_launch
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
