// lamina-lower-host: what it refuses.
// RUN: lamina-opt %s --split-input-file --verify-diagnostics --lamina-lower-host

func.func private @k(!llvm.ptr, index, index) attributes {kernel.grid = affine_map<() -> (1)>}
func.func @unplanned(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{has no memory for its outputs}}
  %0 = kernel.launch @k [] ins(%x : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

kernel.func @k(%x: tensor<4xf32>, %o: tensor<4xf32>) attributes {outs = 1} {
  kernel.return %x : tensor<4xf32>
}
func.func @kernel(%x: tensor<4xf32>, %o: tensor<4xf32>) {
  // expected-error@+1 {{launches @k, which is no function with a kernel.grid}}
  %0 = kernel.launch @k [] ins(%x : tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @phase(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{is no operation of a host function}}
  %0 = prim.exp %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func private @k(!llvm.ptr, index, index) attributes {kernel.grid = affine_map<()[s0, s1] -> (s0, s1)>}
func.func @symbols(%x: tensor<4xf32>, %o: tensor<4xf32>) {
  // expected-error@+1 {{gives 1 symbols, the grid needs 2}}
  %0 = kernel.launch @k [4] ins(%x : tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// expected-error@+1 {{has the name of a function of the runtime}}
func.func private @lamina_run()
