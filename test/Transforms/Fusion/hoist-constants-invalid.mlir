// lamina-hoist-constants: what it refuses.
// RUN: lamina-opt %s --split-input-file --verify-diagnostics --lamina-hoist-constants

// expected-error@+1 {{is no function of one block; @init is the one that computes constants of @main}}
func.func private @init()
func.func @main(%x: tensor<4xf32> {prim.constant = "w"}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// expected-error@+1 {{is no function of one block; @init is the one that computes constants of @main}}
kernel.func @init(%x: tensor<4xf32>, %o: tensor<4xf32>) attributes {outs = 1} {
  kernel.return %x : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32> {prim.constant = "w"}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// expected-error@+1 {{argument 0 has no prim.constant; @init computes constants of @main}}
func.func @init(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32> {prim.constant = "w"}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// expected-error@+1 {{argument 0 is result 0 of @init, which has none of that number and type}}
func.func @main(%x: tensor<4xf32> {prim.constant = "init.0"}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

func.func @init(%x: tensor<8xf32> {prim.constant = "w"}) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}
// expected-error@+1 {{argument 0 is result 0 of @init, which has none of that number and type}}
func.func @main(%x: tensor<4xf32> {prim.constant = "init.0"}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// expected-error@+1 {{argument 0 is a constant, but no ranked tensor}}
func.func @main(%x: f32 {prim.constant = "w"}) -> f32 {
  return %x : f32
}
