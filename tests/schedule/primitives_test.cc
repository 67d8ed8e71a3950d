// Every primitive has its text test, tests/schedule/primitives/<name>.test; and tests of primitives that are no text.
#include <filesystem>
#include <limits>
#include <set>
#include <sstream>

#include "codegen/compile.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "ir/verify/verify.h"

#include "passes/pass.h"
#include "support/diagnostic.h"
#include "tests/lowering.h"
#include "tests/schedule/schedule_cases.h"
#include "tir/primitives/annotate.h"
#include "tir/primitives/get_block.h"
#include "tir/primitives/get_loops.h"
#include "tir/primitives/merge.h"
#include "tir/primitives/parallel.h"
#include "tir/primitives/split.h"
#include "tir/primitives/storage_align.h"
#include "tir/schedule/script.h"

#include "tests/catch.h"

namespace relaxc::test {

namespace {

PrimFuncRef read(const std::string& text) {
  Diagnostics diagnostics;
  IRModule module = parse_module(text, "case.py", op_table(), diagnostics);
  diagnostics.throw_if_errors();
  return module.prim_func("main");
}

std::string program(const char* params, const char* body) {
  return std::string("@T.prim_func\ndef main(") + params + "):\n" + body;
}

const std::filesystem::path kTextTests = RELAXC_SOURCE_DIR "/tests/schedule/primitives";

// Returns whether a line of the steps calls the primitive. Where they are refused, only the line of the error counts.
bool calls(const ScheduleCase& row, const std::string& primitive) {
  std::istringstream lines(row.steps);
  for (std::string line; std::getline(lines, line);) {
    bool counts = !row.is_refused || line.find("# error: ") != std::string::npos;
    if (counts && line.find("sch." + primitive + "(") < line.find('#')) return true;
  }
  return false;
}

// Returns the case that a primitive lacks, or the empty string.
std::string lacks(const std::string& primitive) {
  std::filesystem::path path = kTextTests / (primitive + ".test");
  if (!std::filesystem::exists(path)) return fmt::format("there is no tests/schedule/primitives/{}.test", primitive);
  bool has_result = false, is_refused = false;
  for (const ScheduleCase& row : schedule_cases(read_text_test(path))) {
    (row.is_refused ? is_refused : has_result) |= calls(row, primitive);
  }
  const char* missing = !has_result ? "has a result" : !is_refused ? "is refused" : nullptr;
  if (!missing) return "";
  return fmt::format("tests/schedule/primitives/{0}.test has no case in which sch.{0} {1}", primitive, missing);
}

}  // namespace

// The text tests check of each case that its trace does the same as text and as JSON.
TEST_CASE("every primitive has a text test with a result and a refusal") {
  std::set<std::string> names;
  for (const scheduling::Primitive& primitive : scheduling::primitives()) {
    names.insert(std::string(primitive.name));
    CHECK(lacks(std::string(primitive.name)) == "");
  }
  for (const auto& entry : std::filesystem::directory_iterator(kTextTests)) {
    INFO(entry.path().string() << " is not the test of a primitive");
    CHECK(names.contains(entry.path().stem().string()));
  }
  CHECK(lacks("no_such_primitive") == "there is no tests/schedule/primitives/no_such_primitive.test");
}

TEST_CASE("blocks whose iterations meet at an element keep their order") {
  const char* params =
      "I: T.Buffer((40,), \"int32\"), A: T.Buffer((40,), \"float32\"), C: T.Buffer((40,), \"float32\")";
  for (const char* statement : {"C[vi] = C[vi] + C[vi + 1]", "C[I[vi]] = C[I[vi]] + T.float32(1)", "C[I[vi]] = A[vi]",
                                "C[vi % 10] = A[vi]", "C[vi // 2] = A[vi]"}) {
    CAPTURE(statement);
    std::string before = fmt::format(
        "    for i in range(32):\n        with T.block(\"B\"):\n            vi = T.axis.spatial(32, i)\n            "
        "{}\n",
        statement);
    const std::pair<const char*, const char*> steps_and_errors[] = {
        {"sch.parallel(i0)", "that it stores in another iteration"},
        {"sch.vectorize(i1)", "that it stores in another iteration"},
        {"sch.reorder(i1, i0)", "that it stores in another iteration"},
        {"sch.transform_block_layout(sch.get_block('B'), lambda i: (i // 4, i % 4))",
         "takes what an earlier iteration made"}};
    for (const auto& [step, error] : steps_and_errors) {
      Schedule schedule(read(program(params, before.c_str())), {.show_program = false});
      std::string steps =
          fmt::format("i, = sch.get_loops(sch.get_block('B'))\ni0, i1 = sch.split(i, [None, 4])\n{}", step);
      // Each iteration of i0 has two elements, of which two iterations of i1 each store to one.
      const bool is_free = std::string(statement) == "C[vi // 2] = A[vi]" &&
                           (std::string(step) == "sch.parallel(i0)" || std::string(step) == "sch.reorder(i1, i0)");
      if (is_free) {
        CHECK_NOTHROW(run_schedule_text(schedule, steps, "steps.py"));
        continue;
      }
      CHECK_THROWS_WITH(run_schedule_text(schedule, steps, "steps.py"), Catch::Contains(error));
    }
  }
  // Elements of its own, also in an order of digits, may come in any.
  Schedule schedule(read(program(params, R"(    for i in range(40):
        with T.block("B"):
            vi = T.axis.spatial(40, i)
            C[vi % 8 * 5 + vi // 8] = C[vi % 8 * 5 + vi // 8] + A[vi]
)")),
                    {.show_program = false});
  CHECK_NOTHROW(run_schedule_text(schedule, "sch.parallel(sch.get_loops(sch.get_block('B'))[0])", "steps.py"));
}

TEST_CASE("storage_align reaches the memory that is allocated") {
  Schedule schedule(read(R"(@T.prim_func
def main(A: T.Buffer((12, 8), "float32"), C: T.Buffer((12, 8), "float32")):
    B = T.alloc_buffer((12, 8))
    for i, j in T.grid(12, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(12, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + T.float32(1)
)"));
  schedule.apply(StorageAlign{schedule.apply(GetBlock{"B"}), 0, 0, 32, 4});
  PrimFuncRef lowered = lower_program(schedule.function());
  int64_t size = 0;
  walk(lowered->body, [&](const AllocBuffer& alloc) { size = as_int(buffer_type(alloc.buffer).shape[0]).value_or(0); });
  CHECK(size == 11 * 36 + 8);  // rows of 8 begin at multiples of 36, which is 4 modulo 32
}

TEST_CASE("a step is about one program, and about numbers where it takes numbers") {
  PrimFuncRef program_of_two = read(program("A: T.Buffer((8,), \"float32\"), C: T.Buffer((8,), \"float32\")",
                                            "    for i in range(8):\n        with T.block(\"C\"):\n            vi = "
                                            "T.axis.spatial(8, i)\n            C[vi] = "
                                            "A[vi]\n"));
  Schedule schedule(IRModule{{{"f", program_of_two}, {"g", program_of_two}}, {}, {}});
  LoopRV i = schedule.apply(GetLoops{schedule.apply(GetBlock{"C", "f"})})[0],
         j = schedule.apply(GetLoops{schedule.apply(GetBlock{"C", "g"})})[0];
  CHECK_THROWS_WITH(schedule.apply(Merge{{i, j}}), Catch::Contains("to another tensor program"));
  CHECK_THROWS_WITH(schedule.apply(Split{i, {Factor(Expr(j.var)), std::nullopt}}), Catch::Contains("number"));
  CHECK_THROWS_WITH(schedule.apply(Split{i, {Factor(make_dim("n")), std::nullopt}}),
                    Catch::Contains("'n' is not a number of this schedule"));
  // A trace says which program it is about.
  Schedule on_second(IRModule{{{"f", program_of_two}, {"g", program_of_two}}, {}, {}}), again(on_second.module());
  on_second.work_on("g");
  on_second.apply(Split{on_second.apply(GetLoops{on_second.apply(GetBlock{"C"})})[0], {std::nullopt, 4}});
  on_second.trace().replay(again);
  CHECK(structural_equal(again.function("g"), on_second.function("g")));
  CHECK(structural_equal(again.function("f"), program_of_two));
  CHECK_THROWS_WITH(Schedule(IRModule{}).apply(GetBlock{"C"}), Catch::Contains("no tensor program"));
}

TEST_CASE("a trace keeps its values in JSON, and says which step does not fit") {
  PrimFuncRef copy = read(program("A: T.Buffer((8,), \"float32\"), C: T.Buffer((8,), \"float32\")",
                                  "    for i in range(8):\n        with T.block(\"C\"):\n            vi = "
                                  "T.axis.spatial(8, i)\n            C[vi] = "
                                  "A[vi]\n"));
  Schedule schedule(copy);
  AttrList values{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
                  std::numeric_limits<int64_t>::min(), Attrs{{"scope", "local"}}};
  for (const AttrValue& value : values) schedule.apply(Annotate{schedule.apply(GetBlock{"C"}), "user.note", value});
  schedule.apply(Split{schedule.apply(GetLoops{schedule.apply(GetBlock{"C"})})[0], {std::nullopt, 4}});
  Trace again = Trace::from_json(schedule.trace().json());
  for (size_t i = 0; i < values.size(); ++i) CHECK(again.steps[2 * i + 1].arguments[2] == values[i]);
  Schedule other(copy);
  other.apply(Parallel{other.apply(GetLoops{other.apply(GetBlock{"C"})})[0]});
  other.apply(Annotate{other.apply(GetLoops{other.apply(GetBlock{"C"})})[0], "user.note", 1});
  CHECK_THROWS_WITH(again.replay(other), Catch::Contains("step 11 of 11 of the trace"));
  CHECK_THROWS_WITH(Trace::from_json(R"([[["GetBlock", ["b0"], ["C", null], ["b1"]]], []])"), Catch::Contains("input"));
}

}  // namespace relaxc::test
