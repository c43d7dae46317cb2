// lamina-convert-tiled-to-triton: kernels of other phases.
// RUN: lamina-opt %s --split-input-file --verify-diagnostics --lamina-convert-tiled-to-triton

// expected-error@+1 {{is not tiled}}
kernel.func @untiled(%x: tensor<4xf32>, %o: tensor<4xf32>) attributes {outs = 1} {
  kernel.return %x : tensor<4xf32>
}

// -----

kernel.func @prim(%x: tensor<4xf32>, %o: tensor<4xf32>) attributes {outs = 1, kernel.grid = affine_map<() -> (1)>} {
  // expected-error@+1 {{'prim.exp' op has no form in Triton IR}}
  %0 = prim.exp %x : tensor<4xf32>
  kernel.return %0 : tensor<4xf32>
}

// -----

// expected-error@+1 {{has an argument of type 'memref<4xf32>', which Triton has not}}
kernel.func @buffers(%x: memref<4xf32>, %o: memref<4xf32>) attributes {outs = 1, kernel.grid = affine_map<() -> (1)>} {
  kernel.return
}
