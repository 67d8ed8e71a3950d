// Tensor intrinsics: each built-in one is found in a product of its dtypes, gives the same numbers in the interpreter,
// and in machine code where this processor has it; one declared by a user works like them.
#include "codegen/target.h"
#include "support/diagnostic.h"
#include "tests/schedule/chains.h"
#include "tir/compute.h"
#include "tir/lower/lower.h"
#include "tir/schedule/schedule.h"

#include "tests/catch.h"

namespace relaxc::test {

namespace {

// C[m, j] += A[m, k] * B[j, k] in tiles of the intrinsic, B packed so that a tile's elements are neighbours.
PrimFuncRef product_for(const TensorIntrin& intrin) {
  std::vector<Buffer> params = buffer_params(intrin.description);
  DType a = buffer_type(params[0]).dtype, b_dtype = buffer_type(params[1]).dtype, c = buffer_type(params[2]).dtype;
  int64_t n = *as_int(buffer_type(params[1]).shape[0]), k = *as_int(buffer_type(params[1]).shape[1]);
  ComputeBuilder b;
  Expr m = int_imm(3), columns = int_imm(2 * n), depth = int_imm(6 * k);
  Buffer x = b.input("A", a, {m, depth}), y = b.input("B", b_dtype, {int_imm(2), int_imm(6), int_imm(n), int_imm(k)});
  Buffer out = b.reduce("C", c, {m, columns}, {depth}, zero(c), combine_sum, [&](Axes i, Axes r) {
    Expr right = load(y, {floor_div(i[1], n), floor_div(r[0], k), floor_mod(i[1], n), floor_mod(r[0], k)});
    return cast_to(load(x, {i[0], r[0]}), c) * cast_to(right, c);
  });
  return b.finish({out});
}

PrimFuncRef tensorized(const TensorIntrin& intrin, const TensorIntrins& table) {
  std::vector<Buffer> params = buffer_params(intrin.description);
  int64_t n = *as_int(buffer_type(params[1]).shape[0]), k = *as_int(buffer_type(params[1]).shape[1]);
  Schedule sch(product_for(intrin), {.intrins = &table});
  BlockRV block = sch.get_block("C");
  Loops l = sch.get_loops(block);
  Loops j = sch.split(l[1], {std::nullopt, n}), d = sch.split(l[2], {std::nullopt, k});
  sch.reorder({l[0], j[0], d[0], j[1], d[1]});
  sch.decompose_reduction(block, d[0]);
  sch.tensorize(j[1], intrin.name);
  return sch.function();
}

}  // namespace

TEST_CASE("built-in tensor intrinsics compute what they describe", "[schedule]") {
  const TensorIntrins& table = builtin_tensor_intrins();
  CHECK(table.names().size() >= 9);
  for (const std::string& name : table.names()) {
    INFO(name);
    const TensorIntrin& intrin = *table.find(name);
    // Those of scalable length need a loop for what does not fill a vector: tests/codegen/aarch64_test.cc.
    if (!as_int(buffer_type(buffer_params(intrin.description)[1]).shape[0])) continue;
    std::string problem = compare_programs(product_for(intrin), tensorized(intrin, table), {{}}, 7,
                                           {.compile = runs_here(tensorized(intrin, table))});
    CHECK(problem == "");
  }
}

TEST_CASE("a tensor intrinsic that a user declares", "[schedule]") {
  TensorIntrins table;
  table.add(parse_tensor_intrin(R"(
@T.prim_func(private=True)
def description(A: T.Buffer((2,), "float32", offset_factor=1), B: T.Buffer((4, 2), "float32", offset_factor=1), C: T.Buffer((4,), "float32", offset_factor=1)):
    T.func_attr({"tensor_intrin": "my_dot"})
    for i, k in T.grid(4, 2):
        with T.block("dot"):
            vi, vk = T.axis.remap("SR", [i, k])
            C[vi] = C[vi] + A[vk] * B[vi, vk]

@T.prim_func(private=True)
def implementation(A: T.Buffer((2,), "float32", offset_factor=1), B: T.Buffer((4, 2), "float32", offset_factor=1), C: T.Buffer((4,), "float32", offset_factor=1)):
    for i in T.unroll(4):
        C[i] = C[i] + (A[0] * B[i, 0] + A[1] * B[i, 1])
)",
                                "my_dot.py"));
  const TensorIntrin& intrin = *table.find("my_dot");
  CHECK(compare_programs(product_for(intrin), tensorized(intrin, table), {{}}, 3, {.compile = true}) == "");
}

TEST_CASE("tensorize says what does not match, and leaves the program as it was", "[schedule]") {
  const TensorIntrin& intrin = *builtin_tensor_intrins().find("dot_16x4_u8s8s32_vnni");
  Schedule sch(product_for(intrin));
  Loops l = sch.get_loops(sch.get_block("C"));
  Loops j = sch.split(l[1], {std::nullopt, 16}), d = sch.split(l[2], {std::nullopt, 4});
  sch.reorder({l[0], j[0], d[0], j[1], d[1]});
  PrimFuncRef before = sch.function();
  auto error_of = [&](const std::string& name) -> std::string {
    try {
      sch.tensorize(j[1], name);
    } catch (const CompileError& error) {
      return error.what();
    }
    return "";
  };
  CHECK(error_of("dot_16x4_s8s8s32_vnni").find("buffer 'A' is uint8") != std::string::npos);
  CHECK(error_of("no_such").find("there is no intrinsic 'no_such'") != std::string::npos);
  CHECK(structural_equal(before, sch.function()));
}

}  // namespace relaxc::test
