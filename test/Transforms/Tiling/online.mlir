// RUN: lamina-opt %s --split-input-file --pass-pipeline='builtin.module(kernel.func(lamina-tile-kernels{threads=1 online-elements=64}))' | FileCheck %s

// One loop over blocks of the reduced dimension: the maximum so far, the sum and the product are carried, and scaled
// when the maximum grows. The mask ends the loop at the diagonal.

// CHECK-DAG: #[[$END:.*]] = affine_map<()[s0] -> (s0 + 64, 128)>
// CHECK-LABEL: kernel.func @attention
// CHECK: scf.forall
// CHECK: %[[LAST:.*]] = affine.min #[[$END]]
// CHECK: scf.for {{.*}} to %[[LAST]] step {{.*}} iter_args({{.*}}) -> (tensor<{{.*}}xf32>, tensor<{{.*}}xf32>, tensor<{{.*}}x32xf32>)
// CHECK: lamina.contraction
// CHECK: arith.maximumf
// CHECK: linalg.generic
// CHECK: arith.maximumf
// CHECK: arith.cmpf oeq
// CHECK: math.exp
// CHECK: arith.mulf
// CHECK: math.exp
// CHECK: arith.addf
// CHECK: arith.mulf
// CHECK: lamina.contraction
// CHECK: scf.yield
// CHECK: arith.divf
#qk = affine_map<(m, n, d) -> (m, d)>
#kk = affine_map<(m, n, d) -> (n, d)>
#ss = affine_map<(m, n, d) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>
#row = affine_map<(m, n) -> (m)>
#pp = affine_map<(m, d, n) -> (m, n)>
#vv = affine_map<(m, d, n) -> (n, d)>
#oo = affine_map<(m, d, n) -> (m, d)>
kernel.func @attention(%q: tensor<128x32xf32>, %k: tensor<128x32xf32>, %v: tensor<128x32xf32>, %out: tensor<128x32xf32>)
    attributes {kernel.online, outs = 1} {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e0 = tensor.empty() : tensor<128x128xf32>
  %e1 = tensor.empty() : tensor<128xf32>
  %e2 = tensor.empty() : tensor<128x32xf32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<128x128xf32>) -> tensor<128x128xf32>
  %s = linalg.generic {indexing_maps = [#qk, #kk, #ss], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<128x32xf32>, tensor<128x32xf32>) outs(%f0 : tensor<128x128xf32>) attrs = {lamina.contraction} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %c, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<128x128xf32>
  %f1 = linalg.fill ins(%low : f32) outs(%e1 : tensor<128xf32>) -> tensor<128xf32>
  %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%s : tensor<128x128xf32>) outs(%f1 : tensor<128xf32>) {
  ^bb0(%a: f32, %c: f32):
    %i = linalg.index 0 : index
    %i64 = arith.index_cast %i : index to i64
    %j = linalg.index 1 : index
    %j64 = arith.index_cast %j : index to i64
    %keep = arith.cmpi sge, %i64, %j64 : i64
    %x = arith.select %keep, %a, %low : f32
    %0 = arith.maximumf %c, %x : f32
    linalg.yield %0 : f32
  } -> tensor<128xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<128xf32>) -> tensor<128xf32>
  %p:2 = linalg.generic {indexing_maps = [#id, #row, #id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%s, %m : tensor<128x128xf32>, tensor<128xf32>) outs(%e0, %f2 : tensor<128x128xf32>, tensor<128xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32, %c: f32):
    %i = linalg.index 0 : index
    %i64 = arith.index_cast %i : index to i64
    %j = linalg.index 1 : index
    %j64 = arith.index_cast %j : index to i64
    %keep = arith.cmpi sge, %i64, %j64 : i64
    %x = arith.select %keep, %a, %low : f32
    %0 = arith.subf %x, %b : f32
    %1 = math.exp %0 : f32
    %2 = arith.addf %c, %1 : f32
    linalg.yield %1, %2 : f32, f32
  } -> (tensor<128x128xf32>, tensor<128xf32>)
  %f3 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<128x32xf32>) -> tensor<128x32xf32>
  %acc = linalg.generic {indexing_maps = [#pp, #vv, #oo], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%p#0, %v : tensor<128x128xf32>, tensor<128x32xf32>) outs(%f3 : tensor<128x32xf32>) attrs = {lamina.contraction} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %c, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<128x32xf32>
  %o = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%acc, %p#1 : tensor<128x32xf32>, tensor<128xf32>) outs(%e2 : tensor<128x32xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %0 = arith.divf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<128x32xf32>
  kernel.return %o : tensor<128x32xf32>
}
