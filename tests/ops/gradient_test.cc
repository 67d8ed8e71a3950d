// The tables of gradients: docs/gradients.md names their operators, and a text with numbers from elsewhere
// differentiates each of them.
#include <filesystem>
#include <fstream>

#include "codegen/compile.h"
#include "ops/gradient.h"

#include "tests/catch.h"  // last

namespace relaxc::test {

namespace {

namespace fs = std::filesystem;

std::string contents(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("every operator with a gradient is documented, and differentiated in a text", "[ops]") {
  const fs::path root = RELAXC_SOURCE_DIR;
  const std::string document = contents(root / "docs/gradients.md");
  std::string texts;
  for (const auto& entry : fs::directory_iterator(root / "tests/modules")) {
    if (entry.path().filename().string().starts_with("gradient_")) texts += contents(entry.path());
  }
  CHECK(gradients::all_gradients().size() > 100);
  for (const gradients::GradientRow& row : gradients::all_gradients()) {
    INFO(row.op);
    CHECK(document.find('`' + row.op + '`') != std::string::npos);
    CHECK(texts.find("R." + row.op + '(') != std::string::npos);
    CHECK(op_table().find("relax." + row.op)->gradient.has_value());
  }
}

}  // namespace relaxc::test
