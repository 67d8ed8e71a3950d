#include "tests/codegen/aarch64.h"

#include <cstring>
#include <filesystem>
#include <fstream>

#include "codegen/llvm_compile.h"
#include "codegen/target.h"
#include "passes/pass.h"
#include "support/diagnostic.h"
#include "support/joined.h"
#include "tests/lowering.h"
#include "tests/process.h"
#include "tir/compute.h"
#include "tir/primitives/decompose_reduction.h"
#include "tir/primitives/get_block.h"
#include "tir/primitives/get_loops.h"
#include "tir/primitives/loop_partition.h"
#include "tir/primitives/reorder.h"
#include "tir/primitives/split.h"
#include "tir/primitives/tensorize.h"
#include "tir/primitives/vectorize.h"
#include "tir/scalable_vectors.h"
#include "tir/schedule/schedule.h"
#include "vm/tensor.h"

namespace relaxc::codegen {

const std::vector<Aarch64Case>& aarch64_cases() {
  static const std::vector<Aarch64Case> kCases = {
      {"fma_4_f32_neon", "+neon", R"(fmla\s+v\d+\.4s)"},
      {"dot_4x4_s8s8s32_neon", "+dotprod", R"(sdot\s+v\d+\.4s)"},
      {"dot_4x4_u8s8s32_dotprod", "+dotprod", R"(sdot\s+v\d+\.4s)"},
      {"dot_4x4_u8s8s32_neon", "+i8mm", R"(usdot\s+v\d+\.4s)"},
      {"dot_4x4_s8u8s32_neon", "+i8mm", R"(usdot\s+v\d+\.4s)"},
      {"fma_4xvscale_f32_sve", "+sve", R"((fmla|fmad)\s+z\d+\.s)"},
      {"dot_4xvscalex4_s8s8s32_sve", "+sve", R"(sdot\s+z\d+\.s)"},
  };
  return kCases;
}
std::string aarch64_target(const char* features) {
  return fmt::format("triple=aarch64-linux-gnu,cpu=generic,{}", features);
}

namespace {

constexpr int64_t kColumns = 37;

struct Tile {
  DType a, b, c;
  Expr columns;  // of one instruction
  int64_t depth;
};
Tile tile_of(const std::string& intrin) {
  std::vector<Buffer> params = buffer_params(builtin_tensor_intrins().find(intrin)->description);
  const BufferType &a = buffer_type(params[0]), &c = buffer_type(params[2]);
  return {a.dtype, buffer_type(params[1]).dtype, c.dtype, index_in_dtype(c.shape[0], kInt64), *as_int(a.shape[0])};
}

}  // namespace

PrimFuncRef plain_product(const std::string& intrin) {
  Tile tile = tile_of(intrin);
  ComputeBuilder b;
  Expr rows = int_imm(3), columns = int_imm(kColumns), depth = int_imm(6 * tile.depth);
  Buffer x = b.input("A", tile.a, {rows, depth}), y = b.input("B", tile.b, {int_imm(6), columns, int_imm(tile.depth)});
  Buffer out = b.reduce("C", tile.c, {rows, columns}, {depth}, zero(tile.c), combine_sum, [&](Axes i, Axes r) {
    Expr right = load(y, {floor_div(r[0], tile.depth), i[1], floor_mod(r[0], tile.depth)});
    return cast_to(load(x, {i[0], r[0]}), tile.c) * cast_to(right, tile.c);
  });
  return b.finish({out});
}

PrimFuncRef tensorized_product(const std::string& intrin) {
  Tile tile = tile_of(intrin);
  Schedule sch(plain_product(intrin));
  BlockRV block = sch.apply(GetBlock{"C"});
  Loops l = sch.apply(GetLoops{block});
  Loops depth = sch.apply(Split{l[2], {std::nullopt, tile.depth}});
  sch.apply(Reorder{{l[0], depth[0], l[1], depth[1]}});
  sch.apply(DecomposeReduction{block, depth[0]});
  Expr whole = simplify(floor_div(int_imm(kColumns), tile.columns) * tile.columns);
  Loops parts = sch.apply(LoopPartition{l[1], {whole, std::nullopt}});
  Loops columns = sch.apply(Split{parts[0], {std::nullopt, tile.columns}});
  sch.apply(Tensorize{columns[1], intrin});
  return sch.function();
}

PrimFuncRef plain_rows() {
  ComputeBuilder b;
  Expr n = make_dim("n");
  Buffer x = b.input("x", kFloat32, {n});
  return b.finish({b.compute("y", kFloat32, {n}, [&](Axes i) { return max(at(x, i) + at(x, i), float_imm(0)); })});
}

PrimFuncRef scalable_rows() {
  Schedule sch(plain_rows());
  Loops l = sch.apply(GetLoops{sch.apply(GetBlock{"y"})});
  sch.apply(Vectorize{sch.apply(Split{l[0], {std::nullopt, vscale(kInt64) * 4}})[1]});
  return sch.function();
}

// ---- Running

namespace {

const char* const kAssembler = "/usr/bin/llvm-mc-" RELAXC_LLVM_VERSION;
const char* const kLinker = "/usr/bin/ld.lld-" RELAXC_LLVM_VERSION;
const char* const kEmulator = "/usr/bin/qemu-aarch64";

// Calls both kernels and leaves with 0 when the results are the same bytes; what LLVM takes for granted of a C library
// stands below.
constexpr const char* kProgram = R"(
.text
.globl _start
_start:
  adrp x0, args_plain
  add x0, x0, :lo12:args_plain
  bl relaxc_k_plain
  cbnz w0, 3f
  adrp x0, args_other
  add x0, x0, :lo12:args_other
  bl relaxc_k_other
  cbnz w0, 4f
  adrp x1, result_plain
  add x1, x1, :lo12:result_plain
  adrp x2, result_other
  add x2, x2, :lo12:result_other
  ldr x3, =result_bytes
1: cbz x3, 2f
  ldrb w4, [x1], #1
  ldrb w5, [x2], #1
  sub x3, x3, #1
  cmp w4, w5
  b.eq 1b
  mov x0, #1
  b 5f
2: mov x0, #0
  b 5f
3: mov x0, #2
  b 5f
4: mov x0, #3
5: mov x8, #93
  svc #0
.globl memset
memset:
  mov x3, x0
1: cbz x2, 2f
  strb w1, [x3], #1
  sub x2, x2, #1
  b 1b
2: ret
.globl memcpy
memcpy:
  mov x3, x0
1: cbz x2, 2f
  ldrb w4, [x1], #1
  strb w4, [x3], #1
  sub x2, x2, #1
  b 1b
2: ret
)";

std::string words(const std::vector<std::string>& items) { return fmt::format(".quad {}\n", joined(items)); }

// The inputs, two results and the arguments of both calls.
std::string data_section(const PrimFuncRef& plain, const std::vector<int64_t>& sizes) {
  std::string text = ".data\n.balign 64\ncontext: .fill 64, 1, 0\n";
  VarMap dims;
  std::vector<std::string> scalars;
  for (const VarRef& var : scalar_arguments(plain)) {
    scalars.push_back(fmt::format("{}", sizes.at(scalars.size())));
    dims.emplace(var.get(), int_imm(sizes[scalars.size() - 1]));
  }
  text += "scalars: " + (scalars.empty() ? "\n" : words(scalars));
  std::vector<Buffer> buffers = buffer_params(plain);
  std::vector<std::string> inputs;
  int64_t bytes = 0;
  for (const Buffer& buffer : buffers) {
    std::vector<int64_t> shape;
    for (const Expr& dim : buffer_type(buffer).shape) shape.push_back(*as_int(simplify(substitute(dim, dims))));
    Tensor tensor = Tensor::empty(shape, buffer_type(buffer).dtype);
    bytes = tensor.bytes();
    if (&buffer == &buffers.back()) break;
    for (int64_t i = 0; i < tensor.size(); ++i) {
      int64_t number = (i * 7 + static_cast<int64_t>(inputs.size()) * 3) % 11 - 5;
      tensor.dtype().is_float() ? tensor.set_double(i, static_cast<double>(number)) : tensor.set_int(i, number);
    }
    inputs.push_back(fmt::format("input{}", inputs.size()));
    text += fmt::format(".balign 64\n{}:\n", inputs.back());
    const auto* raw = reinterpret_cast<const unsigned char*>(tensor.raw());
    for (int64_t i = 0; i < bytes; ++i) text += fmt::format(".byte {}\n", raw[i]);
  }
  for (const char* which : {"plain", "other"}) {
    std::vector<std::string> pointers = inputs;
    pointers.push_back(fmt::format("result_{}", which));
    text += fmt::format(
        ".balign 64\nresult_{0}: .fill {1}, 1, 255\n.balign 8\ndata_{0}: {2}args_{0}: .quad data_{0}, "
        "scalars, context\n",
        which, bytes, words(pointers));
  }
  return text + fmt::format(".set result_bytes, {}\n", bytes);
}

void write(const std::filesystem::path& path, const char* bytes, size_t count) {
  std::ofstream(path, std::ios::binary).write(bytes, static_cast<std::streamsize>(count));
}

}  // namespace

std::string missing_for_qemu() {
  for (const char* program : {kAssembler, kLinker, kEmulator}) {
    if (!std::filesystem::exists(program)) return program;
  }
  return "";
}

std::string compare_under_qemu(const PrimFuncRef& plain, const PrimFuncRef& other, const std::string& target,
                               const std::string& cpu, const std::vector<int64_t>& sizes) {
  namespace fs = std::filesystem;
  fs::path folder = fs::path(RELAXC_BINARY_DIR) / "aarch64";
  fs::create_directories(folder);
  KernelObjects kernels =
      compile_kernels({{"plain", lower_program(plain)}, {"other", lower_program(other)}}, parse_target(target));
  std::vector<std::string> link = {kLinker, "-o", folder / "program", folder / "start.o"};
  for (size_t i = 0; i < kernels.objects.size(); ++i) {
    link.push_back(folder / fmt::format("kernel{}.o", i));
    write(link.back(), kernels.objects[i].data(), kernels.objects[i].size());
  }
  std::string text = kProgram + data_section(plain, sizes);
  write(folder / "start.s", text.data(), text.size());
  constexpr double kSeconds = 60;
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{kAssembler, "-triple=aarch64-linux-gnu", "-filetype=obj", folder / "start.s", "-o",
                                 folder / "start.o"},
        link, std::vector<std::string>{kEmulator, "-cpu", cpu, folder / "program"}}) {
    test::Outcome outcome = test::run_program(command, kSeconds);
    bool is_run = command[0] == kEmulator;
    if (outcome.exit_code == 0) continue;
    if (is_run && outcome.exit_code == 1) return "the results differ";
    return fmt::format("{}: {}{}\n{}{}", command[0], outcome.how_it_ended(),
                       is_run ? " (2, 3: the first or second kernel failed)" : "", outcome.out, outcome.err);
  }
  return "";
}

}  // namespace relaxc::codegen
