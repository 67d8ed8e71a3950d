#include "tests/schedule/schedule_cases.h"

#include <sstream>

#include "ir/visit.h"
#include "tests/schedule/chains.h"
#include "tir/schedule/script.h"

#include "tests/catch.h"

namespace relaxc::test {

namespace {

using SizesList = std::vector<std::map<std::string, int64_t>>;

struct ScheduledProgram {
  IRModule module;
  SizesList sizes = {{}};
};

// Returns the rest of the first line that begins with "# KEY: "; empty if there is none.
std::string_view note(std::string_view body, std::string_view key) {
  std::string mark = fmt::format("# {}: ", key);
  for (size_t at = body.find(mark); at != std::string_view::npos; at = body.find(mark, at + 1)) {
    if (at > 0 && body[at - 1] != '\n') continue;
    at += mark.size();
    return body.substr(at, body.find('\n', at) - at);
  }
  return {};
}

bool has_program(const Section& section) { return section.body.find("def ") != std::string::npos; }

ScheduledProgram read_program(const TextTest& test, const Section& section) {
  ScheduledProgram program{parse_text(section.in_place(), test.name())};
  std::string_view sizes = note(section.body, "sizes");
  if (sizes.empty()) return program;
  program.sizes.clear();
  std::stringstream rows{std::string(sizes)};
  for (std::string row; std::getline(rows, row, ';');) program.sizes.push_back(parse_dims(row));
  return program;
}

// The trace does the same again, as text and as JSON.
void check_trace(const ScheduledProgram& program, const Schedule& schedule) {
  std::string text = schedule.trace().text(), json = schedule.trace().json();
  Schedule from_text(program.module, {.show_program = false}), from_json(program.module, {.show_program = false});
  run_schedule_text(from_text, text, "trace.py");
  Trace::from_json(json).replay(from_json);
  for (const Schedule* again : {&from_text, &from_json}) {
    INFO(text << json);
    CHECK(structural_equal(again->module(), schedule.module()));
    CHECK(again->trace().text() == text);
  }
}

void check_same_results(const ScheduledProgram& program, const Schedule& schedule) {
  for (const auto& [name, function] : program.module.functions) {
    PrimFuncRef before = program.module.prim_func(name), after = schedule.function(name);
    CHECK(compare_programs(before, after, program.sizes, 1, {.compile = runs_here(after)}) == "");
  }
}

// The scheduled program; nullopt: it was refused.
std::optional<std::string> run_case(const TextTest& test, const ScheduledProgram& program, const Section& steps) {
  INFO(fmt::format("{}:{}: {}", test.name(), steps.line - 1, steps.header));
  Schedule schedule(program.module, {.seed = 1, .show_program = false});
  try {
    run_schedule_text(schedule, steps.in_place(), test.name());
  } catch (const CompileError& error) {
    check_errors(steps.in_place(), error.diagnostics());
    check_trace(program, schedule);
    return std::nullopt;
  }
  if (expects_errors(steps.body)) {
    check_errors(steps.in_place(), {});
    return std::nullopt;
  }
  check_trace(program, schedule);
  check_verified(schedule.module());
  check_round_trip(schedule.module());
  if (note(steps.body, "not run").empty()) check_same_results(program, schedule);
  return print_body(schedule.module());
}

}  // namespace

std::vector<ScheduleCase> schedule_cases(const TextTest& test) {
  std::vector<ScheduleCase> cases;
  for (const Section& section : test.sections) {
    if (section.words_of("steps")) cases.push_back({section.body, expects_errors(section.body)});
  }
  return cases;
}

void run_schedule_cases(TextTest& test) {
  ScheduledProgram program;
  size_t cases = 0;
  for (size_t i = 0; i < test.sections.size(); ++i) {
    const Section& section = test.sections[i];
    if (i == 0 || section.words_of("program")) {
      if (has_program(section)) program = read_program(test, section);
      continue;
    }
    if (!section.words_of("steps")) {
      FAIL_CHECK(test.name() << ": expected a section of steps, or a program, found '" << section.header << "'");
      continue;
    }
    ++cases;
    bool has_result = i + 1 < test.sections.size() && test.sections[i + 1].header == "result";
    std::optional<std::string> result = run_case(test, program, section);
    if (result) {
      test.set_section_behind(i, "result", *result);
      ++i;
    } else if (has_result) {
      test.sections.erase(test.sections.begin() + static_cast<ptrdiff_t>(i) + 1);
    }
  }
  CHECK(cases > 0);
}

}  // namespace relaxc::test
