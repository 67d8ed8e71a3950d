// The operators whose results stand in texts of `# test: run`.
#pragma once
#include <set>
#include <string>

namespace relaxc::test {

// Returns the operators that a text of `# test: run` calls: their results stand in the text.
std::set<std::string> ops_of_run_texts();

}  // namespace relaxc::test
