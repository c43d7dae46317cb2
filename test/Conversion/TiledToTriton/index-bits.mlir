// Indices have 64 bits where a static size, or a bound of an open one, needs them in some launch.
// RUN: lamina-opt %s -pass-pipeline='builtin.module(lamina-convert-tiled-to-triton)' | FileCheck %s

// The symbol is at most 100000, and 30000 times that is too much.
func.func @main(%x: tensor<?xf32> {prim.sizes = affine_map<()[s0, s1] -> (s0)>}, %y: tensor<?xf32> {prim.sizes = affine_map<()[s0, s1] -> (s1)>})
    attributes {prim.symbols = [{name = "s0", min = 0, max = 100000}, {name = "s1", min = 2}]} {
  %0 = kernel.launch @bounded [s0 * 30000] ins(%x : tensor<?xf32>) outs(%x : tensor<?xf32>) -> tensor<?xf32>
  %1 = kernel.launch @small [s0 * 20000] ins(%x : tensor<?xf32>) outs(%x : tensor<?xf32>) -> tensor<?xf32>
  %2 = kernel.launch @unbounded [s1] ins(%y : tensor<?xf32>) outs(%y : tensor<?xf32>) -> tensor<?xf32>
  %3 = kernel.launch @one_of_two [s0] ins(%x : tensor<?xf32>) outs(%x : tensor<?xf32>) -> tensor<?xf32>
  %4 = kernel.launch @one_of_two [s0 * s0] ins(%x : tensor<?xf32>) outs(%x : tensor<?xf32>) -> tensor<?xf32>
  %5 = kernel.launch @strided [s0] ins(%x : tensor<?xf32>) outs(%x : tensor<?xf32>) -> tensor<?xf32>
  return
}

// CHECK-LABEL: tt.func public @bounded
// CHECK-SAME: kernel.index_bits = 64
kernel.func @bounded(%x: tensor<?xf32> {prim.sizes = affine_map<()[s0] -> (s0)>}, %o: tensor<?xf32> {prim.sizes = affine_map<()[s0] -> (s0)>}) attributes {outs = 1, kernel.grid = affine_map<()[s0] -> (s0 ceildiv 128)>} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %o, %c0 : tensor<?xf32>
  %0 = scf.forall (%i) = (0) to (%n) step (128) shared_outs(%r = %o) -> (tensor<?xf32>) {
    %m = affine.min affine_map<(d0)[s0] -> (-d0 + s0, 128)>(%i)[%n]
    %s = tensor.extract_slice %x[%i] [%m] [1] : tensor<?xf32> to tensor<?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %s into %r[%i] [%m] [1] : tensor<?xf32> into tensor<?xf32>
    }
  }
  kernel.return %0 : tensor<?xf32>
}

// CHECK-LABEL: tt.func public @small
// CHECK-SAME: kernel.index_bits = 32
kernel.func @small(%x: tensor<?xf32> {prim.sizes = affine_map<()[s0] -> (s0)>}, %o: tensor<?xf32> {prim.sizes = affine_map<()[s0] -> (s0)>}) attributes {outs = 1, kernel.grid = affine_map<()[s0] -> (s0 ceildiv 128)>} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %o, %c0 : tensor<?xf32>
  %0 = scf.forall (%i) = (0) to (%n) step (128) shared_outs(%r = %o) -> (tensor<?xf32>) {
    %m = affine.min affine_map<(d0)[s0] -> (-d0 + s0, 128)>(%i)[%n]
    %s = tensor.extract_slice %x[%i] [%m] [1] : tensor<?xf32> to tensor<?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %s into %r[%i] [%m] [1] : tensor<?xf32> into tensor<?xf32>
    }
  }
  kernel.return %0 : tensor<?xf32>
}

// CHECK-LABEL: tt.func public @unbounded
// CHECK-SAME: kernel.index_bits = 32
kernel.func @unbounded(%x: tensor<?xf32> {prim.sizes = affine_map<()[s0] -> (s0)>}, %o: tensor<?xf32> {prim.sizes = affine_map<()[s0] -> (s0)>}) attributes {outs = 1, kernel.grid = affine_map<()[s0] -> (s0 ceildiv 128)>} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %o, %c0 : tensor<?xf32>
  %0 = scf.forall (%i) = (0) to (%n) step (128) shared_outs(%r = %o) -> (tensor<?xf32>) {
    %m = affine.min affine_map<(d0)[s0] -> (-d0 + s0, 128)>(%i)[%n]
    %s = tensor.extract_slice %x[%i] [%m] [1] : tensor<?xf32> to tensor<?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %s into %r[%i] [%m] [1] : tensor<?xf32> into tensor<?xf32>
    }
  }
  kernel.return %0 : tensor<?xf32>
}

// CHECK-LABEL: tt.func public @one_of_two
// CHECK-SAME: kernel.index_bits = 64
kernel.func @one_of_two(%x: tensor<?xf32> {prim.sizes = affine_map<()[s0] -> (s0)>}, %o: tensor<?xf32> {prim.sizes = affine_map<()[s0] -> (s0)>}) attributes {outs = 1, kernel.grid = affine_map<()[s0] -> (s0 ceildiv 128)>} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %o, %c0 : tensor<?xf32>
  %0 = scf.forall (%i) = (0) to (%n) step (128) shared_outs(%r = %o) -> (tensor<?xf32>) {
    %m = affine.min affine_map<(d0)[s0] -> (-d0 + s0, 128)>(%i)[%n]
    %s = tensor.extract_slice %x[%i] [%m] [1] : tensor<?xf32> to tensor<?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %s into %r[%i] [%m] [1] : tensor<?xf32> into tensor<?xf32>
    }
  }
  kernel.return %0 : tensor<?xf32>
}

// CHECK-LABEL: tt.func public @strided
// CHECK-SAME: kernel.index_bits = 64
kernel.func @strided(%x: tensor<?xf32> {prim.sizes = affine_map<()[s0] -> (s0)>, kernel.strides = affine_map<()[s0] -> (s0)>}, %o: tensor<?xf32> {prim.sizes = affine_map<()[s0] -> (s0)>}) attributes {outs = 1, kernel.grid = affine_map<()[s0] -> (s0 ceildiv 128)>} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %o, %c0 : tensor<?xf32>
  %0 = scf.forall (%i) = (0) to (%n) step (128) shared_outs(%r = %o) -> (tensor<?xf32>) {
    %m = affine.min affine_map<(d0)[s0] -> (-d0 + s0, 128)>(%i)[%n]
    %s = tensor.extract_slice %x[%i] [%m] [1] : tensor<?xf32> to tensor<?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %s into %r[%i] [%m] [1] : tensor<?xf32> into tensor<?xf32>
    }
  }
  kernel.return %0 : tensor<?xf32>
}
