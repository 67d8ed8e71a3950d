// The runner treats passes over modules and passes over single programs alike; a wrong one is named, with its program.
#include "passes/runner.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "codegen/bisect.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "ir/visit.h"
#include "support/check.h"
#include "support/diagnostic.h"

#include "tests/catch.h"  // last

namespace relaxc::test {

namespace {

IRModule parse_runner(const std::string& text) {
  Diagnostics diagnostics;
  IRModule module = parse_module(text, "runner.py", op_table(), diagnostics);
  diagnostics.throw_if_errors();
  return module;
}

// Three tensor programs, each on the result of the one before.
IRModule three_programs() {
  std::string text = "@I.ir_module\nclass Module:\n";
  const std::pair<const char*, const char*> programs[] = {
      {"first", "T.tanh(x[vi])"}, {"second", "x[vi] * T.float32(2)"}, {"third", "x[vi] + T.float32(1)"}};
  for (const auto& [name, value] : programs) {
    text += fmt::format(
        "    @T.prim_func(private=True)\n"
        "    def {}(x: T.Buffer((T.int64(40),), \"float32\"), y: T.Buffer((T.int64(40),), \"float32\")):\n"
        "        for i in range(T.int64(40)):\n            with T.block(\"y\"):\n"
        "                vi = T.axis.spatial(T.int64(40), i)\n                y[vi] = {}\n\n",
        name, value);
  }
  text +=
      "    @R.function\n    def main(x: R.Tensor((40,), \"float32\")):\n        cls = Module\n"
      "        with R.dataflow():\n"
      "            a = R.call_tir(cls.first, (x,), out_sinfo=R.Tensor((40,), \"float32\"))\n"
      "            b = R.call_tir(cls.second, (a,), out_sinfo=R.Tensor((40,), \"float32\"))\n"
      "            c = R.call_tir(cls.third, (b,), out_sinfo=R.Tensor((40,), \"float32\"))\n"
      "            R.output(c)\n        return c\n";
  return parse_runner(text);
}

// The constants 2 become 3: a result that is wrong, of a program that is not.
PrimFuncRef miscompile(const std::string&, const PrimFuncRef& program, const PassContext&) {
  Stmt body = rewrite(program->body, [](const Ref<FloatImm>& number) -> std::optional<Expr> {
    if (number->value != 2) return std::nullopt;
    return float_imm(3, dtype_of(number));
  });
  PrimFunc copy = *program;
  copy.body = body;
  copy.attrs.set("touched", true);  // all programs change, one of them for the worse
  return make_prim_func(std::move(copy), program.span());
}
IRModule miscompile_module(IRModule module, PassContext& context) {
  for (auto& [name, function] : module.functions) {
    if (auto program = try_cast<PrimFunc>(function)) function = miscompile(name, *program, context);
  }
  return module;
}
// Stores to a buffer without a definition.
PrimFuncRef invalidate(const std::string& name, const PrimFuncRef& program, const PassContext&) {
  if (name != "second") return program;
  PrimFunc copy = *program;
  copy.params.pop_back();
  return make_prim_func(std::move(copy), program.span());
}
PrimFuncRef crash(const std::string& name, const PrimFuncRef& program, const PassContext&) {
  if (name == "third") throw InternalError("this program is too much");
  return program;
}
PrimFuncRef keep(const std::string&, const PrimFuncRef& program, const PassContext&) { return program; }

const Pass kMiscompile{.name = "miscompile", .doc = "a wrong pass", .on_program = miscompile};
const Pass kMiscompileModule{.name = "miscompile_module", .doc = "a wrong pass", .on_module = miscompile_module};
const Pass kInvalidate{.name = "invalidate", .doc = "a wrong pass", .on_program = invalidate};
const Pass kCrash{.name = "crash", .doc = "a wrong pass", .on_program = crash};
const Pass kKeep{.name = "keep", .doc = "a pass that changes nothing", .on_program = keep};

struct Folder {
  std::string path = (std::filesystem::temp_directory_path() / fmt::format("relaxc_runner_{}", getpid())).string();
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string text(const std::string& name) const {
    std::ifstream in(path + "/" + name);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }
};

std::string failure_of(const std::vector<const Pass*>& passes, const RunnerOptions& options) {
  PassContext context = pass_context();
  try {
    run_passes(three_programs(), passes, context, options);
  } catch (const InternalError& error) {
    return error.what();
  }
  return "";
}

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a pass that leaves an invalid program is named with the program", "[runner]") {
  for (VerifyEach verify_each : {VerifyEach::kGroup, VerifyEach::kPass}) {
    Folder folder;
    std::string failure =
        failure_of({&kKeep, &kInvalidate, &kKeep}, {.verify_each = verify_each, .dump_dir = folder.path});
    INFO(failure);
    CHECK(holds(failure, "pass 'invalidate' left an invalid module in 'second'"));
    CHECK(holds(failure, "relaxc-invalidate-second.test --passes=invalidate"));
    std::string reproducer = folder.text("relaxc-invalidate-second.test");
    CHECK(reproducer.starts_with("# test: passes=invalidate\n"));
    CHECK(holds(reproducer, "def second("));
    CHECK(!holds(reproducer, "def first("));
    CHECK(!holds(reproducer, "def main("));
  }
}

TEST_CASE("a pass that fails is named with the program", "[runner]") {
  Folder folder;
  CHECK(failure_of({&kKeep, find_pass("remove_dead_code")}, {}).empty());
  std::string failure = failure_of({&kKeep, &kCrash}, {.dump_dir = folder.path});
  INFO(failure);
  CHECK(holds(failure, "pass 'crash' on 'third'"));
  CHECK(holds(folder.text("relaxc-crash-third.test"), "def third("));
}

TEST_CASE("a reproducer without a folder of its own has a new name each time, in one that others cannot enter",
          "[runner]") {
  Folder folder;
  const char* before = std::getenv("TMPDIR");
  const std::string old = before ? before : "/tmp";
  setenv("TMPDIR", folder.path.c_str(), 1);
  std::filesystem::create_symlink(folder.path + "/target", folder.path + "/relaxc-crash-third.test");
  std::set<std::string> paths;
  for (int i = 0; i < 2; ++i) {
    const std::string failure = failure_of({&kKeep, &kCrash}, {});
    const size_t begin = failure.find("relaxc opt ") + 11;
    const std::string path = failure.substr(begin, failure.find(" --passes") - begin);
    INFO(failure);
    REQUIRE(std::filesystem::is_regular_file(path));
    CHECK(path.starts_with(folder.path + "/"));
    const std::filesystem::perms perms =
        std::filesystem::status(std::filesystem::path(path).parent_path()).permissions();
    CHECK((perms & std::filesystem::perms::others_all) == std::filesystem::perms::none);
    CHECK((perms & std::filesystem::perms::group_all) == std::filesystem::perms::none);
    paths.insert(path);
  }
  setenv("TMPDIR", old.c_str(), 1);
  CHECK(paths.size() == 2);
  CHECK(!std::filesystem::exists(folder.path + "/target"));
}

TEST_CASE("lowering steps print, stop, dump and count as other passes do", "[runner]") {
  CompileSettings settings;
  settings.runner.stop_after = "compact_buffers";
  IRModule compact = run_pipeline(three_programs(), settings);
  CHECK(!holds(print_module(compact), "T.block"));
  settings.runner.stop_after = "lower_kernels";
  IRModule lowered = run_pipeline(three_programs(), settings);
  CHECK(!structural_equal(compact, lowered));
  settings.runner.stop_after = "no_such_pass";
  CHECK_THROWS_AS(run_pipeline(three_programs(), settings), CompileError);
  settings.runner.stop_after = "check_bounds";  // which runs where its setting is on
  CHECK_THROWS_AS(run_pipeline(three_programs(), settings), CompileError);
  settings.check_bounds = true;
  CHECK(holds(print_module(run_pipeline(three_programs(), settings)), "T.block"));

  Folder folder;
  CompileSettings dumped;
  dumped.passes = "destination_passing,lower_blocks,flatten_buffers";
  dumped.runner.dump_dir = folder.path;
  dumped.runner.bisect_limit = 2;
  run_pipeline(three_programs(), dumped);
  CHECK(holds(folder.text("02-lower_blocks.py"), "def first("));
  CHECK(!holds(folder.text("02-lower_blocks.py"), "def main("));  // it did not change
  CHECK(folder.text("03-flatten_buffers.py").empty());
}

TEST_CASE("modules do not depend on the number of threads", "[runner]") {
  CompileSettings one, four;
  one.jobs = 1;
  four.jobs = 4;
  one.reuse = four.reuse = false;
  CHECK(print_module(run_pipeline(three_programs(), one)) == print_module(run_pipeline(three_programs(), four)));
}

TEST_CASE("passes run once for public programs that are equal but for their names", "[runner]") {
  IRModule module = three_programs();
  for (const char* name : {"first", "twin"}) {
    PrimFunc copy = *module.prim_func("first");
    copy.attrs.set("global_symbol", name);
    module.functions.insert_or_assign(name, with_fresh_variables(make_prim_func(std::move(copy))));
  }
  // "mine" is public too, and a rule names it: it does not share.
  PrimFunc copy = *module.prim_func("first");
  copy.attrs.set("global_symbol", "mine");
  module.functions.insert_or_assign("mine", with_fresh_variables(make_prim_func(std::move(copy))));
  static std::vector<std::string> seen;
  seen.clear();
  static const Pass kMark{.name = "mark",
                          .doc = "leaves a mark",
                          .on_program = [](const std::string& name, const PrimFuncRef& program, const PassContext&) {
                            seen.push_back(name);
                            PrimFunc marked = *program;
                            marked.attrs.set("marked_as", name);
                            return make_prim_func(std::move(marked), program.span());
                          }};
  PassContext context = pass_context();
  context.jobs = 1;
  context.schedules.push_back({.name = "rule", .function = "mine", .op = "", .span = {}, .apply = nullptr});
  const Pass* passes[] = {&kMark};
  IRModule marked = run_passes(module, passes, context);
  CHECK(seen == std::vector<std::string>{"first", "mine", "second", "third"});
  for (const char* name : {"first", "twin", "mine"})
    CHECK(marked.prim_func(name)->attrs.get_string("global_symbol", "") == name);
  CHECK(marked.prim_func("twin")->attrs.get_string("marked_as", "") == "first");
  CHECK(marked.prim_func("mine")->attrs.get_string("marked_as", "") == "mine");
  // The private program "second" would have been merged: merge_kernels keeps the public names only.
  PrimFunc plain = *module.prim_func("first");
  plain.attrs = plain.attrs.without("global_symbol");
  module.functions.insert_or_assign("second", with_fresh_variables(make_prim_func(std::move(plain))));
  context.schedules.clear();
  IRModule merged = run_pass(*find_pass("merge_kernels"), module, context);
  CHECK(!merged.find("second"));
  for (const char* name : {"first", "twin", "mine"}) CHECK(merged.find(name));
}

TEST_CASE("a program that an earlier compilation lowered is not lowered again, whatever its name", "[runner]") {
  static std::atomic<int> runs;
  runs = 0;
  static const Pass kCount{.name = "count",
                           .doc = "leaves the number of runs",
                           .on_program = [](const std::string&, const PrimFuncRef& program, const PassContext&) {
                             PrimFunc counted = *program;
                             counted.attrs.set("runs", ++runs);
                             return make_prim_func(std::move(counted), program.span());
                           }};
  auto run = [&](const IRModule& module, const CompileSettings& settings = {}) {
    PassContext context = pass_context(settings);
    return run_pass(kCount, module, context);
  };
  IRModule module = three_programs(), renamed = module;
  PrimFunc copy = *module.prim_func("first");
  copy.attrs.set("global_symbol", "renamed");
  renamed.functions = {{"renamed", with_fresh_variables(make_prim_func(std::move(copy)))}};
  IRModule first = run(module);
  CHECK(runs == 3);
  PrimFuncRef again = run(renamed).prim_func("renamed");
  CHECK(runs == 3);
  CHECK(again->attrs.get_string("global_symbol", "") == "renamed");
  CHECK(structural_equal(without_symbol(again), first.prim_func("first")));
  for (int i = 0; i < 3; ++i) {  // a callback, a rule, and one that says no
    CompileSettings settings;
    if (i == 0) settings.report = [](const std::string&) {};
    if (i == 1) settings.schedules.push_back({.name = "rule", .function = "x", .op = "", .span = {}, .apply = nullptr});
    settings.reuse = i != 2;
    PassContext context = pass_context();
    static_cast<PassSettings&>(context) = settings;
    run_pass(kCount, renamed, context);
    CHECK(runs == 4 + i);
  }
  CompileSettings other_target;
  other_target.target = "x86-64-v2";
  run(renamed, other_target);
  CHECK(runs == 7);
}

TEST_CASE("equal programs have equal keys, which depend on the target and on settings", "[runner]") {
  IRModule module = three_programs();
  PassContext context = pass_context();
  auto key = [&](const char* name) { return keys_in(context)(name, module.prim_func(name)); };
  uint64_t first = key("first").value();
  CHECK(first == keys_in(context)("renamed", module.prim_func("first")));
  CHECK(first != key("second"));
  context.check_bounds = true;
  CHECK(first != key("first"));
  context.check_bounds = false;
  context.target.vector_bits *= 2;
  CHECK(first != key("first"));
  context.schedules.push_back({.name = "mine", .function = "first", .op = "", .span = {}, .apply = nullptr});
  CHECK(!key("first"));
}

TEST_CASE("programs are shared whatever their names, unless a rule or an annotation may mention them", "[runner]") {
  auto program = [](const std::string& param, const std::string& annotations) {
    return parse_runner(fmt::format("@I.ir_module\nclass Module:\n    @T.prim_func(private=True)\n"
                                    "    def f({0}: T.Buffer((8,), \"float32\"), y: T.Buffer((8,), \"float32\")):\n"
                                    "        for i in T.serial(8, annotations={{{1}}}):\n            y[i] = {0}[i]\n",
                                    param, annotations))
        .prim_func("f");
  };
  PassContext context = pass_context();
  auto same = [&](const std::string& annotation) {
    return keys_in(context)("f", program("a", annotation)) == keys_in(context)("f", program("b", annotation));
  };
  CHECK(same(""));
  CHECK(same("\"keep_whole\": True"));
  CHECK(!same("\"prefetch\": [\"y\"]"));
  context.schedules.push_back({.name = "mine", .function = "", .op = "sum", .span = {}, .apply = nullptr});
  CHECK(!same(""));
}

namespace {

std::optional<Culprit> culprit_of(const std::vector<const Pass*>& passes, const Folder& folder) {
  CompileSettings settings;
  settings.jobs = 1;
  settings.runner.dump_dir = folder.path;
  Tensor input = Tensor::empty({40}, kFloat32);
  for (int64_t i = 0; i < 40; ++i) input.set_double(i, 0.1 * static_cast<double>(i) - 2);
  std::optional<Tensor> expected;
  return find_culprit(three_programs(), passes, settings, [&](const Program& program) -> std::string {
    Tensor result = Session(program, {.threads = 1}).run({input}).at(0);
    if (!expected) expected = result;
    for (int64_t i = 0; i < 40; ++i) {
      if (std::abs(result.as_double(i) - expected->as_double(i)) > 1e-5) return fmt::format("element {}", i);
    }
    return "";
  });
}

std::vector<const Pass*> default_with(const Pass& pass, const std::string& before) {
  std::vector<const Pass*> passes = parse_passes("default");
  auto place = std::find(passes.begin(), passes.end(), find_pass(before));
  passes.insert(place, &pass);
  return passes;
}

}  // namespace

TEST_CASE("bisecting names the wrong pass and the program that it spoils", "[runner]") {
  Folder folder;
  for (const char* place : {"apply_rules", "check_lowerable", "compact_buffers", "flatten_buffers", "share_storage"}) {
    std::vector<const Pass*> passes = parse_passes("spread_tuples,check_dims,schedule,lower");
    passes.insert(std::find(passes.begin(), passes.end(), find_pass(place)), &kMiscompile);
    std::optional<Culprit> culprit = culprit_of(passes, folder);
    INFO(place);
    REQUIRE(culprit);
    CHECK(culprit->pass == "miscompile");
    CHECK(culprit->program == "second");
    CHECK(!culprit->difference.empty());
    CHECK(culprit->reproducer == folder.path + "/relaxc-miscompile-second.test");
    CHECK(!holds(folder.text("relaxc-miscompile-second.test"), "def third("));
  }
  std::optional<Culprit> culprit = culprit_of(default_with(kMiscompileModule, "merge_kernels"), folder);
  REQUIRE(culprit);
  CHECK(culprit->pass == "miscompile_module");
  CHECK(culprit->program.empty());
  CHECK(!culprit_of(default_with(kKeep, "merge_kernels"), folder));
}

TEST_CASE("bisecting names the kernel whose machine code differs", "[runner]") {
  // To the bit, tanh of the machine code differs from that of the interpreter; products and sums do not.
  CompileSettings settings;
  settings.jobs = 1;
  Tensor input = Tensor::empty({40}, kFloat32);
  for (int64_t i = 0; i < 40; ++i) input.set_double(i, 0.1371 * static_cast<double>(i) - 2.9);
  std::optional<Tensor> expected;
  std::optional<Culprit> culprit =
      find_culprit(three_programs(), parse_passes("schedule,lower"), settings, [&](const Program& program) {
        Tensor result = Session(program, {.threads = 1}).run({input}).at(0);
        if (!expected) expected = result;
        return std::string(same_contents(result, *expected) ? "" : "other bits");
      });
  REQUIRE(culprit);
  CHECK(culprit->pass == kCodeGeneration);
  CHECK(culprit->program == "first");
}

}  // namespace relaxc::test
