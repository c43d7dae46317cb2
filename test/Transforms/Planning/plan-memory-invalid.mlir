// lamina-plan-memory: what it refuses.
// RUN: lamina-opt %s --split-input-file --verify-diagnostics --lamina-plan-memory

func.func @phase(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{is no operation of a host function that has no memory yet}}
  %0 = prim.exp %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @argument(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{returns value 0 that is no output of a launch of its own}}
  return %x : tensor<4xf32>
}

// -----

kernel.func @k(%x: tensor<4x4xf32>, %o: tensor<4x4xf32>) attributes {outs = 1} {
  kernel.return %x : tensor<4x4xf32>
}
func.func @shared(%x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %0 = kernel.launch @k [] ins(%x : tensor<4x4xf32>) -> tensor<4x4xf32>
  // expected-error@+1 {{returns value 1 that is no output of a launch of its own}}
  return %0, %0 : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// The caller allocates results contiguous: a view of another order, or of a part, would be read wrongly.
kernel.func @k(%x: tensor<4x4xf32>, %o: tensor<4x4xf32>) attributes {outs = 1} {
  kernel.return %x : tensor<4x4xf32>
}
func.func @transposed(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = kernel.launch @k [] ins(%x : tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = kernel.view %0 offset [0] sizes [4, 4] strides [1, 4] : tensor<4x4xf32> to tensor<4x4xf32>
  // expected-error@+1 {{returns value 0 that is not all of an output, in order}}
  return %1 : tensor<4x4xf32>
}

// -----

kernel.func @k(%x: tensor<4x4xf32>, %o: tensor<4x4xf32>) attributes {outs = 1} {
  kernel.return %x : tensor<4x4xf32>
}
func.func @part(%x: tensor<4x4xf32>) -> tensor<4xf32> {
  %0 = kernel.launch @k [] ins(%x : tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = kernel.view %0 offset [0] sizes [4] strides [1] : tensor<4x4xf32> to tensor<4xf32>
  // expected-error@+1 {{returns value 0 that is not all of an output, in order}}
  return %1 : tensor<4xf32>
}

// -----

kernel.func @k(%x: tensor<4x4xf32>, %o: tensor<4x4xf32>) attributes {outs = 1} {
  kernel.return %x : tensor<4x4xf32>
}
// expected-error@+1 {{has more than one block}}
func.func @blocks(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = kernel.launch @k [] ins(%x : tensor<4x4xf32>) -> tensor<4x4xf32>
  cf.br ^next
^next:
  return %0 : tensor<4x4xf32>
}

// -----

kernel.func @k(%x: tensor<4x4xf32>, %o: tensor<4x4xf32>) attributes {outs = 1} {
  kernel.return %x : tensor<4x4xf32>
}
func.func @twice(%x: tensor<4x4xf32>, %o: tensor<4x4xf32>) {
  // expected-error@+1 {{has memory for its outputs already}}
  %0 = kernel.launch @k [] ins(%x : tensor<4x4xf32>) outs(%o : tensor<4x4xf32>) -> tensor<4x4xf32>
  return
}

// -----

kernel.func @k(%x: tensor<4x4xf32>, %o: tensor<4x4xf32>) attributes {outs = 1} {
  kernel.return %x : tensor<4x4xf32>
}
func.func @scalar(%x: tensor<4x4xf32>) -> f32 {
  // expected-error@+1 {{output 0 has type 'f32', and is no tensor of integers or floats}}
  %0 = kernel.launch @k [] ins(%x : tensor<4x4xf32>) -> f32
  return %0 : f32
}

// -----

func.func private @k(!llvm.ptr, index, index) attributes {kernel.grid = affine_map<()[s0] -> (s0)>}
func.func @lowered(%x: tensor<?xf32> {prim.sizes = affine_map<()[s0] -> (s0)>}) -> tensor<?xf32> {
  // expected-error@+1 {{output 0 has a size that the kernel does not say}}
  %0 = kernel.launch @k [s0] ins(%x : tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
