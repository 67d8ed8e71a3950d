// The table of options (codegen/options.h) and the places that no row of it can fill.
#include "codegen/options.h"

#include "tests/documents.h"
#include "tests/patterns.h"

#include "tests/catch.h"  // last

using namespace relaxc;

TEST_CASE("each option of the table stands where only a hand can write it", "[codegen]") {
  struct Place {
    std::string file, before;
    bool is_of_c = false;
  };
  const Place places[] = {{"docs/relaxc.md", "\n\\| `"},
                          {"api/relaxc.h", "[ *]", true},
                          {"api/compiler.cc", "settings\\."},
                          {"api/python/relaxc/_library.py", "\\(\"", true},
                          {"api/python/relaxc/_compile.py", "options\\.", true},
                          {"api/python/relaxc/module.py", "\n        "}};  // the text of help(relaxc.compile)
  std::string missing;
  for (const auto& [file, before, is_of_c] : places) {
    const std::string text = test::read_document(RELAXC_SOURCE_DIR "/" + file);
    for (const CompileOption& row : compile_options()) {
      std::string name = file.ends_with(".md") ? row.flag : row.name;
      if (is_of_c && name == "gather") name = "clamp_indices";
      if (test::matches(text, before + name + "\\b").empty()) missing += "\n  " + name + " in " + file;
    }
  }
  INFO("codegen/options.cc has rows for these, which are missing:" << missing);
  CHECK(missing.empty());
}
