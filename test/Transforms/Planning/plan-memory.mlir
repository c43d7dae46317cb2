// lamina-plan-memory: results, slots, and when a slot is used again.
// RUN: lamina-opt %s --split-input-file --lamina-plan-memory | FileCheck %s

// Results are the last arguments. %a is read by the second launch, so that launch cannot write there; the third can.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:.*]]: tensor<4x5xf32>, %[[OUT:.*]]: tensor<4x5xf32>) attributes {kernel.arena = #{{[a-z0-9]+}}, kernel.results = 1 : i64}
// CHECK-NEXT: %[[A:.*]] = kernel.alloc slot 0 offset [0] bytes [128] : tensor<4x5xf32>
// CHECK-NEXT: %[[L0:.*]] = kernel.launch @k [] ins(%[[X]] : {{.*}}) outs(%[[A]] :
// CHECK-NEXT: %[[B:.*]] = kernel.alloc slot 1 offset [128] bytes [128]
// CHECK-NEXT: %[[L1:.*]] = kernel.launch @k [] ins(%[[L0]] : {{.*}}) outs(%[[B]] :
// CHECK-NEXT: %[[C:.*]] = kernel.alloc slot 0 offset [0] bytes [128]
// CHECK-NEXT: %[[L2:.*]] = kernel.launch @k [] ins(%[[L1]] : {{.*}}) outs(%[[C]] :
// CHECK-NEXT: kernel.launch @k [] ins(%[[L2]] : {{.*}}) outs(%[[OUT]] :
// CHECK-NEXT: return{{$}}
kernel.func @k(%x: tensor<4x5xf32>, %o: tensor<4x5xf32>) attributes {outs = 1} {
  kernel.return %x : tensor<4x5xf32>
}
func.func @main(%x: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %a = kernel.launch @k [] ins(%x : tensor<4x5xf32>) -> tensor<4x5xf32>
  %b = kernel.launch @k [] ins(%a : tensor<4x5xf32>) -> tensor<4x5xf32>
  %c = kernel.launch @k [] ins(%b : tensor<4x5xf32>) -> tensor<4x5xf32>
  %d = kernel.launch @k [] ins(%c : tensor<4x5xf32>) -> tensor<4x5xf32>
  return %d : tensor<4x5xf32>
}

// -----

// A view reads the memory too: %a lives until the launch of its view.
// CHECK-LABEL: func.func @main(
// CHECK: kernel.alloc slot 0
// CHECK: kernel.alloc slot 1
// CHECK: %[[V:.*]] = kernel.view
// CHECK: kernel.alloc slot 2
// CHECK: kernel.launch @k [] ins(%[[V]]
// CHECK: kernel.alloc slot 0
// CHECK-NOT: kernel.alloc
kernel.func @k(%x: tensor<16xf32>, %o: tensor<16xf32>) attributes {outs = 1} {
  kernel.return %x : tensor<16xf32>
}
func.func @main(%x: tensor<16xf32>) -> tensor<16xf32> {
  %a = kernel.launch @k [] ins(%x : tensor<16xf32>) -> tensor<16xf32>
  %b = kernel.launch @k [] ins(%x : tensor<16xf32>) -> tensor<16xf32>
  %v = kernel.view %a offset [0] sizes [16] strides [1] : tensor<16xf32> to tensor<16xf32>
  %c = kernel.launch @k [] ins(%v : tensor<16xf32>) -> tensor<16xf32>
  %d = kernel.launch @k [] ins(%b : tensor<16xf32>) -> tensor<16xf32>
  %e = kernel.launch @k [] ins(%d : tensor<16xf32>) -> tensor<16xf32>
  return %e : tensor<16xf32>
}

// -----

// Sizes with symbols: multiples of one expression fit in a slot, which grows to the largest; of another do not, as
// nothing says which is larger. Offsets are multiples of a cache line.
// CHECK-DAG: #[[$ARENA:.*]] = affine_map<()[s0, s1] -> (((s0 * 12 + 63) floordiv 64) * 64 + ((s1 * 4 + 63) floordiv 64) * 64 + 64)>
// CHECK-LABEL: func.func @main(
// CHECK-SAME: kernel.arena = #[[$ARENA]]
// CHECK: kernel.alloc slot 0 offset [0] bytes [s0 * 4] : tensor<?xf32>
// CHECK: kernel.alloc slot 1 offset [((s0 * 12 + 63) floordiv 64) * 64] bytes [s1 * 4] : tensor<?xf32>
// CHECK: kernel.alloc slot 0 offset [0] bytes [s0 * 12] : tensor<?x3xf32>
// CHECK: kernel.alloc slot 2 offset [{{.*}}] bytes [64] : tensor<16xf32>
// CHECK-NOT: kernel.alloc
kernel.func @k(%x: tensor<16xf32>, %o: tensor<?xf32> {prim.sizes = affine_map<()[s0] -> (s0)>}) attributes {outs = 1} {
  %0 = tensor.empty() : tensor<1xf32>
  %1 = tensor.cast %0 : tensor<1xf32> to tensor<?xf32>
  kernel.return %1 : tensor<?xf32>
}
kernel.func @k3(%x: tensor<16xf32>, %o: tensor<?x3xf32> {prim.sizes = affine_map<()[s0] -> (s0, 3)>}) attributes {outs = 1} {
  %0 = tensor.empty() : tensor<1x3xf32>
  %1 = tensor.cast %0 : tensor<1x3xf32> to tensor<?x3xf32>
  kernel.return %1 : tensor<?x3xf32>
}
kernel.func @c(%x: tensor<16xf32>, %o: tensor<16xf32>) attributes {outs = 1} {
  kernel.return %x : tensor<16xf32>
}
func.func @main(%x: tensor<16xf32>, %n: tensor<?x?xf32> {prim.sizes = affine_map<()[s0, s1] -> (s0, s1)>}) -> tensor<16xf32> {
  %a = kernel.launch @k [s0] ins(%x : tensor<16xf32>) -> tensor<?xf32>
  %b = kernel.launch @k [s1] ins(%x : tensor<16xf32>) -> tensor<?xf32>
  %c = kernel.launch @k3 [s0] ins(%x : tensor<16xf32>) -> tensor<?x3xf32>
  %d = kernel.launch @c [] ins(%x : tensor<16xf32>) -> tensor<16xf32>
  %e = kernel.launch @c [] ins(%d : tensor<16xf32>) -> tensor<16xf32>
  return %e : tensor<16xf32>
}

// -----

// Outputs of one launch live at once, those that nothing reads as well; a smaller value fits in a free slot. A result
// that is read again is in the result's memory, which no slot shares.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<32xf32>, %[[R0:[a-z0-9]+]]: tensor<32xf32>, %[[R1:[a-z0-9]+]]: tensor<8x4xf32>)
// CHECK-SAME: kernel.results = 2
// CHECK: %[[A:.*]] = kernel.alloc slot 0 offset [0] bytes [128]
// CHECK-NEXT: %[[B:.*]] = kernel.alloc slot 1 offset [128] bytes [64] : tensor<3xbf16>
// CHECK-NEXT: %[[L:.*]]:2 = kernel.launch @two [] ins(%[[X]] : {{.*}}) outs(%[[A]], %[[B]] :
// CHECK-NEXT: %[[M:.*]] = kernel.launch @k [] ins(%[[L]]#0 : {{.*}}) outs(%[[R0]] :
// CHECK-NEXT: %[[V:.*]] = kernel.view %[[R1]] offset [0] sizes [32] strides [1] : tensor<8x4xf32> to tensor<32xf32>
// CHECK-NEXT: kernel.launch @k [] ins(%[[M]] : {{.*}}) outs(%[[V]] :
// CHECK-NOT: kernel.alloc
kernel.func @two(%x: tensor<32xf32>, %o: tensor<32xf32>, %p: tensor<3xbf16>) attributes {outs = 2} {
  %0 = tensor.empty() : tensor<3xbf16>
  kernel.return %x, %0 : tensor<32xf32>, tensor<3xbf16>
}
kernel.func @k(%x: tensor<32xf32>, %o: tensor<32xf32>) attributes {outs = 1} {
  kernel.return %x : tensor<32xf32>
}
func.func @main(%x: tensor<32xf32>) -> (tensor<32xf32>, tensor<8x4xf32>) {
  %a:2 = kernel.launch @two [] ins(%x : tensor<32xf32>) -> tensor<32xf32>, tensor<3xbf16>
  %b = kernel.launch @k [] ins(%a#0 : tensor<32xf32>) -> tensor<32xf32>
  %c = kernel.launch @k [] ins(%b : tensor<32xf32>) -> tensor<32xf32>
  %v = kernel.view %c offset [0] sizes [8, 4] strides [4, 1] : tensor<32xf32> to tensor<8x4xf32>
  return %b, %v : tensor<32xf32>, tensor<8x4xf32>
}

// -----

// Results of unknown extent say their sizes; a function without temporaries has an empty arena.
// CHECK-DAG: #[[$NONE:.*]] = affine_map<() -> (0)>
// CHECK-LABEL: func.func @main(
// CHECK-SAME: tensor<?xf32> {prim.sizes = affine_map<()[s0] -> (s0 * 2)>}) attributes {kernel.arena = #[[$NONE]], kernel.results = 1 : i64}
kernel.func @k(%x: tensor<?xf32> {prim.sizes = affine_map<()[s0] -> (s0)>}, %o: tensor<?xf32> {prim.sizes = affine_map<()[s0] -> (s0)>}) attributes {outs = 1} {
  kernel.return %x : tensor<?xf32>
}
func.func @main(%x: tensor<?x2xf32> {prim.sizes = affine_map<()[s0] -> (s0, 2)>}) -> tensor<?xf32> {
  %v = kernel.view %x offset [0] sizes [s0 * 2] strides [1] : tensor<?x2xf32> to tensor<?xf32>
  %a = kernel.launch @k [s0 * 2] ins(%v : tensor<?xf32>) -> tensor<?xf32>
  return %a : tensor<?xf32>
}
