// The rule that takes what no other does: keeps the meaning of every program, and leaves no block without vectors and
// threads that could have them.
#include "codegen/compile.h"
#include "codegen/target.h"
#include "ir/text/parser.h"
#include "passes/pass.h"
#include "support/diagnostic.h"
#include "tests/narrow_dims.h"
#include "tests/schedule/chains.h"
#include "tir/lower/lower.h"
#include "tir/rules/builtin_rules.h"

#include "tests/catch.h"

namespace relaxc::test {

namespace {

const char* const kTargets[] = {"x86-64", "x86-64-v3", "host"};  // vectors of 4, of 8, and this processor's

PrimFuncRef by_default(const PrimFuncRef& program, const std::string& target) {
  Schedule schedule(promote_indices(normalize_loops(program)), {.show_program = false});
  ScheduleRule rule = *find_builtin_rule("default");
  Decisions decisions(rule.name, rule.decisions);
  rule.apply(schedule, codegen::parse_target(target), decisions);
  return schedule.function();
}

std::map<ForKind, int> loop_kinds(const PrimFuncRef& program) {
  std::map<ForKind, int> result;
  walk(program->body, [&](const For& loop) { ++result[loop.kind]; });
  return result;
}

// An expression over x: (a, b, c), y: (b, c), z: (a, c, d), r: (c,), w: (c, d).
struct Case {
  const char* expression;
  int vectorized, parallel;  // loops, of what "x86-64" makes of it with symbolic dims
};
const Case kCases[] = {
    {"R.exp(x)", 1, 1},
    {"R.add(x, y)", 1, 1},
    {"R.multiply(R.add(x, r), r)", 1, 1},
    {"R.permute_dims(x, axes=[0, 2, 1])", 1, 1},  // columns of a tile are gathered
    {"R.permute_dims(x, axes=[1, 0, 2])", 1, 1},
    {"R.cumsum(x, axis=1)", 1, 1},
    {"R.sum(x, axis=[0])", 3, 1},  // init, sum, result
    {"R.mean(x, axis=[1])", 3, 1},
    {"R.max(x, axis=[2])", 4, 1},  // init and maximum of 8 lanes, and of 4
    {"R.sum(x, axis=[0, 2])", 4, 1},
    {"R.sum(x)", 4, 1},
    {"R.argmax(x, axis=1)", 6, 2},
    {"R.nn.softmax(x, axis=-1)", 10, 1},
    {"R.nn.softmax(x, axis=1)", 8, 4},
    {"R.matmul(x, z)", 3, 1},
    {"R.matmul(y, w)", 3, 1},
    {"R.nn.relu(R.add(R.matmul(x, z), R.const(1.5, \"float32\")))", 3, 1},
    {"R.sqrt(R.sum(R.multiply(x, y), axis=[2]))", 4, 1},
};

// One tensor program, after fusion.
PrimFuncRef program_of(const std::string& expression, bool symbolic) {
  std::array<std::string, 4> d = symbolic ? std::array<std::string, 4>{"\"a\"", "\"b\"", "\"c\"", "\"d\""}
                                          : std::array<std::string, 4>{"3", "37", "50", "21"};
  std::string text = fmt::format(R"(
@R.function
def main(x: R.Tensor(({0}, {1}, {2}), "float32"), y: R.Tensor(({1}, {2}), "float32"), z: R.Tensor(({0}, {2}, {3}), "float32"), r: R.Tensor(({2},), "float32"), w: R.Tensor(({2}, {3}), "float32")):
    with R.dataflow():
        out = {4}
        R.output(out)
    return out
)",
                                 d[0], d[1], d[2], d[3], expression);
  Diagnostics diagnostics;
  IRModule module = parse_module(text, "module.py", op_table(), diagnostics);
  diagnostics.throw_if_errors();
  PassContext context(op_table(), Target{});
  for (const Pass* pass : parse_passes("legalize,fuse,remove_dead_code"))
    module = run_pass(*pass, std::move(module), context);
  std::optional<PrimFuncRef> found;
  for (const auto& [name, function] : module.functions) {
    if (auto program = try_cast<PrimFunc>(function)) found = *program;
  }
  return found.value();
}

}  // namespace

TEST_CASE("the default schedules of operators", "[schedule]") {
  const std::vector<std::map<std::string, int64_t>> kSizes = {{{"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}},
                                                              {{"a", 2}, {"b", 9}, {"c", 33}, {"d", 7}},
                                                              {{"a", 3}, {"b", 37}, {"c", 50}, {"d", 100}}};
  for (const Case& row : kCases) {
    CAPTURE(row.expression);
    for (bool symbolic : {true, false}) {
      CAPTURE(symbolic);
      PrimFuncRef program = program_of(row.expression, symbolic);
      for (const char* target : kTargets) {
        CAPTURE(target);
        PrimFuncRef scheduled = by_default(program, target);
        // How a program counts makes no difference: this is the same one but for the integers in what it computes.
        PrimFuncRef from_int32 = by_default(counted_in(program, kInt32), target);
        CHECK(loop_kinds(from_int32) == loop_kinds(scheduled));
        CHECK(compare_programs(program, scheduled, symbolic ? kSizes : std::vector{std::map<std::string, int64_t>{}}, 1,
                               {.compile = true}) == "");
        if (!symbolic || std::string_view(target) != "x86-64") continue;
        std::map<ForKind, int> kinds = loop_kinds(scheduled);
        CHECK(kinds[ForKind::kVectorized] == row.vectorized);
        CHECK(kinds[ForKind::kParallel] == row.parallel);
      }
    }
  }
}

TEST_CASE("a block keeps the loops that it has where a step does not fit", "[schedule]") {
  Diagnostics diagnostics;
  IRModule module = parse_module(R"(
@T.prim_func
def wrapped(A: T.Buffer((65536,), "float32"), B: T.Buffer((32768,), "float32")):
    for i in range(65536):
        with T.block("B"):
            vi = T.axis.spatial(65536, i)
            B[vi % 32768] = T.exp(A[vi])

@T.prim_func
def sums(A: T.Buffer((256, 512), "float32"), B: T.Buffer((128,), "float32")):
    for i, k in T.grid(256, 512):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi // 2] = T.float32(0)
            B[vi // 2] = B[vi // 2] + A[vi, vk]
)",
                                 "module.py", op_table(), diagnostics);
  diagnostics.throw_if_errors();
  // Two iterations store to each element, so `parallel` is refused, after the loop was split or its init taken out.
  for (const char* name : {"wrapped", "sums"}) {
    CAPTURE(name);
    std::map<ForKind, int> kinds = loop_kinds(by_default(module.prim_func(name), "x86-64-v3"));
    CHECK(kinds == std::map<ForKind, int>{{ForKind::kSerial, 2}});
  }
}

TEST_CASE("vectors gather at loaded indices where they have 512 bits", "[schedule]") {
  Diagnostics diagnostics;
  IRModule module = parse_module(R"(
@T.prim_func
def loaded(A: T.Buffer((64, 100), "float32"), I: T.Buffer((64,), "int32"), B: T.Buffer((64, 64), "float32")):
    for i, j in T.grid(64, 64):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, I[vj]]

@T.prim_func
def narrow(A: T.Buffer((64, 100), "uint8"), I: T.Buffer((64,), "int32"), B: T.Buffer((64, 64), "uint8")):
    for i, j in T.grid(64, 64):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, I[vj]]

@T.prim_func
def computed(A: T.Buffer((64, 100), "float32"), B: T.Buffer((64, 64), "float32")):
    for i, j in T.grid(64, 64):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj * vj % 100]
)",
                                 "module.py", op_table(), diagnostics);
  diagnostics.throw_if_errors();
  auto has_vectors = [&](const char* name, const char* target) {
    return loop_kinds(by_default(module.prim_func(name), target))[ForKind::kVectorized] > 0;
  };
  CHECK(has_vectors("loaded", "x86-64-v4"));
  for (const char* name : {"narrow", "computed"}) CHECK_FALSE(has_vectors(name, "x86-64-v4"));
  CHECK_FALSE(has_vectors("loaded", "x86-64-v3"));
}

TEST_CASE("the default schedules of programs for schedules", "[schedule]") {
  int scheduled = 0;
  for (const TestProgram& program : schedule_programs()) {
    CAPTURE(program.name);
    for (const char* target : kTargets) {
      CAPTURE(target);
      bool int32 = std::string_view(target) == "x86-64-v3";
      PrimFuncRef function = int32 ? counted_in(program.function, kInt32) : program.function;
      std::optional<PrimFuncRef> result;
      try {
        result = by_default(function, target);
      } catch (const CompileError&) {
        continue;  // not made of plain nests
      }
      ++scheduled;
      CHECK(compare_programs(function, *result, program.sizes, 1, {.compile = runs_here(*result)}) == "");
    }
  }
  CHECK(scheduled >= 3 * 60);
}

}  // namespace relaxc::test
