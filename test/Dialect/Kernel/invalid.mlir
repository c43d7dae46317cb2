// RUN: lamina-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{outs is 2, but there are 1 arguments}}
kernel.func @outs(%x: tensor<4xf32>) attributes {outs = 2} {
  kernel.return
}

// -----

// expected-error @+1 {{outs is}}
kernel.func @negative_outs(%x: tensor<4xf32>) attributes {outs = -1} {
  kernel.return
}

// -----

// expected-error @+1 {{has no body}}
kernel.func private @no_body(tensor<4xf32>) attributes {outs = 1}

// -----

// expected-error @+1 {{argument 0 has a dynamic size and no prim.sizes}}
kernel.func @dynamic(%x: tensor<?xf32>) attributes {outs = 1} {
  kernel.return %x : tensor<?xf32>
}

// -----

kernel.func @returned_count(%x: tensor<4xf32>, %y: tensor<4xf32>) attributes {outs = 1} {
  // expected-error @+1 {{returns 0 values from a kernel with 1 outputs}}
  kernel.return
}

// -----

kernel.func @returned_type(%x: tensor<4xf32>, %y: tensor<5xf32>) attributes {outs = 1} {
  // expected-error @+1 {{value 0 has type 'tensor<4xf32>', the output has 'tensor<5xf32>'}}
  kernel.return %x : tensor<4xf32>
}

// -----

kernel.func @symbol(%x: tensor<4xf32>) attributes {outs = 1} {
  // expected-error @+1 {{number is not in 0..63}}
  %0 = kernel.symbol -1
  kernel.return %x : tensor<4xf32>
}

// -----

// expected-error @+1 {{kernel.strides has 1 entries, not 2}}
kernel.func @strides(%x: tensor<4x4xf32> {kernel.strides = affine_map<() -> (1)>}) attributes {outs = 1} {
  kernel.return %x : tensor<4x4xf32>
}

// -----

// expected-error @+1 {{kernel.grid is an affine map}}
kernel.func @grid(%x: tensor<4x4xf32>) attributes {outs = 1, kernel.grid = 3} {
  kernel.return %x : tensor<4x4xf32>
}

// -----

func.func @no_kernel() {
  // expected-error @+1 {{launches @nothing, which is no kernel}}
  kernel.launch @nothing []
  return
}

// -----

kernel.func @k(%x: tensor<?xf32> {prim.sizes = affine_map<()[s0] -> (s0)>}, %y: tensor<?xf32> {prim.sizes = affine_map<()[s0] -> (s0)>}) attributes {outs = 1} {
  kernel.return %x : tensor<?xf32>
}
func.func @counts(%x: tensor<4xf32>) {
  // expected-error @+1 {{has 1 inputs and 0 outputs, the kernel takes 1 and 1}}
  kernel.launch @k [4] ins(%x : tensor<4xf32>)
  return
}

// -----

kernel.func @k(%x: tensor<?xf32> {prim.sizes = affine_map<()[s0] -> (s0)>}, %y: tensor<?xf32> {prim.sizes = affine_map<()[s0] -> (s0)>}) attributes {outs = 1} {
  kernel.return %x : tensor<?xf32>
}
func.func @types(%x: tensor<4xi32>) {
  // expected-error @+1 {{argument 0 has type 'tensor<4xi32>', the kernel's has 'tensor<?xf32>'}}
  %0 = kernel.launch @k [4] ins(%x : tensor<4xi32>) -> tensor<4xf32>
  return
}

// -----

kernel.func @k(%x: tensor<?xf32> {prim.sizes = affine_map<()[s0] -> (s0)>}, %y: tensor<?xf32> {prim.sizes = affine_map<()[s0] -> (s0)>}) attributes {outs = 1} {
  kernel.return %x : tensor<?xf32>
}
func.func @symbols(%x: tensor<4xf32>) {
  // expected-error @+1 {{gives 0 symbols, argument 0 needs 1}}
  %0 = kernel.launch @k [] ins(%x : tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @view_sizes(%x: tensor<16xf32>) {
  // expected-error @+1 {{sizes: size of dimension 0 is 3, the type's is 4}}
  %0 = kernel.view %x offset [0] sizes [3, 4] strides [4, 1] : tensor<16xf32> to tensor<4x4xf32>
  return
}

// -----

func.func @view_strides(%x: tensor<16xf32>) {
  // expected-error @+1 {{strides has 1 entries, not 2}}
  %0 = kernel.view %x offset [0] sizes [4, 4] strides [4] : tensor<16xf32> to tensor<4x4xf32>
  return
}

// -----

func.func @alloc() {
  // expected-error @+1 {{bytes has 0 entries, not 1}}
  %0 = kernel.alloc slot 0 offset [0] bytes [] : tensor<4xf32>
  return
}

// -----

// expected-error @+1 {{has more than one block}}
kernel.func @blocks(%x: tensor<4xf32>, %o: tensor<4xf32>) attributes {outs = 1} {
  cf.br ^next
^next:
  kernel.return %x : tensor<4xf32>
}

// -----

// expected-error @+1 {{does not end with kernel.return}}
kernel.func @unreachable(%x: tensor<4xf32>, %o: tensor<4xf32>) attributes {outs = 1} {
  ub.unreachable
}

// -----

// expected-error @+1 {{argument 1 is no ranked tensor or memref}}
kernel.func @scalar(%x: tensor<4xf32>, %o: f32) attributes {outs = 1} {
  kernel.return
}

// -----

// expected-error @+1 {{argument 0 has a dynamic size and no prim.sizes}}
kernel.func @memref(%x: memref<?xf32>, %o: memref<4xf32>) attributes {outs = 1} {
  kernel.return
}

// -----

// expected-error @+1 {{kernel.in_place is an input or -1 for each output of a kernel}}
kernel.func @in_place(%x: tensor<4xf32>, %o: tensor<4xf32>) attributes {outs = 1, kernel.in_place = array<i64: 1>} {
  kernel.return %x : tensor<4xf32>
}

// -----

func.func @scatter(%x: tensor<9xf32>, %u: tensor<4xf64>, %i: tensor<4xi64>) -> tensor<9xf32> {
  // expected-error @+1 {{element types are 'f64' and 'f32'}}
  %0 = kernel.scatter <addf> %u[%i] into %x dims [0] sizes [4] : (tensor<4xf64>, tensor<4xi64>, tensor<9xf32>) -> tensor<9xf32>
  return %0 : tensor<9xf32>
}

// -----

func.func @scatter(%x: tensor<9xf32>, %u: tensor<4xf32>, %i: tensor<4xi64>) -> tensor<9xf32> {
  // expected-error @+1 {{has 1 indices and 2 dims}}
  %0 = kernel.scatter <addf> %u[%i] into %x dims [0, 1] sizes [4] : (tensor<4xf32>, tensor<4xi64>, tensor<9xf32>) -> tensor<9xf32>
  return %0 : tensor<9xf32>
}

// -----

func.func @scatter(%x: tensor<9xf32>, %u: tensor<4xf32>, %i: tensor<4xi32>) -> tensor<9xf32> {
  // expected-error @+1 {{index 0 has type 'tensor<4xi32>'}}
  %0 = kernel.scatter <addf> %u[%i] into %x dims [0] sizes [4] : (tensor<4xf32>, tensor<4xi32>, tensor<9xf32>) -> tensor<9xf32>
  return %0 : tensor<9xf32>
}

// -----

func.func @scatter(%x: tensor<9xf32>, %u: tensor<4xf32>, %i: tensor<4xi64>) -> tensor<9xf32> {
  // expected-error @+1 {{dims has 1 twice, or it is no dimension of 'tensor<9xf32>'}}
  %0 = kernel.scatter <addf> %u[%i] into %x dims [1] sizes [4] : (tensor<4xf32>, tensor<4xi64>, tensor<9xf32>) -> tensor<9xf32>
  return %0 : tensor<9xf32>
}

// -----

func.func @scatter(%x: tensor<9x2xf32>, %u: tensor<4xf32>, %i: tensor<4xi64>) -> tensor<9x2xf32> {
  // expected-error @+1 {{updates have 1 dimensions, not 2}}
  %0 = kernel.scatter <addf> %u[%i] into %x dims [0] sizes [4] : (tensor<4xf32>, tensor<4xi64>, tensor<9x2xf32>) -> tensor<9x2xf32>
  return %0 : tensor<9x2xf32>
}

// -----

func.func @scatter(%x: tensor<9xf32>, %u: tensor<4xf32>, %i: tensor<4xi64>) -> tensor<9xf32> {
  // expected-error @+1 {{elements is 0}}
  %0 = kernel.scatter <addf> %u[%i] into %x dims [0] sizes [4] elements 0 : (tensor<4xf32>, tensor<4xi64>, tensor<9xf32>) -> tensor<9xf32>
  return %0 : tensor<9xf32>
}
