// RUN: lamina-opt %s --pass-pipeline='builtin.module(lamina-vectorize-loops,canonicalize,cse)' --split-input-file | FileCheck %s

// Both dimensions are merged; the tail is one masked step.
// CHECK-LABEL: func.func @elementwise
// CHECK:         %[[N:.*]] = arith.muli
// CHECK:         %[[REST:.*]] = arith.andi %[[N]], %c63
// CHECK:         %[[END:.*]] = arith.subi %[[N]], %[[REST]]
// CHECK:         scf.for %[[I:.*]] = %c0 to %[[END]] step %c64 {
// CHECK:           vector.load %{{.*}}[%[[I]]] : memref<?xf32>, vector<64xf32>
// CHECK:           arith.addf {{.*}} : vector<64xf32>
// CHECK:           vector.store
// CHECK:         scf.if
// CHECK:           %[[MASK:.*]] = vector.create_mask %[[REST]] : vector<64xi1>
// CHECK:           vector.maskedload %{{.*}}[%[[END]]], %[[MASK]]
// CHECK:           vector.maskedstore
// CHECK-NOT:     scf.for
#id = affine_map<(d0, d1) -> (d0, d1)>
func.func @elementwise(%a: memref<?x?xf32>, %b: memref<?x?xf32>, %c: memref<?x?xf32>) {
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a, %b : memref<?x?xf32>, memref<?x?xf32>) outs(%c : memref<?x?xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.addf %x, %y : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

// A row is one loop with a vector of partial sums, which is combined at its end. Inactive lanes keep their sum.
// CHECK-LABEL: func.func @row_sum
// CHECK:         scf.for
// CHECK:           %[[SUM:.*]] = scf.for {{.*}} iter_args(%[[ACC:.*]] = %{{.*}}) -> (vector<64xf32>)
// CHECK:             arith.addf %[[ACC]], {{.*}} : vector<64xf32>
// CHECK:           scf.if {{.*}} -> (vector<64xf32>)
// CHECK:             %[[MASK:.*]] = vector.create_mask
// CHECK:             %[[NEXT:.*]] = arith.addf
// CHECK:             arith.select %[[MASK]], %[[NEXT]], %[[SUM]]
// CHECK:           vector.reduction <add>, %{{.*}}, %{{.*}} fastmath<reassoc> : vector<64xf32> into f32
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
func.func @row_sum(%a: memref<?x?xf32>, %c: memref<?xf32>) {
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%a : memref<?x?xf32>) outs(%c : memref<?xf32>) {
  ^bb0(%x: f32, %z: f32):
    %0 = arith.addf %x, %z : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

// A maximum along the row needs no permission to reassociate.
// CHECK-LABEL: func.func @row_max
// CHECK:         arith.maximumf {{.*}} : vector<64xf32>
// CHECK:         vector.reduction <maximumf>, %{{.*}}, %{{.*}} : vector<64xf32> into f32
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
func.func @row_max(%a: memref<3x128xf32>, %c: memref<3xf32>) {
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%a : memref<3x128xf32>) outs(%c : memref<3xf32>) {
  ^bb0(%x: f32, %z: f32):
    %0 = arith.maximumf %x, %z : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

// The sum of columns accumulates one lane a column, through the rows.
// CHECK-LABEL: func.func @column_sum
// CHECK:         %[[START:.*]] = vector.load %arg1
// CHECK:         %[[SUM:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[START]]) -> (vector<32xf32>)
// CHECK:         vector.store %[[SUM]], %arg1
// CHECK-NOT:     vector.reduction
#id = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>
func.func @column_sum(%a: memref<100x32xf32>, %c: memref<32xf32>) {
  linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]}
      ins(%a : memref<100x32xf32>) outs(%c : memref<32xf32>) {
  ^bb0(%x: f32, %z: f32):
    %0 = arith.addf %x, %z : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

// A row's scalar, and what only depends on it, is computed in front of the vector loop.
// CHECK-LABEL: func.func @broadcast
// CHECK:         scf.for %[[I:.*]] =
// CHECK:           %[[S:.*]] = memref.load %arg1[%[[I]]]
// CHECK:           %[[R:.*]] = arith.divf %{{.*}}, %[[S]] : f32
// CHECK:           %[[V:.*]] = vector.broadcast %[[R]] : f32 to vector<16xf32>
// CHECK:           arith.mulf %{{.*}}, %[[V]] : vector<16xf32>
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
func.func @broadcast(%a: memref<3x16xf32>, %s: memref<3xf32>, %c: memref<3x16xf32>) {
  linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a, %s : memref<3x16xf32>, memref<3xf32>) outs(%c : memref<3x16xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %one = arith.constant 1.0 : f32
    %0 = arith.divf %one, %y : f32
    %1 = arith.mulf %x, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// -----

// Buffers of i1 hold bytes.
// CHECK-LABEL: func.func @bool
// CHECK:         builtin.unrealized_conversion_cast %arg0 : memref<64xi1> to memref<64xi8>
// CHECK:         vector.load {{.*}} : memref<64xi8>, vector<64xi8>
// CHECK:         arith.cmpi ne
// CHECK:         arith.extui {{.*}} : vector<64xi1> to vector<64xi8>
// CHECK:         vector.store {{.*}} : memref<64xi8>, vector<64xi8>
#id = affine_map<(d0) -> (d0)>
func.func @bool(%a: memref<64xi1>, %c: memref<64xi1>) {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%a : memref<64xi1>) outs(%c : memref<64xi1>) {
  ^bb0(%x: i1, %z: i1):
    %true = arith.constant true
    %0 = arith.xori %x, %true : i1
    linalg.yield %0 : i1
  }
  return
}

// -----

// The accumulators depend on each other: one element at a time.
// CHECK-LABEL: func.func @arg_max
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK-NOT:     vector<
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
func.func @arg_max(%a: memref<4x100xf32>, %v: memref<4xf32>, %i: memref<4xi64>) {
  linalg.generic {indexing_maps = [#id, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%a : memref<4x100xf32>) outs(%v, %i : memref<4xf32>, memref<4xi64>) {
  ^bb0(%x: f32, %best: f32, %where: i64):
    %d = linalg.index 1 : index
    %k = arith.index_cast %d : index to i64
    %c = arith.cmpf ogt, %x, %best : f32
    %0 = arith.select %c, %x, %best : f32
    %1 = arith.select %c, %k, %where : i64
    linalg.yield %0, %1 : f32, i64
  }
  return
}

// -----

// The last index of a load from the body that follows the vector loop is a contiguous load.
// CHECK-LABEL: func.func @embedding
// CHECK:         vector.load
// CHECK-NOT:     vector.gather
func.func @embedding(%table: memref<?x64xf32>, %rows: memref<8xi64>, %out: memref<8x64xf32>) {
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>],
      iterator_types = ["parallel", "parallel"]} ins(%rows : memref<8xi64>) outs(%out : memref<8x64xf32>) {
  ^bb0(%k: i64, %o: f32):
    %r = arith.index_cast %k : i64 to index
    %j = linalg.index 1 : index
    %v = memref.load %table[%r, %j] : memref<?x64xf32>
    linalg.yield %v : f32
  }
  return
}

// -----

// CHECK-LABEL: func.func @copy
// CHECK-NOT:     memref.copy
// CHECK:         vector.load {{.*}} vector<64xf32>
func.func @copy(%a: memref<8x8xf32>, %b: memref<8x8xf32>) {
  memref.copy %a, %b : memref<8x8xf32> to memref<8x8xf32>
  return
}

// -----

// A transposed read goes through squares of 16 x 16 elements.
// CHECK-LABEL: func.func @transpose
// CHECK:         memref.alloca() {alignment = 64 : i64} : memref<256xf32>
// CHECK:         scf.for {{.*}} step %c16
// CHECK:           scf.for {{.*}} step %c16
// CHECK-COUNT-16:    vector.load
// CHECK-COUNT-64:    vector.shuffle
// CHECK-NOT:     vector.gather
func.func @transpose(%a: memref<32x64xf32>, %b: memref<64x32xf32>) {
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>],
      iterator_types = ["parallel", "parallel"]} ins(%a : memref<32x64xf32>) outs(%b : memref<64x32xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  }
  return
}

// -----

// Indices of a concatenation: a contiguous load where no lane is clamped, one element where all are.
// CHECK-LABEL: func.func @clamped
// CHECK:         arith.cmpi eq, %[[D:.*]], %c15
// CHECK:         scf.if {{.*}} -> (vector<16xf32>)
// CHECK:           vector.load
// CHECK:         } else {
// CHECK:           arith.cmpi eq, %[[D]], %c0
// CHECK:           vector.broadcast
// CHECK:           vector.gather
func.func @clamped(%a: memref<40xf32>, %n: index, %out: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c39 = arith.constant 39 : index
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%out : memref<64xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %j = arith.subi %i, %n : index
    %k = arith.minsi %j, %c39 : index
    %l = arith.maxsi %k, %c0 : index
    %v = memref.load %a[%l] : memref<40xf32>
    linalg.yield %v : f32
  }
  return
}
