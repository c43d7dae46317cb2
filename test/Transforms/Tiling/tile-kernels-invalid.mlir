// lamina-tile-kernels: what it refuses.
// RUN: lamina-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(kernel.func(lamina-tile-kernels))'

kernel.func @phase(%x: tensor<4xf32>, %o: tensor<4xf32>) attributes {outs = 1} {
  // expected-error@+1 {{is not tiled; lamina-convert-prim-to-linalg comes first}}
  %0 = prim.exp %x : tensor<4xf32>
  kernel.return %0 : tensor<4xf32>
}

// -----

// expected-error@+1 {{argument 0 is no tensor; kernels are tiled before they are bufferized}}
kernel.func @buffers(%x: memref<4xf32>, %o: memref<4xf32>) attributes {outs = 1} {
  kernel.return
}

// -----

// A second grid inside of the first would have the number of programs of one of them.
// expected-error@+1 {{is tiled already}}
kernel.func @twice(%x: tensor<4xf32>, %o: tensor<4xf32>) attributes {outs = 1, kernel.grid = affine_map<() -> (1)>} {
  kernel.return %x : tensor<4xf32>
}

// -----

// expected-error@+1 {{kernel.tile is three powers of two: rows, columns, depth}}
kernel.func @tile(%x: tensor<4xf32>, %o: tensor<4xf32>) attributes {outs = 1, kernel.tile = array<i64: 64, 48, 32>} {
  kernel.return %x : tensor<4xf32>
}

// -----

// expected-error@+1 {{kernel.elements is a positive i64}}
kernel.func @elements(%x: tensor<4xf32>, %o: tensor<4xf32>) attributes {outs = 1, kernel.elements = 0} {
  kernel.return %x : tensor<4xf32>
}

// -----

// expected-error@+1 {{kernel.descriptors is a bool}}
kernel.func @descriptors(%x: tensor<4xf32>, %o: tensor<4xf32>) attributes {outs = 1, kernel.descriptors = 1} {
  kernel.return %x : tensor<4xf32>
}
