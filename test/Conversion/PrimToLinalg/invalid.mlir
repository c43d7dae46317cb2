// lamina-convert-prim-to-linalg: what it refuses.
// RUN: lamina-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(func.func(lamina-convert-prim-to-linalg),kernel.func(lamina-convert-prim-to-linalg))'

func.func @phase(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{is no prim op: a function is converted as a whole}}
  %0 = linalg.exp ins(%x : tensor<4xf32>) outs(%x : tensor<4xf32>) -> tensor<4xf32>
  %1 = prim.exp %0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// expected-error@+1 {{has more than one block}}
func.func @blocks(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = prim.exp %x : tensor<4xf32>
  cf.br ^next
^next:
  return %0 : tensor<4xf32>
}

// -----

// expected-error@+1 {{argument 0 is no ranked tensor}}
func.func @unranked(%x: tensor<*xf32>) -> tensor<*xf32> {
  return %x : tensor<*xf32>
}

