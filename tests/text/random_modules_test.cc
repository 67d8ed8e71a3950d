// Random modules verify, print as text that reads back structurally equal, and print the same again.
#include <cstdlib>
#include <set>

#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "ir/verify/verify.h"
#include "ir/visit.h"
#include "ops/ops.h"
#include "tests/report.h"
#include "tests/text/random_module.h"
#include "tir/lower/lower.h"

#include "tests/catch.h"  // last

using namespace relaxc;

// Returns whether a program accesses a buffer with a dim of 0. No region of it holds the access, so the verifier warns.
bool accesses_empty_buffer(const IRModule& module) {
  bool found = false;
  auto look = [&](const Buffer& buffer) {
    for (const Expr& dim : buffer_type(buffer).shape) found = found || is_int(dim, 0);
  };
  for (const auto& [name, function] : module.functions) {
    walk(
        function, [&](const BufferLoad& load) { look(load.buffer); },
        [&](const BufferStore& store) { look(store.buffer); });
  }
  return found;
}

TEST_CASE("random modules print and read back", "[text]") {
  const OpTable ops = make_op_table();
  PrintOptions whole;
  whole.inline_elements = int64_t{1} << 40;
  const char* wish = std::getenv("RELAXC_RANDOM_MODULES");  // "10000", or "seed:17" for one of them
  uint64_t first = 0, count = 10000;
  if (wish && std::string_view(wish).starts_with("seed:")) {
    first = std::strtoull(wish + 5, nullptr, 10);
    count = 1;
  } else if (wish) {
    count = std::strtoull(wish, nullptr, 10);
  }
  std::set<std::string_view> kinds, called;
  int failures = 0;
  for (uint64_t seed = first; seed < first + count && failures < 5; ++seed) {
    IRModule module = test::random_module(ops, seed);
    std::string text = print_module(module, whole), name = fmt::format("seed_{}.py", seed), problem;
    Diagnostics verified, parsed;
    verify(module, ops, verified);
    const bool excused = accesses_empty_buffer(module);
    for (const Diagnostic& diagnostic : verified.all()) {
      if (excused && diagnostic.message.find("[T11]") != std::string::npos) continue;
      problem += "invalid: " + to_string(diagnostic) + "\n";
    }
    IRModule again = parse_module(text, name, ops, parsed);
    for (const Diagnostic& diagnostic : parsed.all()) problem += to_string(diagnostic) + "\n";
    Difference difference;
    EqualOptions options;
    options.difference = &difference;
    options.print = print_node;
    if (problem.empty() && !structural_equal(module, again, options)) problem = "differs at " + difference.text;
    if (problem.empty() && print_module(again, whole) != text)
      problem = "prints differently:\n" + print_module(again, whole);
    if (problem.empty() && seed % 8 == 0) {
      // The later spelling says the same.
      PrintOptions later = whole;
      later.dialect = Dialect::kTvm26;
      Diagnostics spelled;
      IRModule same = parse_module(print_module(module, later), name, ops, spelled);
      for (const Diagnostic& diagnostic : spelled.all()) problem += to_string(diagnostic) + "\n";
      if (problem.empty() && !structural_equal(module, same, options))
        problem = "in 0.26 differs at " + difference.text;
      if (!problem.empty()) text = print_module(module, later);
    }
    // With int64 in place of what they count in, programs are as valid, and nothing is left to promote.
    IRModule promoted;
    for (const auto& [function_name, function] : module.functions) {
      auto program = try_cast<PrimFunc>(function);
      if (!program) continue;
      PrimFuncRef wide = promote_indices(*program);
      promoted.functions.emplace(function_name, wide);
      if (!same_node(promote_indices(wide), wide)) problem += function_name + " is promoted twice\n";
    }
    Diagnostics after;
    verify(promoted, ops, after);
    for (const Diagnostic& diagnostic : after.all()) {
      // Regions are compared better than before, so there may be warnings of other accesses.
      if (diagnostic.severity == Severity::kError) problem += "promoted: " + to_string(diagnostic) + "\n";
    }
    if (!problem.empty()) {
      ++failures;
      FAIL_CHECK("RELAXC_RANDOM_MODULES=seed:" << seed << "\n" << problem << "\n" << text);
    }
    for (const auto& [function_name, function] : module.functions) {
      walk_nodes(function, [&](const NodeRef& node) {
        kinds.insert(kind_name(node.kind()));
        const OpRef* op = node.as<OpRef>();
        const OpRow* row = op ? ops.find(op->name) : nullptr;
        if (row) called.insert(row->name);
        return true;
      });
    }
  }
  if (count < 10000 || failures > 0) return;
  for (const OpRow& row : ops.rows()) {
    INFO("no random module calls " << row.name);
    CHECK(called.contains(row.name));
  }
  // Made by passes only, or types that no operator gives.
#define X(name) CHECK(kinds.contains(#name));
  RELAXC_NODE_KINDS(X)
#undef X
}
