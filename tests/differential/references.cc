#include "tests/differential/references.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "ir/visit.h"
#include "tests/ops/harness.h"
#include "tests/patterns.h"

#include "tests/catch.h"  // last

namespace relaxc::test {

std::set<std::string> ops_of_run_texts() {
  std::set<std::string> result;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(RELAXC_SOURCE_DIR "/tests/modules")) {
    std::ifstream file(entry.path());
    std::string line;
    if (entry.path().extension() != ".test" || !std::getline(file, line) || line != "# test: run") continue;
    while (std::getline(file, line)) {
      for (const std::vector<std::string>& called : matches(line, "\\bR\\.([a-z0-9_.]+)\\("))
        result.insert("relax." + called[1]);
    }
  }
  return result;
}

std::optional<std::vector<Tensor>> run_reference(const IRModule& module, const std::vector<Tensor>& inputs) {
  const Function& main = *module.functions.at("main").as<Function>();
  const Call* call = nullptr;
  walk(main.body, [&](const Call& found) { call = &found; });
  const OpRow* row = call ? op_table().find(call->callee.as<OpRef>()->name) : nullptr;
  if (!row || !row->reference) return std::nullopt;
  ReferenceCall view{*call, {}};
  auto add = [&](const Expr& arg) {
    for (size_t i = 0; i < main.params.size(); ++i) {
      if (same_node(arg, main.params[i])) view.x.push_back(inputs.at(i));
    }
  };
  for (const Expr& arg : call->args) {
    add(arg);
    if (const Tuple* several = arg.as<Tuple>()) std::for_each(several->items.begin(), several->items.end(), add);
  }
  return row->reference(view);
}

}  // namespace relaxc::test
