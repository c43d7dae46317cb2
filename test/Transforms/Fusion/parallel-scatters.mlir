// lamina-parallel-scatters: what can be done by atomic operations, and what is left in order.
// RUN: lamina-opt %s --pass-pipeline='builtin.module(func.func(lamina-parallel-scatters{least-positions=4 least-work=100},cse))' | FileCheck %s
// RUN: lamina-opt %s --pass-pipeline='builtin.module(func.func(lamina-parallel-scatters))' | FileCheck %s --check-prefix=SMALL

// With the usual options these are too small.
// SMALL-NOT: in_place

// Narrow floats are summed in f32, and round once.
// CHECK-LABEL: @sum
// CHECK-DAG: %[[X:.*]] = prim.convert %arg0 : tensor<100x16xbf16> to tensor<100x16xf32>
// CHECK-DAG: %[[U:.*]] = prim.convert %arg1 : tensor<5x16xbf16> to tensor<5x16xf32>
// CHECK: %[[S:.*]] = prim.scatter <sum> %[[X]], %[[U]][%arg2] dims [0] {in_place}
// CHECK: prim.convert %[[S]] : tensor<100x16xf32> to tensor<100x16xbf16>
func.func @sum(%x: tensor<100x16xbf16>, %u: tensor<5x16xbf16>, %i: tensor<5xi64>) -> tensor<100x16xbf16> {
  %0 = prim.scatter <sum> %x, %u[%i] dims [0] : (tensor<100x16xbf16>, tensor<5x16xbf16>, tensor<5xi64>) -> tensor<100x16xbf16>
  return %0 : tensor<100x16xbf16>
}

// CHECK-LABEL: @integers
// CHECK-NOT: convert
// CHECK: prim.scatter <min> %arg0, %arg1[%arg2] dims [0] {in_place} : (tensor<100xi64>
func.func @integers(%x: tensor<100xi64>, %u: tensor<5xi64>, %i: tensor<5xi64>) -> tensor<100xi64> {
  %0 = prim.scatter <min> %x, %u[%i] dims [0] : (tensor<100xi64>, tensor<5xi64>, tensor<5xi64>) -> tensor<100xi64>
  return %0 : tensor<100xi64>
}

// Floats as integers of the same order, NaN above or below all.
// CHECK-LABEL: @max
// CHECK-DAG: prim.constant dense<0x7FC00000> : tensor<f32>
// CHECK-DAG: prim.compare <ne> %arg0, %arg0
// CHECK: prim.compare <ne> %arg1, %arg1
// CHECK: prim.bitcast %{{.*}} : tensor<5xf32> to tensor<5xi32>
// CHECK: prim.shr
// CHECK: prim.and
// CHECK: %[[K:.*]] = prim.xor
// CHECK: prim.scatter <max> %{{.*}}, %[[K]][%arg2] dims [0] {in_place} : (tensor<100xi32>
// CHECK: prim.bitcast %{{.*}} : tensor<100xi32> to tensor<100xf32>
func.func @max(%x: tensor<100xf32>, %u: tensor<5xf32>, %i: tensor<5xi64>) -> tensor<100xf32> {
  %0 = prim.scatter <max> %x, %u[%i] dims [0] : (tensor<100xf32>, tensor<5xf32>, tensor<5xi64>) -> tensor<100xf32>
  return %0 : tensor<100xf32>
}

// The last update of each row is found by its number, and read from there.
// CHECK-LABEL: @assign
// CHECK-DAG: %[[NONE:.*]] = prim.constant dense<-1> : tensor<i32>
// CHECK-DAG: %[[START:.*]] = prim.broadcast %[[NONE]] dims [] : tensor<i32> to tensor<100xi32>
// CHECK-DAG: %[[ROW:.*]] = prim.iota 0 : tensor<5x7xi32>
// CHECK-DAG: %[[COLUMN:.*]] = prim.iota 1 : tensor<5x7xi32>
// CHECK-DAG: %[[ROWS:.*]] = prim.mul %[[ROW]], %{{.*}}
// CHECK-DAG: %[[NUMBER:.*]] = prim.add %[[ROWS]], %[[COLUMN]]
// CHECK: %[[LAST:.*]] = prim.scatter <max> %[[START]], %[[NUMBER]][%arg2] dims [0] {in_place}
// CHECK: prim.compare <ge> %[[LAST]]
// CHECK: %[[FLAT:.*]] = prim.reshape %arg1 : tensor<5x7x16xi1> to tensor<35x16xi1>
// CHECK: %[[NEW:.*]] = prim.gather %[[FLAT]]
// CHECK: %[[TURNED:.*]] = prim.transpose %[[NEW]] [1, 0]
// CHECK: prim.select %{{.*}}, %[[TURNED]], %arg0
func.func @assign(%x: tensor<16x100xi1>, %u: tensor<5x7x16xi1>, %i: tensor<5x7xi64>) -> tensor<16x100xi1> {
  %0 = prim.scatter <assign> %x, %u[%i] dims [1] : (tensor<16x100xi1>, tensor<5x7x16xi1>, tensor<5x7xi64>) -> tensor<16x100xi1>
  return %0 : tensor<16x100xi1>
}

// Floats in order, products, and assignments of perhaps no updates are left alone.
// CHECK-LABEL: @left
// CHECK: prim.scatter <sum> %arg0, %arg1[%arg2] dims [0] {ordered}
// CHECK: prim.scatter <prod> %{{.*}}, %arg1[%arg2] dims [0] :
// CHECK: prim.scatter <assign> %{{.*}}, %arg3[%arg4] dims [0] :
// CHECK-NEXT: return
func.func @left(%x: tensor<100xf32>, %u: tensor<5xf32>, %i: tensor<5xi64>,
                %v: tensor<?xf32> {prim.sizes = affine_map<()[s0] -> (s0)>},
                %j: tensor<?xi64> {prim.sizes = affine_map<()[s0] -> (s0)>}) -> tensor<100xf32> {
  %0 = prim.scatter <sum> %x, %u[%i] dims [0] {ordered} : (tensor<100xf32>, tensor<5xf32>, tensor<5xi64>) -> tensor<100xf32>
  %1 = prim.scatter <prod> %0, %u[%i] dims [0] : (tensor<100xf32>, tensor<5xf32>, tensor<5xi64>) -> tensor<100xf32>
  %2 = prim.scatter <assign> %1, %v[%j] dims [0] : (tensor<100xf32>, tensor<?xf32>, tensor<?xi64>) -> tensor<100xf32>
  return %2 : tensor<100xf32>
}
