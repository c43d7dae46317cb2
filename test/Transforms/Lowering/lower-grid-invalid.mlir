// lamina-lower-grid: what it refuses.
// RUN: lamina-opt %s --split-input-file --verify-diagnostics --lamina-lower-grid

kernel.func @outside(%o: memref<4xf32>) attributes {outs = 1 : i64, kernel.grid = affine_map<() -> (4)>} {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  // expected-error@+1 {{writes memory outside of the kernel's grid}}
  memref.store %z, %o[%c0] : memref<4xf32>
  scf.forall (%i) in (4) {
    memref.store %z, %o[%i] : memref<4xf32>
  }
  kernel.return
}

// -----

kernel.func @two(%o: memref<4xf32>) attributes {outs = 1 : i64, kernel.grid = affine_map<() -> (4)>} {
  scf.forall (%i) in (4) {
  }
  // expected-error@+1 {{is the second grid of its kernel}}
  scf.forall (%i) in (4) {
  }
  kernel.return
}

// -----

kernel.func @unbounded(%x: memref<4xindex>, %o: memref<4xindex>) attributes {outs = 1 : i64, kernel.grid = affine_map<() -> (4)>} {
  %c0 = arith.constant 0 : index
  scf.forall (%i) in (4) {
    %n = memref.load %x[%i] : memref<4xindex>
    // expected-error@+1 {{is a temporary whose size has no bound}}
    %t = memref.alloc(%n) : memref<?xindex>
    %v = memref.load %t[%c0] : memref<?xindex>
    memref.store %v, %o[%i] : memref<4xindex>
  }
  kernel.return
}

// -----

// expected-error@+1 {{has an argument of type 'tensor<4xf32>'; lamina-bufferize-kernels comes first}}
kernel.func @tensor(%x: tensor<4xf32>, %o: tensor<4xf32>) attributes {outs = 1 : i64} {
  kernel.return %x : tensor<4xf32>
}

// -----

kernel.func @grid(%o: memref<4xf32>) attributes {outs = 1 : i64, kernel.grid = affine_map<() -> (4, 2)>} {
  // expected-error@+1 {{has 1 dimensions, the kernel's kernel.grid has 2}}
  scf.forall (%i) in (4) {
  }
  kernel.return
}

// -----

kernel.func @no_grid(%o: memref<4xf32>) attributes {outs = 1 : i64} {
  // expected-error@+1 {{has 1 dimensions, the kernel's kernel.grid has 0}}
  scf.forall (%i) in (4) {
  }
  kernel.return
}
