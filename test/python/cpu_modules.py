"""Kernels and hosts in the forms that the end of the CPU pipeline takes, written by hand for its tests."""

# Rows are scaled by the sum of their elements: a reduction, a temporary per row, and an output written in place.
ROWS = """
#rc = affine_map<(d0, d1) -> (d0, d1)>
#r = affine_map<(d0, d1) -> (d0)>
kernel.func @rows(%x: tensor<?x?xf32> {prim.sizes = affine_map<()[s0, s1] -> (s0, s1)>},
                  %o: tensor<?x?xf32> {prim.sizes = affine_map<()[s0, s1] -> (s0, s1)>})
    attributes {outs = 1 : i64, kernel.grid = affine_map<()[s0] -> (s0)>} {
  %m = kernel.symbol 0
  %n = kernel.symbol 1
  %zero = arith.constant 0.0 : f32
  %r = scf.forall (%i) in (%m) shared_outs(%a = %o) -> (tensor<?x?xf32>) {
    %row = tensor.extract_slice %x[%i, 0] [1, %n] [1, 1] : tensor<?x?xf32> to tensor<1x?xf32>
    %e = tensor.empty() : tensor<1xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1xf32>) -> tensor<1xf32>
    %s = linalg.generic {indexing_maps = [#rc, #r], iterator_types = ["parallel", "reduction"]}
        ins(%row : tensor<1x?xf32>) outs(%f : tensor<1xf32>) {
    ^bb0(%v: f32, %acc: f32):
      %t = arith.addf %v, %acc : f32
      linalg.yield %t : f32
    } -> tensor<1xf32>
    %empty = tensor.empty(%n) : tensor<1x?xf32>
    %d = linalg.generic {indexing_maps = [#rc, #r, #rc], iterator_types = ["parallel", "parallel"]}
        ins(%row, %s : tensor<1x?xf32>, tensor<1xf32>) outs(%empty : tensor<1x?xf32>) {
    ^bb0(%v: f32, %w: f32, %u: f32):
      %t = arith.divf %v, %w : f32
      linalg.yield %t : f32
    } -> tensor<1x?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %d into %a[%i, 0] [1, %n] [1, 1] : tensor<1x?xf32> into tensor<?x?xf32>
    }
  }
  kernel.return %r : tensor<?x?xf32>
}
"""

# y = x * c + x, in chunks of 128 with a tail; c is a constant of the program.
CHUNKS = """
#i = affine_map<(d0) -> (d0)>
#z = affine_map<(d0) -> ()>
kernel.func @chunks(%x: tensor<?xf32> {prim.sizes = affine_map<()[s0] -> (s0)>}, %c: tensor<f32>,
                    %o: tensor<?xf32> {prim.sizes = affine_map<()[s0] -> (s0)>})
    attributes {outs = 1 : i64, kernel.grid = affine_map<()[s0] -> (s0 ceildiv 128)>} {
  %n = kernel.symbol 0
  %r = scf.forall (%i) = (0) to (%n) step (128) shared_outs(%a = %o) -> (tensor<?xf32>) {
    %size = affine.min affine_map<(d0)[s0] -> (128, s0 - d0)>(%i)[%n]
    %tile = tensor.extract_slice %x[%i] [%size] [1] : tensor<?xf32> to tensor<?xf32>
    %e = tensor.empty(%size) : tensor<?xf32>
    %d = linalg.generic {indexing_maps = [#i, #z, #i], iterator_types = ["parallel"]}
        ins(%tile, %c : tensor<?xf32>, tensor<f32>) outs(%e : tensor<?xf32>) {
    ^bb0(%v: f32, %w: f32, %u: f32):
      %p = arith.mulf %v, %w : f32
      %t = arith.addf %p, %v : f32
      linalg.yield %t : f32
    } -> tensor<?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %d into %a[%i] [%size] [1] : tensor<?xf32> into tensor<?xf32>
    }
  }
  kernel.return %r : tensor<?xf32>
}
"""

# chunks, then rows of its result seen as a matrix; the value between them is in the arena.
HOST = """
func.func @main(%x: tensor<?xf32> {prim.sizes = affine_map<()[s0, s1] -> (s0 * s1)>},
                %c: tensor<f32> {prim.constant = "c"},
                %out: tensor<?x?xf32> {prim.sizes = affine_map<()[s0, s1] -> (s0, s1)>})
    attributes {kernel.results = 1 : i64, kernel.arena = affine_map<()[s0, s1] -> (s0 * s1 * 4)>} {
  %t = kernel.alloc slot 0 offset [0] bytes [s0 * s1 * 4] : tensor<?xf32>
  %a = kernel.launch @chunks [s0 * s1] ins(%x, %c : tensor<?xf32>, tensor<f32>) outs(%t : tensor<?xf32>) -> tensor<?xf32>
  %v = kernel.view %a offset [0] sizes [s0, s1] strides [s1, 1] : tensor<?xf32> to tensor<?x?xf32>
  %b = kernel.launch @rows [s0, s1] ins(%v : tensor<?x?xf32>) outs(%out : tensor<?x?xf32>) -> tensor<?x?xf32>
  return
}
"""

PROGRAM = ROWS + CHUNKS + HOST
