// Steps on sch = tvm.tir.Schedule(Module) beside a module in its text, as TVM's tutorials have them.
#include "codegen/compile.h"
#include "ir/text/parser.h"
#include "support/diagnostic.h"
#include "tir/schedule/script.h"

#include "tests/catch.h"

namespace relaxc::test {

namespace {

const std::string kSums = R"(
@I.ir_module
class Sums:
    @T.prim_func
    def rows(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8,), "float32")):
        for i, k in T.grid(8, 16):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi, vk]
)";

// Returns the steps that are done, as text, or the error.
std::string steps_of(const std::string& python, const std::string& module_name = "") {
  std::string text = kSums + python;
  try {
    Diagnostics diagnostics;
    IRModule module = parse_module(text, "sums.py", op_table(), diagnostics, module_name);
    diagnostics.throw_if_errors();
    std::optional<ScheduleRule> rule = read_module_schedule(text, "sums.py", module_name);
    if (!rule) return "none";
    Schedule schedule(module);
    Decisions none("", {});
    rule->apply(schedule, Target(), none);
    return schedule.trace().text();
  } catch (const CompileError& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("a script compares blocks and loops by identity", "[schedule]") {
  const std::string begin = R"(
sch = tvm.tir.Schedule(Sums)
block = sch.get_block("B")
loops = sch.get_loops(block)
)";
  const std::string taken = steps_of(begin + R"(
for loop in loops:
    if loop is loops[-1] and loop is not loops[0] and loop in loops[1:] and loop != block and loop is not None:
        sch.split(loop, [None, 4])
)");
  INFO(taken);
  CHECK(taken.find("split") != std::string::npos);
  CHECK(steps_of(begin + "for loop in loops:\n    assert block is loops[0]\n    sch.unroll(loop)\n")
            .find("does not hold") != std::string::npos);
  CHECK(steps_of(begin + "for loop in loops:\n    assert block < loops[0]\n    sch.unroll(loop)\n")
            .find("have no order") != std::string::npos);
  CHECK(steps_of(begin + "for loop in loops:\n    assert 1 is 1\n    sch.unroll(loop)\n")
            .find("compare other values with '=='") != std::string::npos);
}

TEST_CASE("conditions on what sch.get gives choose the steps, and a try takes a refusal", "[schedule]") {
  const std::string helper = R"(
def tile(sch, target="cpu"):
    block = sch.get_block("B")
    rows, columns = [axis.dom.extent for axis in sch.get(block).iter_vars]
    kinds = [axis.iter_type for axis in sch.get(block).iter_vars]
    lanes = 1
    if target == "cpu":
        if columns >= 32 and columns % 32 == 0:
            lanes = 32
        elif columns >= 16 and kinds[1] == tvm.tir.IterVar.CommReduce:
            lanes = 16
    try:
        sch.reverse_compute_inline(sch.get_block("bias"))
    except:
        sch.annotate(block, "alone", 1)
    i, k = sch.get_loops(block)
    sch.split(k, factors=[None, lanes])
    return sch

sch = tile(tvm.tir.Schedule(Sums))
)";
  const std::string taken = steps_of(helper);
  INFO(taken);
  CHECK(taken.find("[None, 16]") != std::string::npos);
  CHECK(taken.find("\"alone\", 1") != std::string::npos);
  CHECK(steps_of(R"(
sch = tvm.tir.Schedule(Sums)
sch.split(sch.get_loops("B")[0], [None, sch.get(sch.get_block("B")).dom])
)")
            .find("of objects a schedule knows") != std::string::npos);
}

TEST_CASE("a script looks up factors in a dictionary, and pairs loops with letters", "[schedule]") {
  const std::string taken = steps_of(R"(
factors = {"i": [4, 2], "k": [None, 8]}
sch = tvm.tir.Schedule(Sums)
tiles = [sch.split(loop, factors=factors[name]) for loop, name in zip(sch.get_loops(sch.get_block("B")), "ik")]
sch.reorder(tiles[0][0], tiles[1][0], tiles[0][1], tiles[1][1])
)");
  INFO(taken);
  CHECK(taken.find("[4, 2]") != std::string::npos);
  CHECK(taken.find("[None, 8]") != std::string::npos);
  CHECK(steps_of("sch = tvm.tir.Schedule(Sums)\nsch.split(sch.get_loops(\"B\")[0], {\"i\": [1]}[\"j\"])\n")
            .find("the dictionary has no \"j\"") != std::string::npos);
}

TEST_CASE("steps beside a module are done, and Python between them is left out", "[schedule]") {
  std::string steps = steps_of(R"(
print(Sums)
factor = 4
data = np.random.rand(8, 16)
sch = tvm.tir.Schedule(Sums)
sch.vectorize("missing")
sch = tvm.tir.Schedule(Sums)
block = sch.get_block("B", func_name="rows")
i, k = sch.get_loops(block)
sch.mod.show()
for loop in [i]:
    outer, inner = sch.split(loop, factors=[None, factor])
sch.parallel(outer)
print(sch.mod.script(), [x for x in data])
lib = tvm.build(sch.mod, target="llvm")
lib["rows"](data)
)");
  INFO(steps);
  CHECK(steps.find("sch.split(") != std::string::npos);
  CHECK(steps.find("sch.parallel(") != std::string::npos);
  CHECK(steps.find("vectorize") == std::string::npos);
  CHECK(steps_of("print(Sums)\n") == "none");
  CHECK(steps_of("s = te.create_schedule(C.op)\n") == "none");
  CHECK(
      steps_of("with tvm.target.Target(\"llvm\"):\n    s = tvm.tir.Schedule(Sums)\n    i, k = s.get_loops(\"B\")\n    "
               "s.unroll(k)\n")
          .find("unroll") != std::string::npos);
  CHECK(steps_of("s = tvm.tir.Schedule(Sums)\nif __name__ == \"__main__\":\n    s.unroll(s.get_loops(\"B\")[1])\n")
            .find("unroll") != std::string::npos);
  CHECK(
      steps_of("s = tir.create_schedule(Sums)\ni, k = s.get_axes(s.get_block(\"B\"))\ns.unroll(k)\n").find("unroll") !=
      std::string::npos);
}

TEST_CASE("steps in functions of Python are done where these are called", "[schedule]") {
  std::string steps = steps_of(R"(
def unroll(sch, loop):
    sch.unroll(loop)

def tile(mod, factor=2):
    sch = tvm.tir.Schedule(mod)
    i, k = sch.get_loops("B")
    outer, inner = sch.split(i, [None, factor])
    if factor == 4:
        unroll(sch, k)
    return sch.mod

k = tvm.tir.Schedule(Sums).get_loops("B")
if __name__ == "__main__":
    with tvm.transform.PassContext(opt_level=3):
        lib = tvm.build(tile(Sums, 4))
)");
  INFO(steps);
  CHECK(steps.find("[None, 4]") != std::string::npos);
  CHECK(steps.find("sch.unroll(") != std::string::npos);
}

TEST_CASE("steps in loops over loops, with functions of Python", "[schedule]") {
  std::string steps = steps_of(R"(
sch = tvm.tir.Schedule(Sums)
count = 0
parts = []
for number, loop in enumerate(sch.get_loops("B")):
    if number == 0:
        outer, inner = sch.split(loop, [None, max(1, 2)])
        parts.append(inner)
        continue
    count += 1
    print("loop", number)
    sch.unroll(loop)
    break
[sch.vectorize(loop) for loop in reversed(parts) if count == 1]
for factor, loop in zip(range(4, 0, -2), list(sch.get_loops("B"))[0:1]):
    sch.split(loop, [factor, None])
)");
  INFO(steps);
  CHECK(steps.find("[None, 2]") != std::string::npos);
  CHECK(steps.find("sch.unroll(") != std::string::npos);
  CHECK(steps.find("sch.vectorize(") != std::string::npos);
  CHECK(steps.find("[4, None]") != std::string::npos);
}

TEST_CASE("steps follow from what earlier ones gave", "[schedule]") {
  std::string steps = steps_of(R"(
sch = tvm.tir.Schedule(Sums)
block = sch.get_block("B")
loops = sch.get_loops(block)
if len(loops) != 2:
    raise RuntimeError("expected two loops")
outer, _ = loops
sch.split(outer, [None, 8])
)");
  INFO(steps);
  CHECK(steps.find("[None, 8]") != std::string::npos);
  CHECK(steps_of("sch = tvm.tir.Schedule(Sums)\nloops = sch.get_loops(\"B\")\nif len(loops) != 3:\n    raise "
                 "RuntimeError()\nsch.unroll(loops[1])\n")
            .find("the schedule raises an error") != std::string::npos);
}

TEST_CASE("a schedule of what another gave goes on from there", "[schedule]") {
  const std::string two = R"(
s = tvm.tir.Schedule(Sums)
i, k = s.get_loops("B")
i0, i1 = s.split(i, [None, 2])
tiled = s.mod
s.parallel(i0)
t = tvm.tir.Schedule(tiled)
t.unroll(i1)
)";
  std::string steps = steps_of(two);
  INFO(steps);
  CHECK(steps.find("sch.split(") != std::string::npos);
  CHECK(steps.find("sch.unroll(") != std::string::npos);
  CHECK(steps.find("sch.parallel(") == std::string::npos);
  steps = steps_of(two + "lib = tvm.build(s.mod)\n");  // what is built counts
  CHECK(steps.find("sch.parallel(") != std::string::npos);
  CHECK(steps.find("sch.unroll(") == std::string::npos);
}

TEST_CASE("steps that only Python can do are errors", "[schedule]") {
  auto error = [](const std::string& python, const std::string& what) {
    std::string got = steps_of("sch = tvm.tir.Schedule(Sums)\n" + python);
    INFO(got);
    CHECK(got.find(what) != std::string::npos);
  };
  error("tile(sch)\n", "'sch' is given to Python, which is not run");
  error("n = np.random.randint(4)\nsch.split(sch.get_loops(\"B\")[0], [None, n])\n", "'n' is computed by Python");
  error("{x: sch.unroll(x) for x in sch.get_loops(\"B\")}\n", "no dictionaries that are computed");
  error("n = [2, 2]\nn.sort()\nsch.split(sch.get_loops(\"B\")[0], n)\n", "'n' is computed by Python");
  error("n = 2\nif flag:\n    n = 4\nsch.split(sch.get_loops(\"B\")[0], [None, n])\n", "'n' is computed by Python");
  error("sch.vectorize(sch.get_loops(\"B\")[1])\n", "vectorize");
}

TEST_CASE("of several modules the named one is read, with the steps on it", "[schedule]") {
  const std::string others = R"(
@I.ir_module
class Other:
    @T.prim_func
    def rows(A: T.Buffer((8,), "float32")):
        A[0] = 0.0
sch = tvm.tir.Schedule(Sums)
sch.unroll(sch.get_loops("B")[1])
sch = tvm.tir.Schedule(Other)
sch.get_block("missing")
)";
  CHECK(steps_of(others).find("a text has one module; 'Other' stands after 'Sums'") != std::string::npos);
  CHECK(steps_of(others, "Other").find("there is no block 'missing'") != std::string::npos);
  CHECK(steps_of(others, "None").find("the text has no module 'None'; it has: Sums, Other") != std::string::npos);
}

}  // namespace relaxc::test
