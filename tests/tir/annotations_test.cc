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

TEST_CASE("a reader of an annotation asks for its row, and a text test shows it", "[annotations]") {
  std::string table = contents(kTree / "tir/analysis/annotations.cc"), texts;
  for (const char* folder : {"tests/lower", "tests/schedule"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(kTree / folder)) {
      if (entry.path().extension() == ".test") texts += contents(entry.path());
    }
  }
  int count = 0;
  for (const std::vector<std::string>& row : test::matches(table, "X\\(\"(\\w+)\"")) {
    ++count;
    const Annotation* found = find_annotation(row[1]);
    INFO("the row of '" << row[1] << "' in tir/analysis/annotations.cc needs a text in tests/lower or tests/schedule "
                        << "with the name, and its reader asks for annotation<\"" << row[1] << "\">()");
    REQUIRE(found);
    CHECK(contains(texts, "\"" + row[1] + "\": "));
    if (!*found->reader) continue;
    INFO("its reader is " << found->reader);
    std::string reader = contents(kTree / found->reader);
    CHECK(contains(reader, "annotation<\"" + row[1] + "\">()"));
    CHECK_FALSE(contains(reader, "(\"" + row[1] + "\""));
  }
  CHECK(count > 10);
}

TEST_CASE("a misspelt annotation is refused with the name that was meant", "[annotations]") {
  CHECK(find_annotation("user.anything"));
  CHECK(find_annotation("pragma_unroll_explicit"));
  for (const char* name : {"keep", "hint", "usr.colour", "pragma_x", "exact_tail"}) CHECK(!find_annotation(name));
  CHECK_THAT(unknown_annotation("hint"), Catch::Contains("begins with 'user.'"));
  CHECK_THAT(unknown_annotation("exact_tail"), Catch::Contains("did you mean 'exact_tails'?"));
  CHECK_THAT(unknown_annotation("double_bufer_scope"), Catch::Contains("did you mean 'double_buffer_scope'?"));
  CHECK_THAT(unknown_annotation("pragma_unrol"), Catch::Contains("did you mean 'pragma_unroll'?"));

  Schedule sch(program("{}"));
  LoopRV loop = sch.apply(GetLoops{sch.apply(GetBlock{"B"})})[0];
  CHECK_THROWS_WITH(sch.apply(Annotate{loop, "keepwhole", true}), Catch::Contains("did you mean 'keep_whole'?"));
  CHECK_NOTHROW(sch.apply(Annotate{loop, "colour", 3}));  // a warning when the program is lowered
  CHECK_THROWS_WITH(sch.apply(Annotate{loop, "keep_whole", 3}),
                    Catch::Contains("annotate: keep_whole takes True or False, got 3"));
  CHECK_THROWS_AS(sch.try_apply(Annotate{loop, "keep_whole", 3}), CompileError);  // an error, and no refusal
  CHECK_THROWS_WITH(sch.apply(Annotate{loop, "double_buffer_scope", 0}), Catch::Contains("takes a block and"));
  sch.apply(Annotate{loop, "user.colour", 3});
  CHECK(cast<For>(sch.get(loop))->annotations.get_int("user.colour", 0) == 3);
}

TEST_CASE("a compiled program may have any notes but misspelt ones", "[annotations]") {
  CHECK_NOTHROW(check_lowerable(program("{\"user.hint\": 1, \"software_pipeline_stage\": [0, 0]}")));
  CHECK_NOTHROW(check_lowerable(program("{\"pragma_auto_unroll_max_step\": 16, \"pragma_unroll_explicit\": 1}")));
  for (const char* name : {"attr_key", "usr.colour", "pragma_x"}) {
    PrimFuncRef other = program(fmt::format("{{\"{}\": 1}}", name));  // TVM keeps any name
    CHECK_NOTHROW(check_lowerable(other));
    CHECK_THAT(to_string(unread_annotations({other}).at(0)), Catch::Contains("has no effect here: it is"));
  }
  CHECK_THROWS_WITH(check_lowerable(program("{\"exact_tials\": True}")),
                    Catch::Contains("did you mean 'exact_tails'?"));
  CHECK_THROWS_WITH(check_lowerable(program("{\"keep_whole\": \"no\"}")), Catch::Contains("takes True or False"));
  CHECK_THROWS_WITH(check_lowerable(program("{\"prefetch_ahead\": [\"A\", 0]}")), Catch::Contains("a positive number"));
  CHECK_THROWS_WITH(check_lowerable(program("{\"auto_copy\": \"x\"}")), Catch::Contains("takes a whole number"));
}

TEST_CASE("a warning names an annotation that nothing reads in its place", "[annotations]") {
  auto warnings = [](const char* statement) {
    Diagnostics diagnostics;
    IRModule module = parse_module(fmt::format(R"(
@T.prim_func
def main(B: T.Buffer((8,), "float32")):
    {}
    B[0] = T.float32(1)
)",
                                               statement),
                                   "notes.py", op_table(), diagnostics);
    diagnostics.throw_if_errors();
    std::string text;
    for (const Diagnostic& warning : unread_annotations({module.prim_func("main")})) text += to_string(warning);
    return text;
  };
  CHECK_THAT(warnings("T.attr(0, \"double_buffer_scope\", 1)"),
             Catch::Contains("has no effect here: it belongs to a block"));
  CHECK_THAT(warnings("C = T.decl_buffer((8,), \"float32\")\n    "
                      "D = T.allocate([8], \"float32\", \"global\", annotations={\"pragma_unroll_explicit\": 1})"),
             Catch::Contains("has no effect here: it belongs to a loop or a block"));
  CHECK(warnings("T.attr(0, \"pragma_auto_unroll_max_step\", 16)").empty());
}

TEST_CASE("a warning names attributes of modules and functions, and scopes, that nothing reads", "[annotations]") {
  Diagnostics diagnostics;
  IRModule module = parse_module(R"(
@I.ir_module
class Module:
    I.module_attrs({"system_lib_prefix": "a_", "other": 1})

    @T.prim_func(private=True)
    def copy(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        C = T.alloc_buffer((8,), scope="shared")
        D = T.alloc_buffer((8,), scope="shraed.dyn")
        E = T.alloc_buffer((8,), scope="local.own")
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = A[vi]
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = C[vi]

    @T.prim_func(private=True)
    def threads(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        C = T.alloc_buffer((8,), scope="warp")
        for i in T.thread_binding(8, thread="threadIdx.x"):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi]

    @R.function
    def main(x: R.Tensor((8,), "float32")):
        R.func_attr({"num_input": 1, "colour": "red", "relax.force_pure": True})
        with R.dataflow():
            y = R.call_tir(Module.copy, (x,), out_sinfo=R.Tensor((8,), "float32"))
            R.output(y)
        return y
)",
                                 "notes.py", op_table(), diagnostics);
  diagnostics.throw_if_errors();
  std::string text;
  for (const Diagnostic& warning : unread_annotations(module)) text += to_string(warning);
  for (const char* part :
       {"'system_lib_prefix' of the module has no effect here: no pass reads attributes of a module",
        "'other' of the module has no effect here",
        "'shared' of buffer 'C' has no effect here: it is memory of a GPU's threads, and this program has none",
        "'shraed.dyn' of buffer 'D' has no effect here: the storage scopes are global, local, shared, warp",
        "'colour' of function 'main' has no effect here: it is not known"})
    CHECK_THAT(text, Catch::Contains(part));
  for (const char* part : {"local.own", "num_input", "warp' of", "force_pure", "global_symbol"})
    CHECK_THAT(text, !Catch::Contains(part));
}

TEST_CASE("a warning names an annotation that asks for something which nothing does", "[annotations]") {
  auto warnings = [](const char* notes) {
    std::string text;
    for (const Diagnostic& warning : unread_annotations({program(notes)})) text += to_string(warning);
    return text;
  };
  CHECK(warnings("{\"pragma_auto_unroll_max_step\": 16, \"meta_schedule.tiling_structure\": \"SSR\", \"user.x\": 1}")
            .empty());
  CHECK_THAT(warnings("{\"pragma_tensor_core\": 1}"),
             Catch::Contains("warning: 'pragma_tensor_core' of loop 'i' has no effect here: TVM uses tensor cores"));
  CHECK_THAT(warnings("{\"meta_schedule.vectorize\": 64}"), Catch::Contains("has no effect here: the postprocessors"));
  CHECK_THAT(warnings("{\"meta_schedule.auto_tensorize_init\": \"x\"}"),
             Catch::Contains("whole trace holds, tensorize"));
}

}  // namespace relaxc::test
