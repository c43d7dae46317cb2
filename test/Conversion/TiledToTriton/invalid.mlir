// RUN: lamina-opt %s -split-input-file -verify-diagnostics -pass-pipeline='builtin.module(kernel.func(lamina-convert-prim-to-linalg,lamina-tile-kernels{block-tiles=true}),lamina-convert-tiled-to-triton)'

kernel.func @scan(%x: tensor<2x64xf32>, %o: tensor<2x64xf32>) attributes {outs = 1} {
  // expected-error @+1 {{'scf.for' op has no form in Triton IR, in @scan}}
  %0 = prim.scan <sum> %x dim 1 : tensor<2x64xf32>
  kernel.return %0 : tensor<2x64xf32>
}
