// lamina-fuse-kernels: what it refuses.
// RUN: lamina-opt %s --split-input-file --verify-diagnostics --lamina-fuse-kernels="pack-widths=16"

// expected-error@+1 {{has several blocks; kernels are made of straight-line functions}}
func.func @blocks(%x: tensor<4xf32>) -> tensor<4xf32> {
  cf.br ^next
^next:
  return %x : tensor<4xf32>
}

// -----

func.func @phase(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{cannot be put in a kernel}}
  %0 = arith.addf %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// expected-error@+1 {{argument 0 is no ranked tensor}}
func.func @scalar(%x: f32) -> f32 {
  return %x : f32
}

// -----

// expected-error@+1 {{argument 0 has a dynamic size and no prim.sizes}}
func.func @sizes(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = prim.exp %x : tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

kernel.func @k(%x: tensor<4xf32>, %o: tensor<4xf32>) attributes {outs = 1} {
  kernel.return %x : tensor<4xf32>
}
func.func @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{cannot be put in a kernel}}
  %0 = kernel.launch @k [] ins(%x : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// expected-error@+1 {{is no function of one block; @init is the one that computes constants of @main}}
func.func private @init()
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = prim.exp %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
