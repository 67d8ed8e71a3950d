// Every lowering step leaves a valid program, whatever it is given: random programs, lowered step by step.
// RELAXC_LOWERED=N takes N programs.
#include <cstdlib>

#include "codegen/compile.h"
#include "ir/text/printer.h"
#include "ir/verify/verify.h"
#include "support/diagnostic.h"
#include "tests/schedule/programs.h"
#include "tests/text/random_module.h"

#include "tests/catch.h"  // last

namespace relaxc::test {

namespace {

std::string problem_of(const PrimFuncRef& function) {
  Diagnostics diagnostics;
  verify(IRModule{{{"main", function}}, {}, {}}, op_table(), diagnostics);
  return diagnostics.has_errors() ? CompileError(diagnostics.all()).what() : "";
}

// Empty: each step left a valid program, or said why it cannot lower this one.
std::string lower_stepwise(PrimFuncRef function, int& lowered) {
  if (!problem_of(function).empty()) return "";
  PassContext context(op_table(), Target{});
  context.check_bounds = true;  // so that its step is among them
  for (const Pass* step : parse_passes(kLowerKernels, context)) {
    PrimFuncRef before = function;
    try {
      function = step->on_program("main", function, context);
    } catch (const CompileError&) {
      return "";
    } catch (const std::exception& error) {
      return fmt::format("{}: {}", step->name, error.what());
    }
    std::string problem = problem_of(function);
    if (!problem.empty())
      return fmt::format("{} left an invalid program\n{}\nof\n{}", step->name, problem,
                         print_module(IRModule{{{"main", before}}, {}, {}}));
  }
  ++lowered;
  return "";
}

PrimFuncRef scheduled(const PrimFuncRef& function) {
  CompileSettings settings;
  settings.passes = "schedule";
  return run_pipeline(IRModule{{{"main", function}}, {}, {}}, settings).prim_func("main");
}

}  // namespace

TEST_CASE("each lowering step leaves a valid program", "[lower]") {
  const char* wish = std::getenv("RELAXC_LOWERED");
  uint64_t count = wish ? std::strtoull(wish, nullptr, 10) : 300;
  int lowered = 0, failures = 0;
  for (uint64_t seed = 0; seed < count && failures < 5; ++seed) {
    for (const auto& [name, function] : random_module(op_table(), seed).functions) {
      auto program = try_cast<PrimFunc>(function);
      std::string problem = program ? lower_stepwise(*program, lowered) : "";
      if (problem.empty()) continue;
      ++failures;
      FAIL_CHECK("seed " << seed << ", " << name << ": " << problem);
    }
  }
  for (const auto& programs : {schedule_programs(), empty_programs()}) {
    for (const TestProgram& program : programs) {
      INFO(program.name);
      CHECK(lower_stepwise(program.function, lowered) == "");
      CHECK(lower_stepwise(scheduled(program.function), lowered) == "");
    }
  }
  CHECK(lowered > 100);
}

}  // namespace relaxc::test
