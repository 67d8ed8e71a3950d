// The syntax of statements that could not be read.
#include "ir/text/syntax.h"

#include "tests/catch.h"  // last

using namespace relaxc;

namespace {

text::Lines statements(const std::string& source, text::SyntaxTree& tree) {
  auto origin = std::make_shared<Origin>();
  origin->text = std::make_shared<const std::string>(source);
  Diagnostics diagnostics;
  text::SyntaxReader reader(text::Source{origin, source}, diagnostics);
  text::Lines result;
  for (text::Lines lines; reader.next(tree, lines); lines.clear())
    result.insert(result.end(), lines.begin(), lines.end());
  return result;
}

}  // namespace

// The reader closes brackets by tokens of its own, whose text lies elsewhere in memory.
TEST_CASE("a statement with an open bracket has the text of the source alone", "[text]") {
  for (std::string source : {"a(", "x = (1,", "a([{", "def main(x:\n  return", "f(x, (y\n)", "a ([} + 1", "f(x]"}) {
    INFO(source);
    text::SyntaxTree tree;
    text::Lines lines = statements(source, tree);
    REQUIRE(lines.size() >= 1);
    const text::Line& line = *lines[0];
    REQUIRE(line.kind == text::LineKind::kBroken);
    CHECK(!line.text.empty());
    CHECK(line.text.data() == source.data());
    CHECK(line.text.size() <= source.size());
  }
}
