// C kernels of a shared library: for an ONNX operator, by name from a text, on DLPack tensors, in artifacts; and
// libraries that are refused.
#include <cmath>
#include <filesystem>
#include <fstream>

#include "codegen/compile.h"
#include "passes/kernel_rules.h"
#include "passes/tables.h"
#include "support/diagnostic.h"
#include "tests/frontend/onnx_text.h"
#include "tests/modules/c_library.h"
#include "tests/process.h"
#include "vm/error.h"

#include "tests/catch.h"  // last

namespace relaxc::test {

namespace {

namespace fs = std::filesystem;
using namespace c_library;

}  // namespace

TEST_CASE("a text calls C kernels of a library by name, also from an artifact", "[modules]") {
  std::string folder = new_folder("by_name"), library = library_of(folder, "mine", std::string(kHead) + kByName);
  write(folder + "/module.py", kModule);
  CompileSettings settings;
  settings.libraries = {vm::UserLibrary::open(library)};
  Tensor x = Tensor::of<float>({3}, kFloat32, {1, -2, 0.5});
  std::vector<float> expected = {3, -6, 1.5};
  auto result_of = [&](const Program& program) {
    Tensor y = Session(program).run({x}).at(0);
    return std::vector<float>(y.data<float>(), y.data<float>() + y.size());
  };
  CompiledModule compiled = compile_file(folder + "/module.py", settings);
  CHECK(result_of(compiled.load()) == expected);
  compiled.write(folder + "/module.so");
  CHECK(result_of(Program::load(folder + "/module.so")) == expected);

  // The artifact and the library move together.
  fs::create_directories(folder + "/moved");
  fs::rename(folder + "/module.so", folder + "/moved/module.so");
  fs::rename(library, folder + "/moved/libmine.so");
  CHECK(result_of(Program::load(folder + "/moved/module.so")) == expected);
  fs::remove(folder + "/moved/libmine.so");
  // This process still has the library.
  Outcome elsewhere = run_program({RELAXC_TOOL, "run", folder + "/moved/module.so"}, 60);
  CHECK(elsewhere.exit_code == 1);
  CHECK(elsewhere.err.find("module.so: error: library 'libmine.so', whose functions the model calls, is not found; it "
                           "is looked for beside the artifact, then as '" +
                           library + "'") != std::string::npos);
}

TEST_CASE("a tensor that a function of a library returns outlives the program", "[modules]") {
  std::string folder = new_folder("returned"), library = library_of(folder, "mine", std::string(kHead) + R"(
#include <stdlib.h>
static void free_copy(struct DLManagedTensor* copy) { free(copy->dl_tensor.data), free(copy); }
static int64_t three = 3;
static int32_t twice(const struct DLTensor* const* tensors, int32_t count, struct DLManagedTensor** result,
                     relaxc_kernel_context* context) {
  struct DLManagedTensor* copy = calloc(1, sizeof *copy);
  copy->dl_tensor = *tensors[0];
  copy->dl_tensor.shape = &three, copy->dl_tensor.strides = 0, copy->dl_tensor.byte_offset = 0;
  copy->dl_tensor.data = calloc(3, sizeof(float)), copy->deleter = free_copy;
  for (int i = 0; i < 3; ++i) ((float*)copy->dl_tensor.data)[i] = 2 * ((float*)tensors[0]->data)[i];
  *result = copy;
  return 0;
}
static const relaxc_kernel_row rows[] = {{"twice", 0, twice, 0}};
const relaxc_kernel_table relaxc_kernels = {RELAXC_KERNEL_TABLE_VERSION, 1, rows};
)");
  write(folder + "/module.py", R"(
@R.function(pure=False)
def main(x: R.Tensor((3,), "float32")):
    y = R.call_packed("twice", x, sinfo_args=R.Tensor((3,), "float32"))
    return y
)");
  const std::string artifact = folder + "/module.so";
  REQUIRE(run_program({RELAXC_TOOL, "compile", folder + "/module.py", "--kernels", library, "-o", artifact}, 60)
              .exit_code == 0);
  Outcome run = run_program({RELAXC_TOOL, "run", artifact}, 60);
  INFO(run.out << run.err);
  CHECK(run.exit_code == 0);
  Tensor x = Tensor::of<float>({3}, kFloat32, {1, -2, 0.5});
  Tensor y = Session(Program::load(artifact)).run({x}).at(0);
  CHECK(std::vector<float>(y.data<float>(), y.data<float>() + y.size()) == std::vector<float>{2, -4, 1});
}

TEST_CASE("a kernel for nodes that a text calls by name is no kernel without use", "[modules]") {
  std::string folder = new_folder("called"), source = std::string(kHead) + kByName;
  const std::string row = "{\"twice\", twice, 0, 0}";
  source.replace(source.find(row), row.size(), R"({"twice", twice, 0,
    "@S.implements('com.me::Twice')\n@S.extern\n"
    "def twice(x: T.Buffer(('n',), 'float32'), y: T.Buffer(('n',), 'float32')): ...\n"})");
  const std::string library = library_of(folder, "mine", source), unused = "kernel 'twice' is used nowhere";
  write(folder + "/module.py", kModule);
  auto said = [&](const std::string& module) {
    return run_program({RELAXC_TOOL, "run", folder + module, "--dim", "n=3", "--kernels", library}, 60).err;
  };
  CHECK(said("/module.py").find(unused) == std::string::npos);
  write(folder + "/other.py", "@R.function\ndef main(x: R.Tensor((\"n\",), \"float32\")):\n    return x\n");
  CHECK(said("/other.py").find(unused) != std::string::npos);
}

TEST_CASE("a packed function takes several numbers of tensors", "[modules]") {
  std::string folder = new_folder("several"), library = library_of(folder, "mine", std::string(kHead) + R"(
static int32_t sum(const struct DLTensor* const* tensors, int32_t count, struct DLManagedTensor** result,
                   relaxc_kernel_context* context) {
  float* y = tensors[count - 1]->data;
  for (int64_t i = 0; i < tensors[0]->shape[0]; ++i) {
    y[i] = 0;
    for (int32_t t = 0; t + 1 < count; ++t) y[i] += ((float*)tensors[t]->data)[i];
  }
  return 0;
}
static const relaxc_kernel_row rows[] = {{"sum", 0, sum, 0}};
const relaxc_kernel_table relaxc_kernels = {RELAXC_KERNEL_TABLE_VERSION, 1, rows};
)");
  write(folder + "/module.py", R"(
@R.function
def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
    n = T.int64()
    y = R.call_dps_packed("sum", (x, x), out_sinfo=R.Tensor((n,), "float32"))
    z = R.call_dps_packed("sum", (x, y, y), out_sinfo=R.Tensor((n,), "float32"))
    return z
)");
  CompileSettings settings;
  settings.libraries = {vm::UserLibrary::open(library)};
  Tensor y = Session(compile_file(folder + "/module.py", settings).load())
                 .run({Tensor::of<float>({2}, kFloat32, {1, -2})})
                 .at(0);
  CHECK(y.as_double(0) == 5);
  CHECK(y.as_double(1) == -10);
}

TEST_CASE("a C function computes results that a node leaves out", "[modules]") {
  std::string folder = new_folder("left_out");
  constexpr const char* kModel = R"(<ir_version: 8, opset_import: ["" : 13, "com.me" : 1]>
g (float[n] x) => (float[n] y) {
  y = com.me.Two (x)
})";
  constexpr const char* kText = R"(@S.implements("com.me::Two")
@S.extern("c_two"{})
def two(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32"), z: T.Buffer(("n",), "float32")): ...
)";
  auto imported = [&](const std::string& declared) {
    ImportOptions options;
    std::string text = kText;
    options.kernels = node_kernels(read_kernel_rules(text.replace(text.find("{}"), 2, declared), "two.py", op_table()));
    return import_onnx_text(kModel, "two", options);
  };
  CHECK(error_of([&] { imported(""); }).find("say how many the function computes: @S.extern(\"c_two\", results=2)") !=
        std::string::npos);
  CHECK(error_of([&] { imported(", results=4"); }).find("results= is how many of the 3 buffers are results") !=
        std::string::npos);
  CompileSettings settings;
  settings.libraries = {vm::UserLibrary::open(library_of(folder, "mine", std::string(kHead) + R"(
static int32_t c_two(const relaxc_kernel_args* args) {
  const float* x = args->data[0];
  for (int64_t i = 0; i < args->scalars[0]; ++i) {
    ((float*)args->data[1])[i] = x[i] + 1;
    ((float*)args->data[2])[i] = x[i] + 2;
  }
  return 0;
}
static const relaxc_kernel_row rows[] = {{"c_two", c_two, 0, 0}};
const relaxc_kernel_table relaxc_kernels = {RELAXC_KERNEL_TABLE_VERSION, 1, rows};
)"))};
  Tensor y =
      Session(compile(imported(", results=2"), settings).load()).run({Tensor::of<float>({2}, kFloat32, {1, -2})}).at(0);
  CHECK(y.as_double(0) == 2);
  CHECK(y.as_double(1) == -1);
}

TEST_CASE("functions that programs call are found like kernels: in a library beside the artifact", "[modules]") {
  std::string folder = new_folder("called"), library = library_of(folder, "called", std::string(kHead) + R"(
#include <math.h>
float relaxc_test_half(float x) { return x / 2; }
)");
  write(folder + "/module.py", R"(
@I.ir_module
class Module:
    @T.prim_func
    def half(a: T.Buffer(("n",), "float32"), b: T.Buffer(("n",), "float32")):
        for i in range(n):
            with T.block("b"):
                vi = T.axis.spatial(n, i)
                b[vi] = T.call_pure_extern("float32", "relaxc_test_half", T.call_pure_extern("float32", "sqrtf", a[vi]))
    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        y = R.call_tir(Module.half, (x,), out_sinfo=R.Tensor((n,), "float32"))
        return y
)");
  auto tables = std::make_shared<Tables>();
  tables->add_library(library);
  CompileSettings settings;
  settings.tables = tables;
  Tensor x = Tensor::of<float>({2}, kFloat32, {16, 64});
  auto second_of = [&](const Program& program) { return Session(program).run({x}).at(0).as_double(1); };
  CompiledModule compiled = compile_file(folder + "/module.py", settings);
  CHECK(second_of(compiled.load()) == 4);
  CompileSettings slow = settings;
  slow.interpret = InterpretOptions();
  CHECK(second_of(compile_file(folder + "/module.py", slow).load()) == 4);
  compiled.write(folder + "/module.so");
  fs::create_directories(folder + "/moved");
  fs::rename(folder + "/module.so", folder + "/moved/module.so");
  fs::rename(library, folder + "/moved/libcalled.so");
  const std::vector<std::string> run = {RELAXC_TOOL, "run", folder + "/moved/module.so", "--dim", "n=2"};
  CHECK(run_program(run, 60).exit_code == 0);
  fs::remove(folder + "/moved/libcalled.so");
  Outcome missing = run_program(run, 60);
  CHECK(missing.exit_code == 1);
  CHECK(missing.err.find("library 'libcalled.so', whose functions the model calls, is not found") != std::string::npos);
  CompileSettings without;
  CHECK(error_of([&] {
          compile_file(folder + "/module.py", without).load();
        }).find("no library of this process has the external function 'relaxc_test_half'") != std::string::npos);
}

constexpr const char* kNetwork = R"(<ir_version: 8, opset_import: ["" : 13, "com.me" : 1]>
g (float[n, 16] x) => (float[n, 16] y) {
  w = Constant <value = float[1, 16] {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}> ()
  a = Mul (x, w)
  b = com.me.FancyGelu <alpha = 0.25> (a)
  y = Softmax <axis = 1> (b)
})";

// Runs the network with these kernels, and notes who implements what.
std::vector<float> run_network(CompileSettings settings, std::vector<KernelRule> rules, std::string& claims) {
  ImportOptions options;
  options.kernels = node_kernels(rules);
  settings.claimed = options.claimed = [&](const Claim& claim) {
    if (!claim.by.empty() && claim.refused.empty()) claims += claim.by + " ";
  };
  settings.kernels = std::make_shared<const std::vector<KernelRule>>(std::move(rules));
  Tensor x = Tensor::empty({3, 16}, kFloat32);
  for (int64_t i = 0; i < x.size(); ++i) x.set_double(i, static_cast<double>(i % 7) / 8 - 0.375);
  IRModule module = import_onnx_text(kNetwork, "network", options);
  Tensor y = Session(compile(module, settings).load()).run({x}).at(0);
  return {y.data<float>(), y.data<float>() + y.size()};
}

TEST_CASE("the examples' kernels implement operators of a network", "[modules]") {
  auto text_of = [](const std::string& name) {
    std::ifstream file(std::string(RELAXC_SOURCE_DIR "/examples/kernels/") + name);
    return std::string{std::istreambuf_iterator<char>(file), {}};
  };
  auto rules_of = [&](const std::string& name) { return read_kernel_rules(text_of(name), name, op_table()); };
  std::string claims;
  std::vector<KernelRule> text = rules_of("fancy_gelu.py");
  std::ranges::move(rules_of("softmax.py"), std::back_inserter(text));
  std::vector<float> by_text = run_network({}, std::move(text), claims);
  CHECK(claims == "kernel 'fancy_gelu' kernel 'my_softmax' ");

  std::string folder = new_folder("example");
  CompileSettings settings;
  settings.libraries = {vm::UserLibrary::open(library_of(folder, "gelu", text_of("gelu.c")))};
  claims.clear();
  std::vector<float> by_c =
      run_network(settings, read_kernel_rules(settings.libraries[0]->rows()[0].implements, "gelu", op_table()), claims);
  CHECK(claims == "kernel 'c_gelu' ");
  REQUIRE(by_c.size() == by_text.size());
  for (size_t i = 0; i < by_c.size(); ++i) CHECK(std::abs(by_c[i] - by_text[i]) < 1e-6F);
}

TEST_CASE("C kernels are linked into the artifact", "[modules]") {
  std::string folder = new_folder("linked");
  library_of(folder, "mine", std::string(kHead) + "\n#define static\n" + kByName);  // installs the headers
  std::string object = folder + "/mine.o", archive = folder + "/libmine.a";
  REQUIRE(run_program({"/usr/bin/cc", "-c", "-fPIC", "-I", folder + "/include", folder + "/mine.c", "-o", object}, 60)
              .exit_code == 0);
  REQUIRE(run_program({"/usr/bin/ar", "rcs", archive, object}, 60).exit_code == 0);
  write(folder + "/module.py", R"(
@R.function
def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
    n = T.int64()
    y = R.call_dps_packed("twice", (x,), out_sinfo=R.Tensor((n,), "float32"), tir_vars=R.shape([n]))
    return y
)");
  Tensor x = Tensor::of<float>({2}, kFloat32, {1, -2});
  for (const std::string& file : {object, archive}) {
    INFO(file);
    CompileSettings settings;
    settings.linked = {file};
    CompiledModule compiled = compile_file(folder + "/module.py", settings);
    CHECK(Session(compiled.load()).run({x})[0].as_double(1) == -4);
    compiled.write(folder + "/module.so");
    CHECK(Session(Program::load(folder + "/module.so")).run({x})[0].as_double(0) == 2);
    settings.interpret.emplace();
    CHECK(Session(compile_file(folder + "/module.py", settings).load()).run({x})[0].as_double(1) == -4);
    settings.interpret.reset();
    std::string late = error_of([&] { load_program(folder + "/module.so", settings); });
    CHECK(late.find("is compiled already; give --link when it is compiled") != std::string::npos);
  }
  CompileSettings wrong;
  wrong.linked = {folder + "/mine.c"};
  CHECK(error_of([&] { compile_file(folder + "/module.py", wrong); }).find("is not an object file") !=
        std::string::npos);
  // A function that nothing has is named.
  write(folder + "/calls.c", "int nowhere(void); int twice(const void* args) { return args ? nowhere() : 0; }");
  REQUIRE(run_program({"/usr/bin/cc", "-c", "-fPIC", folder + "/calls.c", "-o", object}, 60).exit_code == 0);
  wrong.linked = {object};
  auto missing = [&] { return error_of([&] { compile_file(folder + "/module.py", wrong); }); };
  const std::string problem = "needs 'nowhere', which no linked file and no library of this process has";
  CHECK(missing().find("mine.o' " + problem) != std::string::npos);
  // The program that loads the artifact may have it; this one does not.
  for (const char* name : {"nowhere", "no*", "*"}) {
    CompileSettings later = wrong;
    later.host_symbols = {name};
    compile_file(folder + "/module.py", later).write(folder + "/later.so");
    CHECK(error_of([&] {
            Program::load(folder + "/later.so");
          }).find("needs 'nowhere', which neither the artifact nor this program has") != std::string::npos);
  }
  wrong.host_symbols = {"nowher", "nowhere2"};
  CHECK(missing().find(problem) != std::string::npos);
  // Members of an archive are linked where something calls them.
  write(folder + "/used.c", "int unused(void); int more(const void* args) { return args ? unused() : 0; }");
  const std::string member = folder + "/used.o", both = folder + "/both.a";
  REQUIRE(run_program({"/usr/bin/cc", "-c", "-fPIC", folder + "/used.c", "-o", member}, 60).exit_code == 0);
  REQUIRE(run_program({"/usr/bin/ar", "rc", both, object, member}, 60).exit_code == 0);
  wrong.linked = {both};
  const std::string of_archive = missing();
  INFO(of_archive);
  CHECK(of_archive.find("both.a(mine.o)' " + problem) != std::string::npos);
  CHECK(of_archive.find("unused") == std::string::npos);
}

TEST_CASE("a program that calls a linked C function runs in the interpreter and is bisected", "[modules]") {
  std::string folder = new_folder("called"), object = folder + "/add.o";
  write(folder + "/add.c", "int add_one(const float* x, float* y) { return *y = *x + 1, 0; }\n");
  REQUIRE(run_program({"/usr/bin/cc", "-c", "-fPIC", folder + "/add.c", "-o", object}, 60).exit_code == 0);
  const std::string module = folder + "/module.py";
  write(module, R"(
@T.prim_func
def main(x: T.Buffer((3,), "float32"), y: T.Buffer((3,), "float32")):
    for i in range(3):
        with T.block("y"):
            vi = T.axis.spatial(3, i)
            T.reads(x[vi])
            T.writes(y[vi])
            T.evaluate(T.call_extern("int32", "add_one", T.address_of(x[vi]), T.address_of(y[vi])))
)");
  auto said = [&](std::vector<std::string> args) {
    args.insert(args.begin(), RELAXC_TOOL);
    Outcome outcome = run_program(args, 60);
    return outcome.out + outcome.err;
  };
  for (const char* how : {"--profile", "--interpret"})
    CHECK(said({"run", module, "--link", object, "--input", "x=[1,2,3]", how}).find("[2, 3, 4]") != std::string::npos);
  CHECK(said({"opt", module, "--link", object, "--bisect"}).find("no pass changes the results") != std::string::npos);
  for (const char* how : {"--profile", "--interpret"})
    CHECK(said({"run", module, how}).find("link the file that has it in (--link)") != std::string::npos);
}

TEST_CASE("a C++ kernel that throws is named with its node", "[modules]") {
  std::string folder = new_folder("throws"), object = folder + "/k.o";
  library_of(folder, "none", std::string(kHead) + "int none;\n");  // installs the headers
  write(folder + "/k.cc",
        "#include <relaxc/kernel_abi.h>\n#include <stdexcept>\n"
        "extern \"C\" int32_t c_relu(const relaxc_kernel_args*) { throw std::runtime_error(\"no paper\"); }\n");
  REQUIRE(run_program({"/usr/bin/c++", "-c", "-fPIC", "-I", folder + "/include", folder + "/k.cc", "-o", object}, 60)
              .exit_code == 0);
  write(folder + "/k.py", R"(@S.implements("nn.relu")
@S.extern("c_relu")
def mine(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")): ...
)");
  write(folder + "/module.py", R"(
@R.function
def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
    y = R.nn.relu(x)
    return y
)");
  Outcome outcome =
      run_program({RELAXC_TOOL, "run", folder + "/module.py", "--kernels", folder + "/k.py", "--link", object}, 60);
  INFO(outcome.err);
  CHECK(outcome.exit_code == 1);
  CHECK(outcome.err.find("kernel 'c_relu'") != std::string::npos);
  CHECK(outcome.err.find("failed with status 1: no paper") != std::string::npos);
  auto said_without_the_file = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {RELAXC_TOOL, "compile", folder + "/module.py", "--kernels", folder + "/k.py", "-o",
                               folder + "/module.so"});
    return run_program(more, 60).err;
  };
  CHECK(
      said_without_the_file({}).find("note: kernel 'c_relu' is not in the artifact: link the file that has it (--link "
                                     "FILE), or, where the program that loads the artifact registers it, name it "
                                     "(--host-symbols c_relu)\n") != std::string::npos);
  CHECK(said_without_the_file({"--link", object}).empty());
  CHECK(said_without_the_file({"--host-symbols", "c_*"}).empty());
}

TEST_CASE("C functions compute a result and its shape, each also beside a tensor program", "[modules]") {
  std::string folder = new_folder("shape"), library = library_of(folder, "shape", std::string(kHead) + R"(
static int32_t positives(const relaxc_kernel_args* args) {
  const float* x = args->data[0];
  float* v = args->data[1];
  int64_t* at = args->data[2];
  for (int64_t i = 0, k = 0; i < args->scalars[0]; ++i) {
    if (x[i] <= 0) continue;
    at[k] = i;
    v[k++] = x[i] * (float)args->scalars[1];  /* k, which the other one has counted */
  }
  return 0;
}
static int32_t count(const relaxc_kernel_args* args) {
  const float* x = args->data[0];
  int64_t* dims = args->data[1];
  dims[0] = 0;
  for (int64_t i = 0; i < args->scalars[0]; ++i) dims[0] += x[i] > 0;
  return 0;
}
static const relaxc_kernel_row rows[] = {{"c_positives", positives, 0, 0}, {"c_count", count, 0, 0}};
const relaxc_kernel_table relaxc_kernels = {RELAXC_KERNEL_TABLE_VERSION, 2, rows};
)");
  const std::string
      params = R"((x: T.Buffer(("n",), "float32"), v: T.Buffer(("k",), "float32"), at: T.Buffer(("k",), "int64")):)",
      of_c = "@S.implements('com.me::Positives')\n@S.extern('c_positives')\ndef positives" + params + " ...\n",
      of_text = "@S.implements('com.me::Positives')\n@T.prim_func\ndef positives" + params + R"(
    end = T.alloc_buffer((1,), "int64")
    with T.block("scan"):
        end[0] = T.int64(0)
        for i in range(n):
            if x[i] > T.float32(0):
                v[end[0]] = x[i] * T.float32(2)
                at[end[0]] = i
                end[0] = end[0] + T.int64(1)
)",
      shape = R"((x: T.Buffer(("n",), "float32"), dims: T.Buffer((1,), "int64")):)",
      shape_of_c = "@S.shape('positives')\n@S.extern('c_count')\ndef count" + shape + " ...\n",
      shape_of_text = "@S.shape('positives')\n@T.prim_func\ndef count" + shape + R"(
    with T.block("count"):
        dims[0] = T.int64(0)
        for i in range(n):
            if x[i] > T.float32(0):
                dims[0] = dims[0] + T.int64(1)
)";
  for (const std::string& text : {of_c + shape_of_c, of_c + shape_of_text, of_text + shape_of_c}) {
    INFO(text);
    ImportOptions options;
    options.kernels = node_kernels(read_kernel_rules(text, "positives", op_table()));
    IRModule module = import_onnx_text(R"(<ir_version: 8, opset_import: ["com.me" : 1]>
g (float[n] x) => (float[k] v, int64[k] at) { v, at = com.me.Positives (x) })",
                                       "model", options);
    CompileSettings settings;
    settings.libraries = {vm::UserLibrary::open(library)};
    std::vector<Tensor> results =
        Session(compile(module, settings).load()).run({Tensor::of<float>({4}, kFloat32, {1, -2, 3, 0})});
    REQUIRE(results[0].size() == 2);
    CHECK(results[0].as_double(1) == 6);
    CHECK(results[1].as_double(1) == 2);
  }
}

TEST_CASE("the command names what a library's text and an artifact do not hold", "[modules]") {
  std::string folder = new_folder("command"), library = library_of(folder, "other", std::string(kHead) + R"(
static int32_t some(const relaxc_kernel_args* args) { return args->data[0] == 0; }
static const relaxc_kernel_row rows[] = {{"c_some", some, 0,
    "@S.implements('com.me::Some')\n@S.extern('c_other')\n"
    "def own(x: T.Buffer(('n',), 'float32'), y: T.Buffer(('n',), 'float32')): ...\n"}};
const relaxc_kernel_table relaxc_kernels = {RELAXC_KERNEL_TABLE_VERSION, 1, rows};
)");
  write(folder + "/module.py", R"(
@R.function
def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
    y = R.negative(x)
    return y
)");
  write(folder + "/rules.py", "@S.rule('matmul')\ndef r(sch):\n    sch.get_block('x')\n");
  auto says = [](std::vector<std::string> args, const std::string& part) {
    args.insert(args.begin(), RELAXC_TOOL);
    std::string text = run_program(args, 60).err;
    UNSCOPED_INFO(text);
    return text.find(part) != std::string::npos;
  };
  CHECK(says({"run", folder + "/module.py", "--kernels", library},
             "has no row 'c_other', which this declares; it has: c_some"));
  CHECK(says({"compile", folder + "/module.py", "-o", folder + "/module.so", "--kernels", folder + "/rules.py"},
             "rule 'r' is used nowhere: no tensor program holds 'matmul'"));
  CHECK(says({"run", folder + "/module.so", "--kernels", folder + "/rules.py"},
             "is compiled already: --kernels and --schedules of rules change nothing"));
}

TEST_CASE("libraries without a sound table of kernels are refused", "[modules]") {
  std::string folder = new_folder("refused");
  auto refusal = [&](const std::string& name, const std::string& source) {
    std::string library = library_of(folder, name, kHead + source);
    return error_of([&] { vm::UserLibrary::open(library); });
  };
  auto contains = [](const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; };
  CHECK(contains(refusal("no_table", "int x;"), "exports no table of kernels"));
  CHECK(contains(refusal("version", "const relaxc_kernel_table relaxc_kernels = {99, 0, 0};"), "has version 99"));
  CHECK(contains(refusal("no_rows", "const relaxc_kernel_table relaxc_kernels = {1, 3, 0};"), "has no rows"));
  CHECK(contains(refusal("no_function",
                         "static const relaxc_kernel_row r[] = {{\"f\", 0, 0, 0}};"
                         "const relaxc_kernel_table relaxc_kernels = {1, 1, r};"),
                 "row 'f' of its table of kernels has no function"));
  const std::string rows = std::string(kHead) +
                           "static int32_t k(const relaxc_kernel_args* a) { return a == 0; }\n"
                           "static const relaxc_kernel_row r[] = {{\"k\", k, 0, 0}, {\"k\", k, 0, 0}};";
  CHECK(contains(refusal("twice", rows + "const relaxc_kernel_table relaxc_kernels = {1, 2, r};"), "two rows 'k'"));
  CHECK(contains(error_of([&] { vm::UserLibrary::open(folder + "/missing.so"); }), "does not load"));
  vm::UserLibraries libraries;
  for (const char* name : {"first", "second"})
    libraries.push_back(vm::UserLibrary::open(
        library_of(folder, name, rows + "const relaxc_kernel_table relaxc_kernels = {1, 1, r};")));
  vm::Registry registry;
  CHECK(contains(error_of([&] { vm::add_libraries(libraries, registry); }), "both have a kernel 'k'"));
  libraries[1] = vm::UserLibrary::open(libraries[0]->path());  // the same one, twice
  vm::add_libraries(libraries, registry);
  CHECK(registry.has("k"));
}

}  // namespace relaxc::test
