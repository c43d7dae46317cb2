// Kernels of scatters in place: what they change is memory that nothing else reads; and the plan of that memory.
// RUN: lamina-opt %s --lamina-fuse-kernels | FileCheck %s
// RUN: lamina-opt %s --lamina-fuse-kernels --lamina-plan-memory | FileCheck %s --check-prefix=PLAN

// An argument is copied; changes of updates and indices are the scatter's kernel's.
// CHECK-LABEL: func.func @argument
// CHECK: %[[COPY:.*]] = kernel.launch @k_copy
// CHECK: %[[OWN:.*]] = kernel.view %[[COPY]]
// CHECK: kernel.launch @k_exp_neg_scatter [] ins(%arg1, %arg2, %[[OWN]]
// CHECK-NEXT: return
// PLAN-LABEL: func.func @argument
// PLAN-SAME: %[[OUT:[a-z0-9]+]]: tensor<100x16xf32>) attributes
// PLAN-NOT: kernel.alloc
// PLAN: kernel.launch @k_copy {{.*}} outs(%[[FLAT:.*]] : tensor<1600xf32>)
// PLAN: kernel.launch {{.*}} outs(%{{.*}} : tensor<100x16xf32>)
func.func @argument(%x: tensor<100x16xf32>, %u: tensor<5x16xf32>, %i: tensor<5xi64>) -> tensor<100x16xf32> {
  %0 = prim.exp %u : tensor<5x16xf32>
  %1 = prim.neg %i : tensor<5xi64>
  %2 = prim.scatter <sum> %x, %0[%1] dims [0] {in_place} : (tensor<100x16xf32>, tensor<5x16xf32>, tensor<5xi64>) -> tensor<100x16xf32>
  return %2 : tensor<100x16xf32>
}

// Two scatters of one value, which is read again: each has its copy, which the value's kernel writes. Memory that one changes lives until its last reader.
// CHECK-LABEL: func.func @shared
// CHECK: %[[X:.*]]:3 = kernel.launch @k_exp
// CHECK: kernel.launch @k_scatter [] ins(%[[X]]#1,
// CHECK: kernel.launch @k_scatter [] ins(%[[X]]#2,
// CHECK: kernel.launch @k_add [] ins(%{{.*}}, %{{.*}}, %[[X]]#0
// PLAN-LABEL: func.func @shared
// PLAN-DAG: kernel.alloc slot 0
// PLAN-DAG: kernel.alloc slot 1
// PLAN-DAG: kernel.alloc slot 2
// PLAN-NOT: kernel.alloc
// PLAN: return
func.func @shared(%x: tensor<100xf32>, %u: tensor<5xf32>, %i: tensor<5xi64>) -> tensor<100xf32> {
  %0 = prim.exp %x : tensor<100xf32>
  %1 = prim.scatter <sum> %0, %u[%i] dims [0] {in_place} : (tensor<100xf32>, tensor<5xf32>, tensor<5xi64>) -> tensor<100xf32>
  %2 = prim.scatter <sum> %0, %u[%i] dims [0] {in_place} : (tensor<100xf32>, tensor<5xf32>, tensor<5xi64>) -> tensor<100xf32>
  %3 = prim.add %1, %2 : tensor<100xf32>
  %4 = prim.add %3, %0 : tensor<100xf32>
  return %4 : tensor<100xf32>
}

// One after the other: one copy, all in the memory of the result.
// PLAN-LABEL: func.func @chain
// PLAN-SAME: %[[OUT:[a-z0-9]+]]: tensor<100xf32>) attributes
// PLAN-NEXT: kernel.launch @k_copy{{.*}} outs(%[[OUT]]
// PLAN-NEXT: kernel.launch @k_scatter{{.*}} outs(%[[OUT]]
// PLAN-NEXT: kernel.launch @k_scatter{{.*}} outs(%[[OUT]]
// PLAN-NEXT: return
func.func @chain(%x: tensor<100xf32>, %u: tensor<5xf32>, %i: tensor<5xi64>) -> tensor<100xf32> {
  %0 = prim.scatter <sum> %x, %u[%i] dims [0] {in_place} : (tensor<100xf32>, tensor<5xf32>, tensor<5xi64>) -> tensor<100xf32>
  %1 = prim.scatter <sum> %0, %u[%i] dims [0] {in_place} : (tensor<100xf32>, tensor<5xf32>, tensor<5xi64>) -> tensor<100xf32>
  return %1 : tensor<100xf32>
}

// CHECK: kernel.func @k_exp_neg_scatter({{.*}}) attributes {kernel.in_place = array<i64: 2>, outs = 1 : i64}
// CHECK: prim.scatter <sum> {{.*}} {in_place}
