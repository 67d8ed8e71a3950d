// The table of annotations: names are known or refused, readers are where it says.
#include "tir/analysis/annotations.h"
#include "tests/patterns.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include "codegen/compile.h"
#include "ir/text/parser.h"
#include "support/diagnostic.h"
#include "tir/lower/lower.h"
#include "tir/primitives/annotate.h"
#include "tir/primitives/get_block.h"
#include "tir/primitives/get_loops.h"
#include "tir/schedule/schedule.h"

#include "tests/catch.h"

namespace relaxc::test {

namespace {

const std::filesystem::path kTree = RELAXC_SOURCE_DIR;

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A loop with the annotation.
PrimFuncRef program(const std::string& notes) {
  Diagnostics diagnostics;
  IRModule module = parse_module(fmt::format(R"(
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in T.serial(8, annotations={}):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
)",
                                             notes),
                                 "notes.py", op_table(), diagnostics);
  diagnostics.throw_if_errors();
  return module.prim_func("main");
}

}  // namespace

TEST_CASE("a reader of an annotation names its row, and a text test shows it", "[annotations]") {
  std::string table = contents(kTree / "tir/analysis/annotations.h"), texts;
  for (const char* folder : {"tests/lower", "tests/schedule"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(kTree / folder)) {
      if (entry.path().extension() == ".test") texts += contents(entry.path());
    }
  }
  int count = 0;
  for (const std::vector<std::string>& row : test::matches(table, "X\\((k\\w+), \"(\\w+)\"")) {
    ++count;
    const Annotation* found = find_annotation(row[2]);
    INFO("the row of '" << row[2]
                        << "' in tir/analysis/annotations.h needs a text in tests/lower or tests/schedule with "
                        << "the name, and its reader names annotations::" << row[1] << " instead of a string");
    REQUIRE(found);
    CHECK(contains(texts, "\"" + row[2] + "\": "));
    if (!*found->reader) continue;
    INFO("its reader is " << found->reader);
    std::string reader = contents(kTree / found->reader);
    CHECK(contains(reader, "annotations::" + row[1]));
    CHECK_FALSE(contains(reader, "(\"" + row[2] + "\""));
  }
  CHECK(count > 10);
}

TEST_CASE("a misspelt annotation is refused with the name that was meant", "[annotations]") {
  CHECK(find_annotation("user.anything"));
  CHECK(find_annotation("pragma_unroll_explicit"));
  CHECK(nearest_annotation("exact_tails").empty());
  CHECK(nearest_annotation("hint").empty());
  CHECK(nearest_annotation("exact_tail") == "exact_tails");
  CHECK(nearest_annotation("double_bufer_scope") == "double_buffer_scope");

  Schedule sch(program("{}"));
  LoopRV loop = sch.apply(GetLoops{sch.apply(GetBlock{"B"})})[0];
  CHECK_THROWS_WITH(sch.apply(Annotate{loop, "keepwhole", true}), Catch::Contains("did you mean 'keep_whole'?"));
  CHECK_THROWS_WITH(sch.apply(Annotate{loop, "colour", 3}), Catch::Contains("those that start with 'user.' are free"));
  CHECK_THROWS_WITH(sch.apply(Annotate{loop, "keep_whole", 3}), Catch::Contains("takes a loop and True or False"));
  CHECK_THROWS_WITH(sch.apply(Annotate{loop, "double_buffer_scope", 0}), Catch::Contains("takes a block and"));
  sch.apply(Annotate{loop, "user.colour", 3});
  CHECK(cast<For>(sch.get(loop))->annotations.get_int("user.colour", 0) == 3);
}

TEST_CASE("a compiled program may have notes of others, but no misspelt ones", "[annotations]") {
  CHECK_NOTHROW(check_lowerable(program("{\"hint\": 1, \"software_pipeline_stage\": [0, 0]}")));
  CHECK_THROWS_WITH(check_lowerable(program("{\"exact_tials\": True}")),
                    Catch::Contains("did you mean 'exact_tails'?"));
  CHECK_THROWS_WITH(check_lowerable(program("{\"keep_whole\": \"no\"}")), Catch::Contains("takes True or False"));
}

}  // namespace relaxc::test
