// What each primitive makes of a small program, and what it refuses. Meaning is checked by the random chains.
#include "codegen/compile.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"

#include "support/diagnostic.h"
#include "tests/schedule/primitive_cases.h"
#include "tir/lower/lower.h"
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

}  // namespace relaxc::test
