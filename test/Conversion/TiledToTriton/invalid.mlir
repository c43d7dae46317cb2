// RUN: lamina-opt %s -split-input-file -verify-diagnostics -pass-pipeline='builtin.module(lamina-convert-tiled-to-triton)'

kernel.func @generate(%x: tensor<64xf32>, %o: tensor<64xf32>) attributes {outs = 1, kernel.grid = affine_map<() -> (1)>} {
  // expected-error @+1 {{'tensor.generate' op has no form in Triton IR, in @generate}}
  %0 = tensor.generate {
  ^bb0(%i: index):
    %1 = tensor.extract %x[%i] : tensor<64xf32>
    tensor.yield %1 : f32
  } : tensor<64xf32>
  kernel.return %0 : tensor<64xf32>
}
