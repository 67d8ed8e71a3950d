// MetaSchedule's tuning records as rules.
#include "tir/schedule/tuning_database.h"

#include "codegen/compile.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "passes/pass.h"
#include "support/base64.h"
#include "support/diagnostic.h"
#include "tir/schedule/schedule.h"
#include "tir/schedule/script.h"

#include "tests/catch.h"

namespace relaxc::test {

namespace {

IRModule module_named(const std::string& block) {
  Diagnostics diagnostics;
  IRModule module = parse_module(R"(
@T.prim_func
def twice(A: T.Buffer((12, 8), "float32"), B: T.Buffer((12, 8), "float32")):
    for i, j in T.grid(12, 8):
        with T.block(")" + block + R"("):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
)",
                                 "twice.py", op_table(), diagnostics);
  diagnostics.throw_if_errors();
  return module;
}

// A trace that splits loop i of block "B" by the factor, and its line in a file of records.
std::string record(int factor, const std::string& seconds, int rows = 12, int workload = 0) {
  return fmt::format(
      R"([{}, [[[["GetBlock", [], ["B", "main"], ["b0"]], ["GetLoops", ["b0"], [], ["l1", "l2"]], )"
      R"(["SamplePerfectTile", ["l1"], [2, 64], ["v3", "v4"]], )"
      R"(["Split", ["l1", "v3", "v4"], [1, 0], ["l5", "l6"]]], [[2, [{}, {}]]]], {}, {{"kind": "llvm"}}, )"
      R"([["TENSOR", "float32", [{}, 8]], ["TENSOR", "float32", [{}, 8]]]]])",
      workload, 12 / factor, factor, seconds, rows, rows);
}

// The graph of nodes of a program with one block, of the spatial axes' extents, as TVM 0.10 to 0.20 write it.
std::string node_graph(const std::string& block, const std::string& rows) {
  std::string graph =
      R"({"root": 1, "nodes": [{"type_key": ""}, {"type_key": "tir.PrimFunc", "attrs": {"body": "2"}}, )"
      R"({"type_key": "tir.BlockRealize", "attrs": {"block": "3"}}, )"
      R"({"type_key": "tir.Block", "attrs": {"name_hint": "root", "body": "4", "iter_vars": "13"}}, )"
      R"({"type_key": "tir.For", "attrs": {"body": "5"}}, )"
      R"({"type_key": "tir.BlockRealize", "attrs": {"block": "6"}}, )"
      R"({"type_key": "tir.Block", "attrs": {"name_hint": ")" +
      block +
      R"(", "iter_vars": "7"}}, {"type_key": "Array", "data": [8, 9]}, )"
      R"({"type_key": "tir.IterVar", "attrs": {"dom": "10", "iter_type": "0"}}, )"
      R"({"type_key": "tir.IterVar", "attrs": {"dom": "11", "iter_type": "0"}}, )"
      R"({"type_key": "Range", "attrs": {"extent": "12", "min": "0"}}, )"
      R"({"type_key": "Range", "attrs": {"extent": "14", "min": "0"}}, )"
      R"({"type_key": "IntImm", "attrs": {"dtype": "int32", "value": ")" +
      rows + R"("}}, {"type_key": "Array"}, {"type_key": "IntImm", "attrs": {"value": "8"}}]})";
  return "[\"1\", \"" + to_base64(graph) + "\"]\n";
}

struct Applied {
  std::string text, report;
};
Applied applied(const std::string& records, const std::string& workloads, const std::string& block = "B") {
  Applied result;
  PassContext context(op_table(), {});
  context.schedules = {tuned_rule({"records.json", records}, {"workloads.json", workloads})};
  context.report = [&](const std::string& line) { result.report += line + "\n"; };
  result.text = print_module(run_pass(*find_pass("apply_rules"), module_named(block), context));
  return result;
}

}  // namespace

TEST_CASE("the fastest tuning record of a program's structure is applied", "[schedule]") {
  std::string records = record(2, "[0.5, 0.7]") + "\n\n" + record(3, "[0.1]") + "\n" + record(4, "null") + "\n";
  Applied three = applied(records, "");
  INFO(three.report);
  CHECK_THAT(three.report, Catch::Contains("'tuning records' is applied to 'twice'"));
  CHECK_THAT(three.text, Catch::Contains("T.grid(4, 3"));
  // A record that does not fit passes on to the next: 4 * 5 is not 12, and another processor's does not count.
  std::string other = record(6, "[0.01]");
  other.replace(other.find("llvm"), 4, "cuda");
  CHECK_THAT(applied(other + "\n" + records, "").text, Catch::Contains("T.grid(4, 3"));
  CHECK_THAT(applied(other, "").report, Catch::Contains("the record of line 1 is left out, because it is for 'cuda'"));
  Applied none = applied(record(2, "[0.5]", 16), "");
  CHECK_THAT(none.report, Catch::Contains("no record is of params float32[12, 8], float32[12, 8] and blocks B S12 S8"));
}

TEST_CASE("a workload says which block of a program the steps are for", "[schedule]") {
  std::string records = record(3, "[0.1]");
  CHECK_THAT(applied(records, node_graph("B", "12"), "mine").text, Catch::Contains("T.grid(4, 3"));
  CHECK_THAT(applied(records, node_graph("B", "10"), "mine").report, Catch::Contains("no record is of params"));
  // Without it the trace's names decide.
  CHECK_THAT(applied(records, "", "mine").report, Catch::Contains("records.json:1: "));
  CHECK_THAT(applied(records, "[\"1\", \"bm90IGEgZ3JhcGg=\"]", "B").text, Catch::Contains("T.grid(4, 3"));
}

TEST_CASE("schedules are written as tuning records", "[schedule]") {
  PrimFuncRef program = module_named("B").prim_func("twice");
  Schedule sch(program);
  run_schedule_text(sch, "i, j = sch.get_loops(\"B\")\na, b = sch.split(i, [None, 3])\nsch.reorder(j, a)\n", "mine.py");
  std::vector<TunedProgram> tuned{{"twice", program, sch.trace()}};
  std::string records = print_tuning_records(tuned, Target()), workloads = print_workloads(tuned);
  CHECK_THAT(records, Catch::Contains("null, {\"kind\": \"llvm\", \"mcpu\": \"x86-64\"}, [[\"TENSOR\", \"float32\", "
                                      "[12, 8]], [\"TENSOR\", \"float32\", [12, 8]]]]]"));
  Applied again = applied(records, workloads, "mine");
  INFO(again.report);
  CHECK_THAT(again.report, Catch::Contains("is applied"));
  CHECK_THAT(again.text, Catch::Contains("for j, i_1, i_0 in T.grid(8, 3, 4)"));
}

TEST_CASE("tuning records are for all sizes of a program with symbolic dims", "[schedule]") {
  auto rows_of = [](const std::string& dim) {
    Diagnostics diagnostics;
    IRModule module = parse_module("@T.prim_func\ndef twice(a: T.handle, b: T.handle):\n    " + dim + R"( = T.int64()
    A = T.match_buffer(a, ()" + dim + R"(, 8), "float32")
    B = T.match_buffer(b, ()" + dim + R"(, 8), "float32")
    for i, j in T.grid()" + dim + R"(, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
)",
                                   "twice.py", op_table(), diagnostics);
    diagnostics.throw_if_errors();
    return module;
  };
  PrimFuncRef program = rows_of("rows").prim_func("twice");
  Schedule sch(program);
  run_schedule_text(sch, "i, j = sch.get_loops(\"B\")\na, b = sch.split(i, [None, 4])\nsch.reorder(b, j, a)\n",
                    "mine.py");
  std::vector<TunedProgram> tuned{{"twice", program, sch.trace()}};
  std::string records = print_tuning_records(tuned, Target());
  CHECK_THAT(records,
             Catch::Contains("[[\"TENSOR\", \"float32\", [\"n0\", 8]], [\"TENSOR\", \"float32\", [\"n0\", 8]]]]]"));
  PassContext context(op_table(), {});
  std::string report;
  context.report = [&](const std::string& line) { report += line + "\n"; };
  context.schedules = {tuned_rule({"records.json", records}, {"workloads.json", print_workloads(tuned)})};
  std::string text = print_module(run_pass(*find_pass("apply_rules"), rows_of("n"), context));
  INFO(report);
  CHECK_THAT(text, Catch::Contains("for i_1, j, i_0 in T.grid("));
  // A program of 12 rows is another one.
  CHECK_THAT(applied(records, "").report, Catch::Contains("no record is of params"));
}

TEST_CASE("a file that does not hold tuning records is refused with the line", "[schedule]") {
  auto error_of = [](const std::string& records, const std::string& workloads) -> std::string {
    try {
      tuned_rule({"records.json", records}, {"workloads.json", workloads});
    } catch (const CompileError& error) {
      return error.what();
    }
    return "";
  };
  std::string good = record(2, "[1.0]");
  CHECK(error_of(good, "") == "");
  CHECK_THAT(error_of(good + "\n[1, 2]", ""), Catch::Contains("records.json:2: expected a record, [workload, [trace,"));
  CHECK_THAT(error_of("[0, [", ""), Catch::Contains("records.json:1: the line is not JSON"));
  CHECK_THAT(error_of(record(2, "[1.0]", 12, 7), node_graph("B", "12")),
             Catch::Contains("records.json:1: the record is of workload 7; 'workloads.json' has 1"));
  CHECK_THAT(error_of(good, "[3]"), Catch::Contains("workloads.json:1: expected a workload"));
  // A node that refers to itself ends the search.
  std::string loop = R"({"nodes": [{"type_key": "tir.PrimFunc", "attrs": {"body": "0"}}]})";
  CHECK(error_of(good, "[\"1\", \"" + to_base64(loop) + "\"]") == "");
}

TEST_CASE("base64 is read as it is written", "[schedule]") {
  for (const char* text : {"", "a", "ab", "abc", "abcd", "\xff\xfe\x01"}) CHECK(from_base64(to_base64(text)) == text);
  CHECK(to_base64("ab") == "YWI=");
  CHECK(!from_base64("a*b"));
}

}  // namespace relaxc::test
