// lamina-bufferize-kernels: what it refuses.
// RUN: lamina-opt %s --split-input-file --verify-diagnostics --lamina-bufferize-kernels

kernel.func @phase(%x: tensor<4xf32>, %o: tensor<4xf32>) attributes {outs = 1} {
  // expected-error@+1 {{op was not bufferized}}
  %0 = prim.exp %x : tensor<4xf32>
  kernel.return %0 : tensor<4xf32>
}
