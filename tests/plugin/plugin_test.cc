// Plug-ins: examples/plugin/ at work in the command line, rows that a host program adds, and what is refused.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <thread>

#include <fmt/format.h>

#include "ir/text/parser.h"
#include "passes/tables.h"
#include "support/diagnostic.h"
#include "tests/folder.h"
#include "tests/frontend/onnx_model.h"
#include "tests/patterns.h"
#include "tests/process.h"
#include "tir/compute.h"

#include "tests/catch.h"  // last

using namespace relaxc;
using test::contains;
using test::Outcome;

namespace {

namespace fs = std::filesystem;
const std::string kOperator = RELAXC_MY_OPERATOR, kPass = RELAXC_MY_PASS, kStep = RELAXC_MY_LOWERING_STEP,
                  kBad = RELAXC_BAD_PLUGIN;

Outcome relaxc_tool(std::vector<std::string> arguments, const std::string& mistake = "") {
  arguments.insert(arguments.begin(), {"/usr/bin/env", "RELAXC_BAD_PLUGIN=" + mistake, RELAXC_TOOL});
  return test::run_program(arguments, 120);
}

// y = FancyGelu(x), with another alpha than the default.
std::string fancy_model(const std::string& attribute = "alpha") {
  test::OnnxModel model;
  auto* opset = model.proto().add_opset_import();
  opset->set_domain("com.me");
  opset->set_version(1);
  model.input("x", kFloat32, "n,3").output("y");
  onnx::NodeProto& node = model.node("FancyGelu", "x", "y");
  node.set_domain("com.me");
  onnx::AttributeProto& alpha = *node.add_attribute();
  alpha.set_name(attribute);
  alpha.set_type(onnx::AttributeProto::FLOAT);
  alpha.set_f(2);
  return model.proto().SerializeAsString();
}

const std::string kGelu =
    "@I.ir_module\nclass Module:\n    @R.function\n"
    "    def main(x: R.Tensor((\"n\", 3), \"float32\")) -> R.Tensor((\"n\", 3), \"float32\"):\n"
    "        with R.dataflow():\n            y = R.nn.gelu(x)\n            z = R.exp(y)\n            R.output(z)\n"
    "        return z\n";

}  // namespace

TEST_CASE("the example plug-ins add rows that the lists show with their origin", "[plugin]") {
  std::string passes = relaxc_tool({"opt", "--list-passes", "--plugin", kPass, "--plugin", kStep}).out;
  CHECK(contains(passes, fmt::format("compute nn.gelu by nn.gelu_tanh [{}]", kPass)));
  CHECK(contains(passes, "fast_gelu,spread_tuples,"));
  CHECK(contains(passes, fmt::format("compute exp(x) as exp2(x * log2(e)) [{}]", kStep)));
  CHECK(contains(passes, "simplify_program,exp_by_exp2,"));
  std::string ops = relaxc_tool({"opt", "--list-ops", "--plugin", kOperator}).out;
  CHECK(contains(ops, "R.me.fancy_gelu(x, alpha=0.5)"));
  CHECK(contains(ops, fmt::format("ONNX operator com.me::FancyGelu [{}]", kOperator)));
  CHECK(!contains(relaxc_tool({"opt", "--list-passes"}).out, "fast_gelu"));
}

TEST_CASE("an ONNX operator of a plug-in is imported, fused and compiled, also to an artifact", "[plugin]") {
  test::Folder folder("plugin");
  std::string model = folder.write("fancy.onnx", fancy_model()), artifact = (folder.path / "fancy.so").string();
  Outcome without = relaxc_tool({"run", model});
  CHECK(without.exit_code == 3);
  CHECK(contains(without.err, "operator com.me::FancyGelu of opset 1 is not supported"));
  Outcome graph = relaxc_tool({"compile", model, "--emit=graph", "--plugin", kOperator});
  INFO(graph.err);
  CHECK(contains(graph.out, "R.me.fancy_gelu(x, alpha=2.0)"));
  Outcome run = relaxc_tool({"run", model, "--plugin", kOperator, "--dim", "n=4"});
  REQUIRE(run.exit_code == 0);
  REQUIRE(relaxc_tool({"compile", model, "--plugin", kOperator, "-o", artifact}).exit_code == 0);
  CHECK(relaxc_tool({"run", artifact, "--dim", "n=4"}).out == run.out);
  CHECK(relaxc_tool({"run", model, "--interpret", "--plugin", kOperator, "--dim", "n=4"}).out == run.out);
  std::string text = folder.write("fancy.py", graph.out);
  CHECK(relaxc_tool({"run", text, "--plugin", kOperator, "--dim", "n=4"}).out == run.out);
  CHECK(relaxc_tool({"check", text, "--plugin", kOperator}).exit_code == 0);
  CHECK(relaxc_tool({"fmt", text, "--plugin", kOperator}).out == graph.out);
  CHECK(relaxc_tool({"diff", text, model, "--plugin", kOperator}).out == "equal\n");
  CHECK(relaxc_tool({"check", text}).exit_code != 0);
  CHECK(contains(relaxc_tool({"explain", model, "--plugin", kOperator}).out,
                 fmt::format("from {}, as me.fancy_gelu", kOperator)));
  Outcome other = relaxc_tool({"run", folder.write("other.onnx", fancy_model("beta")), "--plugin", kOperator});
  CHECK(contains(other.err, "attribute 'beta' is not known for com.me::FancyGelu"));
}

TEST_CASE("explain names backends and operators of plug-ins behind a kernel that takes the node", "[plugin]") {
  const std::string folder = RELAXC_SOURCE_DIR "/examples/kernels/";
  auto explained = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"explain", folder + "fancy_gelu.onnx", "--kernels", folder + "fancy_gelu.py"});
    Outcome outcome = relaxc_tool(more);
    INFO(outcome.err);
    CHECK(outcome.exit_code == 0);
    return outcome.out;
  };
  const std::string alone = explained({});
  CHECK(contains(alone, "kernel 'fancy_gelu'\n"));
  CHECK(!contains(alone, "comes first"));
  const char* first = " does not: it could, and kernel 'fancy_gelu' comes first\n";
  CHECK(contains(explained({"--plugin", kOperator}), fmt::format("    me.fancy_gelu of {}{}", kOperator, first)));
  const std::string both = explained({"--plugin", kOperator, "--backend", RELAXC_MY_BACKEND});
  INFO(both);
  CHECK(contains(both, fmt::format("    backend 'me'{}", first)));
}

TEST_CASE("explain names them for a list of passes, too, and leaves what a pattern composes to it", "[plugin]") {
  test::Folder folder("plugin");
  const std::string text = folder.write("m.py", R"(
@R.function
def main(x: R.Tensor(("n", 4), "float32")):
    with R.dataflow():
        y = R.nn.relu(R.me.fancy_gelu(x, alpha=1.0))
        R.output(y)
    return y
)");
  const std::string kernels =
      folder.write("k.py",
                   "@S.pattern\ndef both(x):\n    return R.nn.relu(R.me.fancy_gelu(x))\n\n"
                   "@S.schedule(\"both\")\ndef tile(sch):\n    sch.parallel(sch.get_loops(\"T_relu\")[0])\n");
  auto explained = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"explain",  text,      "--kernels", kernels,
                                      "--plugin", kOperator, "--backend", RELAXC_MY_BACKEND};
    words.insert(words.end(), more.begin(), more.end());
    Outcome outcome = relaxc_tool(words);
    INFO(outcome.err);
    CHECK(outcome.exit_code == 0);
    return outcome;
  };
  const char* could = "    backend 'me' does not: it could, and pattern 'both' comes first\n";
  const Outcome whole = explained({});
  INFO(whole.out << whole.err);
  CHECK(contains(whole.out, could));
  CHECK(contains(whole.err, "schedule rule 'tile' is applied to 'both'"));
  CHECK(contains(explained({"--passes=simplify"}).out, could));
  CHECK(contains(explained({"--passes=both,claim_me"}).out, could));
  CHECK(!contains(explained({"--passes=both"}).out, "backend"));
}

TEST_CASE("the passes of a plug-in run in pipelines and alone, and are timed, printed and bisected", "[plugin]") {
  test::Folder folder("plugin");
  std::string module = folder.write("gelu.py", kGelu);
  Outcome whole =
      relaxc_tool({"run", module, "--plugin", kPass, "--plugin", kStep, "--time-passes", "--verify-each=pass"});
  CHECK(whole.exit_code == 0);
  CHECK(contains(whole.err, "ms  fast_gelu"));
  CHECK(contains(whole.err, "ms  exp_by_exp2"));
  CHECK(contains(relaxc_tool({"opt", module, "--plugin", kPass, "--passes=fast_gelu"}).out, "R.nn.gelu_tanh(x"));
  Outcome dumped = relaxc_tool({"run", module, "--plugin", kStep, "--print-after=exp_by_exp2"});
  CHECK(contains(dumped.err, "T.exp2("));
  Outcome bisected = relaxc_tool({"opt", module, "--plugin", kPass, "--bisect", "--dim", "n=8", "--rtol", "1e-5"});
  CHECK(contains(bisected.out, "pass: fast_gelu\n"));  // GELU's tanh form is an approximation
  CHECK(contains(bisected.out, "--passes=fast_gelu --plugin " + kPass));
  Outcome unknown = relaxc_tool({"opt", module, "--passes=fast_gelu"});
  CHECK(contains(unknown.err, "unknown pass 'fast_gelu'"));
}

TEST_CASE("plug-ins that cannot be loaded are errors that name them", "[plugin]") {
  test::Folder folder("plugin");
  std::string model = RELAXC_SOURCE_DIR "/examples/digits/digits.onnx";
  auto error_of = [&](const std::string& plugin) {
    Outcome outcome = relaxc_tool({"run", model, "--plugin", plugin});
    CHECK(outcome.exit_code == 1);
    CHECK(contains(outcome.err, plugin));
    return outcome.err;
  };
  auto build = [&](const std::string& name, const std::string& source) {
    std::string file = folder.write(name + ".c", source), library = (folder.path / (name + ".so")).string();
    REQUIRE(test::run_program({"/usr/bin/cc", "-shared", "-fPIC", file, "-o", library}, 60).exit_code == 0);
    return library;
  };
  CHECK(contains(error_of("no_such.so"), "cannot open"));
  CHECK(contains(error_of(folder.write("text.so", "text")), "expected a shared object, and it is text"));
  std::string whole = build("whole", "int f(void) { return 1; }"), cut_off = (folder.path / "cut_off.so").string();
  std::filesystem::copy_file(whole, cut_off);
  std::filesystem::resize_file(cut_off, 3000);
  CHECK(contains(error_of(cut_off), "was cut off: it has 3000 bytes, and its headers state at least "));
  CHECK(contains(error_of(build("plain", "int f(void) { return 1; }")), "is not a plug-in"));
  std::string version = "struct { unsigned a, b; unsigned long c; } relaxc_plugin_version = {7, 8, 9};";
  CHECK(contains(error_of(build("old", version + "void relaxc_plugin(void* t) {}")),
                 "was built for another relaxc (interface 7, C++ ABI 8, layout 0000000000000009; this one has "));
  const auto& ours = kPluginVersion;
  version = fmt::format("struct {{ unsigned a, b; unsigned long c; }} relaxc_plugin_version = {{{}, {}, {}ul}};",
                        ours.interface, ours.compiler, ours.layout);
  CHECK(contains(error_of(build("entry", version)), "has no entry 'relaxc_plugin'"));
  CHECK(contains(relaxc_tool({"run", model, "--plugin", kPass, "--plugin", kPass}).err, "is given twice"));
}

// Without the C library's start files, whose code at the end of the process would be written over, too.
TEST_CASE("a plug-in that was written over or replaced is loaded again", "[plugin]") {
  test::Folder folder("plugin_again");
  const std::string library = (folder.path / "mine.so").string();
  auto plugin = [&](const std::string& number) {
    const auto& ours = kPluginVersion;
    const std::string source = fmt::format(
        "struct {{ unsigned a, b; unsigned long c; }} relaxc_plugin_version = {{{}, {}, {}ul}};\n"
        "int setenv(const char*, const char*, int);\n"
        "void relaxc_plugin(void* tables) {{ setenv(\"RELAXC_TEST_PLUGIN\", \"{}\", 1); }}\n",
        ours.interface, ours.compiler, ours.layout, number);
    const std::string file = folder.write(number + ".c", source), built = file + ".so";
    REQUIRE(test::run_program({"/usr/bin/cc", "-shared", "-nostartfiles", "-fPIC", file, "-o", built}, 60).exit_code ==
            0);
    return built;
  };
  auto loaded = [&](Tables& tables) {
    tables.load_plugin(library);
    return std::string(std::getenv("RELAXC_TEST_PLUGIN"));
  };
  const std::string one = plugin("1"), two = plugin("2"), three = plugin("3");
  fs::copy_file(one, library);
  Tables first, second, third;
  CHECK(loaded(first) == "1");
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the granularity of the file system's clock
  fs::copy_file(two, library, fs::copy_options::overwrite_existing);
  CHECK(loaded(second) == "2");
  fs::rename(three, library);
  CHECK(loaded(third) == "3");
}

TEST_CASE("rows that cannot be added are errors that name the plug-in", "[plugin]") {
  const std::pair<const char*, const char*> kCases[] = {
      {"throw", "failed to add its rows: no licence"},
      {"throw number", "failed to add its rows: it threw an exception that is not a std::exception"},
      {"pass", "pass 'fuse' exists already (built in)"},
      {"pipeline", "pass 'simplify' exists already (built in)"},
      {"twice", "pass 'mine' exists already (from "},
      {"place", "pass 'mine': pipeline 'simplify' has no pass 'fuze'; it has: "},
      {"no pipeline", "there is no pipeline 'simplest'; there are: default"},
      {"both", "give one of them"},
      {"no function", "pass 'mine' sets neither of on_module and on_program"},
      {"list", "pipeline 'mine' names 'fuze', which is neither a pass nor a pipeline"},
      {"cycle", "pipeline 'lower' would contain itself"},
      {"operator", "operator 'relax.add' exists already (built in)"},
      {"operator name", "the name begins with \"relax.\""},
      {"operator infer", "operator 'relax.me.add' has no infer"},
      {"onnx", "converter 'Abs' of a plug-in: this operator has a built-in one"},
      {"converter", "converter 'com.me::Mine' has no function convert"},
      {"rule", "rule 'default' exists already (built in)"},
      {"rule of a function", "rule 'mine' is for the program 'f'; tables hold rules for operators"},
      {"use", "S.use(\"contraction\") chooses for one compile"},
  };
  for (const auto& [mistake, message] : kCases) {
    Outcome outcome = relaxc_tool({"run", RELAXC_SOURCE_DIR "/examples/digits/digits.onnx", "--plugin", kBad}, mistake);
    INFO(mistake << ": " << outcome.err);
    CHECK(outcome.exit_code == 1);
    CHECK(contains(outcome.err, message));
    if (std::string(mistake) != "onnx") CHECK(contains(outcome.err, kBad));
  }
}

TEST_CASE("a pass of a plug-in that fails is named with its plug-in and a reproducer", "[plugin]") {
  test::Folder folder("plugin");
  std::string module = folder.write("gelu.py", kGelu);
  Outcome refused = relaxc_tool({"run", module, "--plugin", kBad}, "refuse");
  CHECK(contains(refused.err, fmt::format("error: no good\n  note: this is an error of pass 'mine' of {}", kBad)));
  for (const char* mistake : {"crash", "crash at run time", "crash oddly", "invalid"}) {
    Outcome outcome = relaxc_tool({"run", module, "--plugin", kBad, "--dump-dir", folder.path.string()}, mistake);
    INFO(outcome.err);
    CHECK(outcome.exit_code == 1);
    CHECK(contains(outcome.err, fmt::format("pass 'mine' of {}", kBad)));
    CHECK(contains(outcome.err, fmt::format("relaxc opt {}/relaxc-mine.test --passes=mine --plugin {}",
                                            folder.path.string(), kBad)));
    CHECK(contains(outcome.err, "a bug of relaxc or of a plug-in"));
    std::string reproducer = (folder.path / "relaxc-mine.test").string();
    outcome =
        relaxc_tool({"opt", reproducer, "--passes=mine", "--plugin", kBad, "--dump-dir", folder.at("again")}, mistake);
    CHECK(outcome.exit_code == 1);
  }
}

TEST_CASE("a host program adds rows, whose results are not mixed with those of other tables", "[plugin]") {
  Diagnostics diagnostics;
  IRModule module = parse_module(kGelu, "gelu.py", op_table(), diagnostics);
  Tensor x = Tensor::empty({1, 3}, kFloat32);
  for (int i = 0; i < 3; ++i) x.set_double(i, i);
  auto first_with = [&](std::optional<double> number) {
    CompileSettings settings;
    if (number) {
      auto tables = std::make_shared<Tables>();
      auto pass = [=](const std::string&, const PrimFuncRef& program, const PassContext&) {
        return cast<PrimFunc>(rewrite(static_cast<const Expr&>(program), [&](const Ref<Call>& call) {
          bool is_exp = op_name(call) == "tir.exp";
          return is_exp ? std::optional<Expr>(float_imm(*number, dtype_of(call))) : std::nullopt;
        }));
      };
      tables->add(Pass{.name = "constant_exp", .doc = "exp is a number", .on_program = pass},
                  {{.pipeline = "lower_kernels", .before = "lower_blocks"}});
      CHECK(tables->origin(Tables::Kind::kPass, "constant_exp") == "this program");
      settings.tables = tables;
    }
    return Session(compile(module, settings).load()).run({x})[0].as_double(0);
  };
  CHECK(first_with(std::nullopt) == 1);
  CHECK(first_with(5) == 5);
  CHECK(first_with(7) == 7);
  CHECK(first_with(std::nullopt) == 1);
}

TEST_CASE("a rule and a pipeline of a host program take part; S.use finds the rule", "[plugin]") {
  auto tables = std::make_shared<Tables>();
  tables->add_schedules(
      "@S.rule(\"exp\")\ndef mine(sch):\n    b = sch.get_block(\"exp\")\n"
      "    sch.unroll(sch.get_loops(b)[-1])\n",
      "rules.py");
  tables->add(Pipeline{"mine_only", "graph to kernels", {"simplify", "kernels"}});
  tables->replace("simplify", {"spread_tuples", "check_dims"});
  CompileSettings settings;
  settings.tables = tables;
  settings.passes = "mine_only";
  std::vector<const Pass*> passes = passes_of(settings, Target{});
  CHECK(passes.at(0) == tables->find_pass("spread_tuples"));
  CHECK(passes.at(1) == tables->find_pass("check_dims"));
  CHECK(passes.at(2) == parse_passes("kernels", settings).at(0));
  std::vector<std::string> rules;
  settings.scheduled = [&](const ScheduleRule& rule, const Schedule&, const Decisions&) { rules.push_back(rule.name); };
  Diagnostics diagnostics;
  IRModule module = parse_module(kGelu, "gelu.py", tables->ops(), diagnostics);
  CHECK_NOTHROW(run_pipeline(module, settings));
  CHECK(std::ranges::count(rules, "mine") == 1);
  settings.schedules = read_schedule_rules("S.use(\"mine\", op=\"exp\")\n", "use.py");
  CHECK_NOTHROW(pass_context(settings));
  settings.schedules = read_schedule_rules("S.use(\"other\", op=\"exp\")\n", "use.py");
  CHECK_THROWS_WITH(pass_context(settings), Catch::Contains("there is no rule 'other'") && Catch::Contains("mine"));
}
