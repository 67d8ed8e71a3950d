// Tensor intrinsics: each built-in one is found in a product of its dtypes (those of float32 in matrices as they are,
// and in panels), gives the same numbers in the interpreter, and in machine code where this processor has it; one
// declared by a user works like them.
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "codegen/llvm_compile.h"
#include "codegen/target.h"
#include "passes/pass.h"
#include "support/diagnostic.h"
#include "tests/lowering.h"
#include "tests/schedule/chains.h"
#include "tir/analysis/annotations.h"
#include "tir/compute.h"
#include "tir/primitives/decompose_reduction.h"
#include "tir/primitives/get_block.h"
#include "tir/primitives/get_loops.h"
#include "tir/primitives/pad_einsum.h"
#include "tir/primitives/reorder.h"
#include "tir/primitives/split.h"
#include "tir/primitives/tensorize.h"
#include "tir/rules/lanes.h"
#include "tir/schedule/schedule.h"

#include "tests/catch.h"

namespace relaxc::test {

namespace {

// C[m, j] += A[m, k] * B[j, k] in tiles of the intrinsic, B packed so that a tile's elements are neighbours.
PrimFuncRef product_for(const TensorIntrin& intrin) {
  std::vector<Buffer> params = buffer_params(intrin.description);
  DType a = buffer_type(params[0]).dtype, b_dtype = buffer_type(params[1]).dtype, c = buffer_type(params[2]).dtype;
  int64_t n = *as_int(buffer_type(params[2]).shape[0]), k = *as_int(buffer_type(params[0]).shape[0]);
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
  int64_t n = *as_int(buffer_type(params[2]).shape[0]), k = *as_int(buffer_type(params[0]).shape[0]);
  Schedule sch(product_for(intrin), {.intrins = &table});
  BlockRV block = sch.apply(GetBlock{"C"});
  Loops l = sch.apply(GetLoops{block});
  Loops j = sch.apply(Split{l[1], {std::nullopt, n}}), d = sch.apply(Split{l[2], {std::nullopt, k}});
  sch.apply(Reorder{{l[0], j[0], d[0], j[1], d[1]}});
  sch.apply(DecomposeReduction{block, d[0]});
  sch.apply(Tensorize{j[1], intrin.name});
  return sch.function();
}

// C[x, n] += A[r, x + t, n] * B[r, n, t]: windows of one filter for each channel, whose rows are summed by the
// instruction.
PrimFuncRef windows_for(const DotForm& form) {
  constexpr int64_t kRows = 3, kPixels = 7;
  ComputeBuilder b;
  Expr rows = int_imm(kRows), lanes = int_imm(form.lanes), taps = int_imm(form.group);
  Buffer x = b.input("A", form.a, {rows, int_imm(kPixels + form.group), lanes}),
         y = b.input("B", form.b, {rows, lanes, taps});
  Buffer out = b.reduce("C", form.result, {int_imm(kPixels), lanes}, {rows, taps}, zero(form.result), combine_sum,
                        [&](Axes i, Axes r) {
                          return cast_to(load(x, {r[0], i[0] + r[1], i[1]}), form.result) *
                                 cast_to(load(y, {r[0], i[1], r[1]}), form.result);
                        });
  return b.finish({out});
}

// S[m, n] += P[m, n, p], P[m, n, p] += A[m, w, 2 p + k] * (byte 2 p + k of word w of column n) for words whose bytes
// are numbers of 4 bits.
PrimFuncRef pairs_for(const DotForm& form) {
  constexpr int64_t kRows = 3, kWords = 8;  // of 16 products in each sum, which 16 bits hold
  constexpr int64_t kNumbers = 0x0f0f0f0f;
  ComputeBuilder b;
  const Expr rows = int_imm(kRows), words = int_imm(kWords), lanes = int_imm(form.lanes), pairs = int_imm(2);
  const Buffer x = b.input("A", form.a, {rows, words, int_imm(4)}), y = b.input("B", kInt32, {words, lanes});
  const Buffer numbers = b.compute("numbers", kInt32, {words, lanes}, [&](Axes i) {
    return binary(BinaryOp::kBitAnd, load(y, {i[0], i[1]}), int_imm(kNumbers, kInt32));
  });
  const Buffer sums_of_pairs = b.reduce(
      "pairs", form.result, {rows, lanes, pairs}, {words, pairs}, zero(form.result), combine_sum, [&](Axes i, Axes r) {
        const Expr bits = cast_to(i[2] * 16 + r[1] * 8, kInt32);
        const Expr byte = binary(BinaryOp::kShiftRight, load(numbers, {r[0], i[1]}), bits);
        return cast_to(load(x, {i[0], r[0], i[2] * 2 + r[1]}), form.result) *
               cast_to(binary(BinaryOp::kBitAnd, byte, int_imm(255, kInt32)), form.result);
      });
  return b.finish({b.reduce("sums", kInt32, {rows, lanes}, {pairs}, zero(kInt32), combine_sum,
                            [&](Axes i, Axes r) { return cast_to(load(sums_of_pairs, {i[0], i[1], r[0]}), kInt32); })});
}

// C[m, n] += A[m, k] * B[k, n] in float32, B as it is or in panels [n / panel, k, panel].
PrimFuncRef matmul(const Expr& rows, int64_t columns, int64_t depth, int64_t panel = 0) {
  ComputeBuilder b;
  Expr n = int_imm(columns), k = int_imm(depth);
  Buffer x = b.input("A", kFloat32, {rows, k});
  Buffer y = b.input("B", kFloat32,
                     panel ? std::vector<Expr>{int_imm(columns / panel), k, int_imm(panel)} : std::vector<Expr>{k, n});
  Buffer out = b.reduce("C", kFloat32, {rows, n}, {k}, zero(kFloat32), combine_sum, [&](Axes i, Axes r) {
    Expr right = panel ? load(y, {floor_div(i[1], panel), r[0], floor_mod(i[1], panel)}) : load(y, {r[0], i[1]});
    return load(x, {i[0], r[0]}) * right;
  });
  return b.finish({out});
}

struct TileIntrin {
  const char* name;
  int64_t rows, columns, depth;
  const char *target, *vector_register;
  int sums;  // vectors of them
};
const TileIntrin kTileIntrins[] = {{"fma_6x64x8_f32_avx512", 6, 64, 8, "x86-64-v4", "zmm", 24},
                                   {"fma_6x16x8_f32_avx2", 6, 16, 8, "x86-64-v3", "ymm", 12}};

// Full tiles by the intrinsic; `rows` is the loop over rows that fill tiles.
void tensorize_tiles(Schedule& sch, BlockRV block, LoopRV rows, const TileIntrin& tile) {
  Loops l = sch.apply(GetLoops{block});
  Loops i = sch.apply(Split{rows, {std::nullopt, tile.rows}}), j = sch.apply(Split{l[1], {std::nullopt, tile.columns}});
  Loops k = sch.apply(Split{l[2], {std::nullopt, tile.depth}});
  sch.apply(Reorder{{i[0], j[0], k[0], i[1], j[1], k[1]}});
  sch.apply(DecomposeReduction{block, k[0]});
  sch.apply(Tensorize{i[1], tile.name});
}

const std::vector<std::map<std::string, int64_t>> kRowsAroundTile = {{{"m", 0}}, {{"m", 1}},  {{"m", 5}}, {{"m", 6}},
                                                                     {{"m", 7}}, {{"m", 12}}, {{"m", 17}}};

}  // namespace

TEST_CASE("built-in multiply-adds take a matrix as it is, and in panels", "[schedule]") {
  for (auto [name, lanes] : {std::pair("fma_16_f32_avx512", 16), std::pair("fma_8_f32_avx2", 8)}) {
    for (int64_t panel : {0, lanes}) {
      INFO(name << " panels of " << panel);
      PrimFuncRef program = matmul(make_dim("m"), 3 * lanes, 10, panel);
      Schedule sch(program);
      BlockRV block = sch.apply(GetBlock{"C"});
      Loops l = sch.apply(GetLoops{block});
      Loops j = sch.apply(Split{l[1], {std::nullopt, lanes}});
      sch.apply(Reorder{{l[0], j[0], l[2], j[1]}});
      sch.apply(DecomposeReduction{block, l[2]});
      sch.apply(Tensorize{j[1], name});
      CHECK(compare_programs(program, sch.function(), kRowsAroundTile, 5, {.compile = runs_here(sch.function())}) ==
            "");
    }
  }
}

TEST_CASE("built-in tiles of float32", "[schedule]") {
  for (const TileIntrin& tile : kTileIntrins) {
    int64_t depth = 3 * tile.depth, columns = 2 * tile.columns;
    for (int64_t panel : {int64_t{0}, tile.columns}) {
      INFO(tile.name << " panels of " << panel);
      PrimFuncRef program = matmul(int_imm(18), columns, depth, panel);
      Schedule sch(program);
      BlockRV block = sch.apply(GetBlock{"C"});
      tensorize_tiles(sch, block, sch.apply(GetLoops{block})[0], tile);
      CHECK(compare_programs(program, sch.function(), {{}}, 5, {.compile = runs_here(sch.function())}) == "");
      // One multiply-add for each vector of sums, none of them in memory while the depth runs.
      std::istringstream lines(
          codegen::to_assembly({{"k", lower_program(sch.function())}}, codegen::parse_target(tile.target)));
      int sums = 0, spills = 0;
      for (std::string line; std::getline(lines, line);) {
        sums += line.find("vfmadd") != std::string::npos;
        spills += line.find(tile.vector_register) != std::string::npos && line.find("(%rsp") != std::string::npos;
      }
      CHECK(sums == tile.sums);
      CHECK(spills == 0);
    }
    INFO(tile.name << " symbolic rows");
    PrimFuncRef program = matmul(make_dim("m"), columns - 5, depth + 1);
    Schedule sch(program);
    BlockRV block = sch.apply(GetBlock{"C"});
    sch.apply(PadEinsum{block, {tile.rows, tile.columns, tile.depth}});
    tensorize_tiles(sch, block, sch.apply(GetLoops{block})[0], tile);
    CHECK(compare_programs(program, sch.function(), kRowsAroundTile, 5, {.compile = runs_here(sch.function())}) == "");
  }
}

TEST_CASE("built-in tensor intrinsics compute what they describe", "[schedule]") {
  const TensorIntrins& table = builtin_tensor_intrins();
  CHECK(table.names().size() >= 9);
  for (const std::string& name : table.names()) {
    INFO(name);
    if (name.starts_with("amx_")) continue;  // tests/schedule/tiles_test.cc
    if (name.starts_with("sum_") || name.find("_s8u8s16_") != std::string::npos) continue;  // sums of pairs, below
    const TensorIntrin& intrin = *table.find(name);
    // Those of scalable length need a loop for what does not fill a vector: tests/codegen/aarch64_test.cc.
    const BufferType& out = buffer_type(buffer_params(intrin.description)[2]);
    if (out.shape.size() == 2) CHECK(std::ranges::count(kTileIntrins, name, &TileIntrin::name) == 1);  // runs there
    if (out.shape.size() == 2 || !as_int(out.shape[0])) continue;
    std::string problem = compare_programs(product_for(intrin), tensorized(intrin, table), {{}}, 7,
                                           {.compile = runs_here(tensorized(intrin, table))});
    CHECK(problem == "");
  }
}

TEST_CASE("dot products whose lanes have elements of their own on both sides", "[schedule]") {
  for (const DotForm& form : dot_forms()) {
    if (form.group == 1 || form.lanes < 0 || !form.sum_of_pairs.empty()) continue;
    INFO(form.name);
    const PrimFuncRef program = windows_for(form);
    Schedule sch(program);
    const BlockRV block = sch.apply(GetBlock{"C"});
    const Loops l = sch.apply(GetLoops{block});  // pixels, lanes, rows of the window, its columns
    sch.apply(Reorder{{l[0], l[2], l[1], l[3]}});
    sch.apply(DecomposeReduction{block, l[2]});
    sch.apply(Tensorize{l[1], form.name});
    CHECK(compare_programs(program, sch.function(), {{}}, 7, {.compile = runs_here(sch.function())}) == "");
  }
}

TEST_CASE("sums of products in 16 bits, two in each lane", "[schedule]") {
  int count = 0;
  for (const DotForm& form : dot_forms()) {
    if (form.sum_of_pairs.empty()) continue;
    ++count;
    INFO(form.name);
    const PrimFuncRef program = pairs_for(form);
    Schedule sch(program);
    const BlockRV pairs = sch.apply(GetBlock{"pairs"}), sums = sch.apply(GetBlock{"sums"});
    Loops l = sch.apply(GetLoops{pairs});  // rows, lanes, pairs, words, elements
    sch.apply(Reorder{{l[0], l[3], l[1], l[2], l[4]}});
    sch.apply(DecomposeReduction{pairs, l[3]});
    sch.apply(Tensorize{l[1], form.name, false});
    l = sch.apply(GetLoops{sums});
    sch.apply(DecomposeReduction{sums, l[1]});
    sch.apply(Tensorize{l[1], form.sum_of_pairs});
    CHECK(compare_programs(program, sch.function(), {{}}, 7, {.compile = runs_here(sch.function())}) == "");
  }
  CHECK(count == 3);
}

TEST_CASE("rules find the dot product of a target by its operands", "[schedule]") {
  const DType s8 = DType::int_(8), u8 = DType::uint(8), s16 = DType::int_(16), bf16 = DType::bfloat16();
  auto form = [&](const char* target, DType a, DType b, DType result) -> std::string {
    const DotForm* found = find_dot_form(a, b, result, codegen::parse_target(target));
    return found ? fmt::format("{} {}", found->name, found->group) : "";
  };
  CHECK(form("cpu=sapphirerapids", u8, s8, kInt32) == "dot_16x4_u8s8s32_vnni 4");
  CHECK(form("cpu=cooperlake", bf16, bf16, kFloat32) == "dot_16x2_bf16bf16f32_avx512 2");
  CHECK(form("cpu=alderlake", u8, s8, kInt32) == "dot_8x4_u8s8s32_vnni 4");
  CHECK(form("cpu=alderlake", s8, s8, kInt32) == "dot_8x4_s8s8s32_vnni 4");
  CHECK(form("x86-64-v4", s16, s8, kInt32) == "dot_16x2_s16s8s32_avx512 2");
  CHECK(form("x86-64-v4", u8, s8, kInt32) == "dot_16x4_u8s8s32_clamped_avx512 4");
  CHECK(form("x86-64-v4", s8, s8, kInt32).empty());
  CHECK(form("x86-64-v4", s8, u8, s16) == "dot_16x4_s8u8s16_avx512 4");
  CHECK(form("x86-64-v3", s8, u8, s16) == "dot_8x4_s8u8s16_avx2 4");
  CHECK(form("x86-64-v3", s8, u8, kInt32).empty());
  CHECK(form("x86-64", s8, u8, s16).empty());  // SSSE3 is later
  CHECK(form("x86-64-v2", s8, u8, s16) == "dot_4x4_s8u8s16_ssse3 4");
  CHECK(form("x86-64-v3", s16, s8, kInt32) == "dot_8x2_s16s8s32_avx2 2");
  CHECK(form("x86-64-v3", s16, s16, kInt32) == "dot_8x2_s16s16s32_avx2 2");
  CHECK(form("x86-64", s16, s8, kInt32) == "dot_4x2_s16s8s32_sse2 2");
  CHECK(form("cpu=sapphirerapids", kFloat32, kFloat32, kFloat32).empty());
  CHECK(form("triple=aarch64-linux-gnu,+dotprod", s8, s8, kInt32) == "dot_4x4_s8s8s32_neon 4");
  CHECK(form("triple=aarch64-linux-gnu,+dotprod", u8, s8, kInt32) == "dot_4x4_u8s8s32_dotprod 4");
  CHECK(form("triple=aarch64-linux-gnu,+dotprod", s8, u8, kInt32).empty());
  CHECK(form("triple=aarch64-linux-gnu,+dotprod,+i8mm", u8, s8, kInt32) == "dot_4x4_u8s8s32_neon 4");
  CHECK(form("triple=aarch64-linux-gnu,+dotprod,+i8mm", s8, u8, kInt32) == "dot_4x4_s8u8s32_neon 4");
  CHECK(form("triple=aarch64-linux-gnu", s8, s8, kInt32).empty());
  // A file may turn forms off, and shorter vectors have the forms of their length only.
  Target vnni = codegen::parse_target("cpu=sapphirerapids");
  vnni.vector_bits = 256;
  REQUIRE(find_dot_form(s8, s8, kInt32, vnni));
  CHECK(find_dot_form(s8, s8, kInt32, vnni)->name == "dot_8x4_s8s8s32_vnni");
  CHECK(!find_dot_form(bf16, bf16, kFloat32, vnni));
  vnni.vector_bits = 128;
  CHECK(!find_dot_form(s8, s8, kInt32, vnni));
  vnni.vector_bits = 512;
  vnni.has_int8_dot = false;
  REQUIRE(find_dot_form(u8, s8, kInt32, vnni));
  CHECK(find_dot_form(u8, s8, kInt32, vnni)->clamps());
  vnni.clamps_int8_dot = false;
  CHECK(!find_dot_form(u8, s8, kInt32, vnni));
}

TEST_CASE("rules clamp sums of products where the block allows it", "[schedule]") {
  const Target target = codegen::parse_target("x86-64-v3");
  const DType u8 = DType::uint(8), s8 = DType::int_(8);
  Block block{.name = "matmul", .body = store(make_buffer("y", kInt32, {int_imm(1)}), zero(kInt32), {int_imm(0)})};
  CHECK(!dot_form_of(block, u8, s8, target));
  block.annotations.set(annotation<"sums_in_int16">(), true);
  REQUIRE(dot_form_of(block, u8, s8, target));
  CHECK(dot_form_of(block, u8, s8, target)->name == "dot_8x4_u8s8s32_clamped_avx2");
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

}  // namespace relaxc::test
