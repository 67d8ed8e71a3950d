// Every operator that has a lowering, at every level of the compiler.
#include <set>

#include "ir/op.h"
#include "tests/differential/operator_cases.h"
#include "tests/differential/references.h"

#include "tests/catch.h"  // last

namespace relaxc::test {

namespace {

std::string op_of(const Case& test) { return test.name.substr(0, test.name.find(' ')); }

// Cases for the elementwise operators that no list names, such as one that was just added.
void add_unlisted(std::vector<Case>& cases) {
  std::set<std::string> listed;
  for (const Case& test : cases) listed.insert("relax." + op_of(test));
  for (const OpRow& row : op_table().rows()) {
    bool is_elementwise = row.pattern == OpPattern::kElementwise || row.pattern == OpPattern::kBroadcast;
    if (!row.legalize || !is_elementwise || listed.contains(row.name) || row.inputs.size() > 2) continue;
    std::string name = std::string(row.name).substr(std::string("relax.").size());
    using namespace operator_cases;
    cases.push_back(row.inputs.size() == 1 ? op_case(name, "", one("n,m")) : op_case(name, "", two("n,m", "n,m")));
  }
}

const std::vector<Case>& all_cases() {
  static const std::vector<Case> kCases = [] {
    using namespace operator_cases;
    std::vector<Case> cases;
    add_elementwise(cases);
    add_reductions(cases);
    add_contractions(cases);
    add_windows(cases);
    add_normalizations(cases);
    add_layouts(cases);
    add_splits_and_pads(cases);
    add_indexing(cases);
    add_creation(cases);
    add_images(cases);
    add_unlisted(cases);
    for (Case& test : cases) test.has_reference = static_cast<bool>(op_table().find("relax." + op_of(test))->reference);
    return cases;
  }();
  return kCases;
}

}  // namespace

TEST_CASE("every operator with a lowering runs compiled and interpreted", "[differential]") {
  std::set<std::string> in_cases, covered = ops_of_run_texts();
  for (const Case& test : all_cases()) in_cases.insert("relax." + op_of(test));
  covered.insert(in_cases.begin(), in_cases.end());
  for (const OpRow& row : op_table().rows()) {
    if (row.legalize || row.decompose) {
      INFO(row.name << ": add tests/modules/<name>.test (test: run), or a case to tests/differential");
      CHECK(covered.contains(row.name));
    }
    if (row.reference) {
      INFO(row.name << " has a reference, but no case in tests/differential");
      CHECK(in_cases.contains(row.name));
    }
  }
}

// Several test cases, so that a failure says where and a glob picks a part. With sanitizers every eighth case runs.
void check_part(size_t part, size_t parts) {
  const char* only = std::getenv("RELAXC_DIFFERENTIAL_CASE");
  const std::vector<Case>& cases = all_cases();
  for (size_t i = part; i < cases.size(); i += kSanitized ? 8 * parts : parts) {
    if (only && cases[i].name.find(only) == std::string::npos) continue;
    check_case(cases[i]);
  }
}
TEST_CASE("operators agree at every level (1/2)", "[differential]") { check_part(0, 2); }
TEST_CASE("operators agree at every level (2/2)", "[differential]") { check_part(1, 2); }

}  // namespace relaxc::test