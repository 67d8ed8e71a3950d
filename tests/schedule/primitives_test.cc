// What each primitive makes of a small program, and what it refuses. Meaning is checked by the random chains.
#include <limits>

#include "codegen/compile.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "ir/verify.h"

#include "passes/pass.h"
#include "support/diagnostic.h"
#include "tests/schedule/primitive_cases.h"
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

}  // namespace

TEST_CASE("primitives give the expected programs and refuse with a reason") {
  for (const PrimitiveCase& row : primitive_cases()) {
    INFO(row.name);
    PrimFuncRef before = read(program(row.params, row.before));
    Schedule schedule(before, {.seed = 1, .show_program = false});
    try {
      run_schedule_text(schedule, row.steps, "steps.py");
    } catch (const CompileError& error) {
      INFO(error.what());
      CHECK(false);
      continue;
    }
    PrimFuncRef after = schedule.function();
    std::string text = print_function("main", after);
    INFO(text);
    const char* params = *row.params_after ? row.params_after : row.params;
    Difference difference;
    bool equal = structural_equal(read(program(params, row.after)), after, {.difference = &difference});
    INFO(difference.text);
    CHECK(equal);

    // The trace does the same again, as text and as JSON.
    for (bool json : {false, true}) {
      Schedule again(before, {.show_program = false});
      if (json) {
        Trace::from_json(schedule.trace().json()).replay(again);
      } else {
        run_schedule_text(again, schedule.trace().text(), "trace.py");
      }
      INFO(schedule.trace().json());
      CHECK(structural_equal(again.function(), after));
    }

    // A refused step leaves the program as it was.
    Schedule other(read(program(row.params, row.before)), {.show_program = false});
    PrimFuncRef untouched = other.function();
    std::string message;
    try {
      run_schedule_text(other, row.refused, "refused.py");
    } catch (const CompileError& error) {
      message = error.diagnostics().at(0).message;
    }
    CHECK(message == row.message);
    CHECK(structural_equal(other.function(), untouched));
  }
}

TEST_CASE("a loop is parallel although loops outside of it repeat its elements") {
  const char* before = R"(    B = T.alloc_buffer((4, 8))
    for t in range(3):
        for y in range(4):
            for x in range(8):
                with T.block("B"):
                    vy, vx = T.axis.remap("SS", [y, x])
                    B[vy, vx] = A[vy, vx] * T.float32(2)
    for y, x in T.grid(4, 8):
        with T.block("C"):
            vy, vx = T.axis.remap("SS", [y, x])
            C[vy, vx] = B[vy, vx]
)";
  const char* params = "A: T.Buffer((4, 8), \"float32\"), C: T.Buffer((4, 8), \"float32\")";
  Schedule schedule(read(program(params, before)), {.show_program = false});
  run_schedule_text(schedule, R"(t, y, x = sch.get_loops(sch.get_block("B"))
sch.parallel(y)
sch.vectorize(x))",
                    "steps.py");
  CHECK_THROWS_WITH(run_schedule_text(schedule, "sch.parallel(sch.get_loops(sch.get_block('B'))[0])", "steps.py"),
                    Catch::Contains("iterations of 't' repeat the same axis values"));
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
    for (const char* step : {"sch.parallel(i0)", "sch.vectorize(i1)", "sch.reorder(i1, i0)",
                             "sch.transform_block_layout(sch.get_block('B'), lambda i: (i // 4, i % 4))"}) {
      Schedule schedule(read(program(params, before.c_str())), {.show_program = false});
      std::string steps =
          fmt::format("i, = sch.get_loops(sch.get_block('B'))\ni0, i1 = sch.split(i, [None, 4])\n{}", step);
      CHECK_THROWS_WITH(run_schedule_text(schedule, steps, "steps.py"),
                        Catch::Contains("takes what an earlier iteration made"));
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

TEST_CASE("a domain that depends on a loop outlives the loop") {
  const char* before = R"(    for i in range(12):
        for j in range(i + 1):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj]
)";
  const char* params = "A: T.Buffer((12, 12), \"float32\"), C: T.Buffer((12, 12), \"float32\")";
  Schedule schedule(read(program(params, before)), {.show_program = false});
  run_schedule_text(schedule, R"(i, j = sch.get_loops(sch.get_block("C"))
sch.split(j, [None, 5])
sch.split(i, [None, 5]))",
                    "steps.py");
  Diagnostics diagnostics;
  verify(schedule.module(), op_table(), diagnostics);
  CHECK_FALSE(diagnostics.has_errors());
  std::string text = print_function("main", schedule.function());
  INFO(text);
  CHECK(text.find("vj = T.axis.spatial(12, j_0 * 5 + j_1)") != std::string::npos);
}

TEST_CASE("storage_align reaches the memory that is allocated") {
  for (const PrimitiveCase& row : primitive_cases()) {
    if (std::string_view(row.name) != "storage_align") continue;
    Schedule schedule(read(program(row.params, row.before)));
    schedule.storage_align(schedule.get_block("B"), 0, 0, 32, 4);
    PrimFuncRef lowered = lower_program(schedule.function());
    int64_t size = 0;
    walk(lowered->body,
         [&](const AllocBuffer& alloc) { size = as_int(buffer_type(alloc.buffer).shape[0]).value_or(0); });
    CHECK(size == 11 * 36 + 8);  // rows of 8 begin at multiples of 36, which is 4 modulo 32
  }
}

TEST_CASE("a step is about one program, and about numbers where it takes numbers") {
  PrimFuncRef program_of_two = read(program("A: T.Buffer((8,), \"float32\"), C: T.Buffer((8,), \"float32\")",
                                            "    for i in range(8):\n        with T.block(\"C\"):\n            vi = "
                                            "T.axis.spatial(8, i)\n            C[vi] = "
                                            "A[vi]\n"));
  Schedule schedule(IRModule{{{"f", program_of_two}, {"g", program_of_two}}, {}, {}});
  LoopRV i = schedule.get_loops(schedule.get_block("C", "f"))[0],
         j = schedule.get_loops(schedule.get_block("C", "g"))[0];
  CHECK_THROWS_WITH(schedule.merge({i, j}), Catch::Contains("of another tensor program"));
  CHECK_THROWS_WITH(schedule.split(i, {Factor(Expr(j.var)), std::nullopt}), Catch::Contains("number"));
  CHECK_THROWS_WITH(schedule.split(i, {Factor(make_dim("n")), std::nullopt}),
                    Catch::Contains("'n' is no number of this schedule"));
  // A trace says which program it is about.
  Schedule on_second(IRModule{{{"f", program_of_two}, {"g", program_of_two}}, {}, {}}), again(on_second.module());
  on_second.work_on("g");
  on_second.split(on_second.get_loops(on_second.get_block("C"))[0], {std::nullopt, 4});
  on_second.trace().replay(again);
  CHECK(structural_equal(again.function("g"), on_second.function("g")));
  CHECK(structural_equal(again.function("f"), program_of_two));
  CHECK_THROWS_WITH(Schedule(IRModule{}).get_block("C"), Catch::Contains("no tensor program"));
}

TEST_CASE("a trace keeps its values in JSON, and says which step does not fit") {
  PrimFuncRef copy = read(program("A: T.Buffer((8,), \"float32\"), C: T.Buffer((8,), \"float32\")",
                                  "    for i in range(8):\n        with T.block(\"C\"):\n            vi = "
                                  "T.axis.spatial(8, i)\n            C[vi] = "
                                  "A[vi]\n"));
  Schedule schedule(copy);
  AttrList values{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
                  std::numeric_limits<int64_t>::min(), Attrs{{"scope", "local"}}};
  for (const AttrValue& value : values) schedule.annotate(schedule.get_block("C"), "note", value);
  schedule.split(schedule.get_loops(schedule.get_block("C"))[0], {std::nullopt, 4});
  Trace again = Trace::from_json(schedule.trace().json());
  for (size_t i = 0; i < values.size(); ++i) CHECK(again.steps[2 * i + 1].arguments[2] == values[i]);
  Schedule other(copy);
  other.parallel(other.get_loops(other.get_block("C"))[0]);
  other.annotate(other.get_loops(other.get_block("C"))[0], "note", 1);
  CHECK_THROWS_WITH(again.replay(other), Catch::Contains("step 11 of 11 of the trace"));
  CHECK_THROWS_WITH(Trace::from_json(R"([[["GetBlock", ["b0"], ["C", null], ["b1"]]], []])"), Catch::Contains("input"));
}

}  // namespace relaxc::test
