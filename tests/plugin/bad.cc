// A plug-in with a mistake, which RELAXC_BAD_PLUGIN names: each makes an entry fail or adds a row that is refused.
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "passes/tables.h"
#include "support/diagnostic.h"

using namespace relaxc;

namespace {

IRModule keep(IRModule module, PassContext&) { return module; }
IRModule crash(IRModule, PassContext&) { return throw std::out_of_range("the pass lost its way"), IRModule(); }
struct Odd {};
IRModule crash_at_run_time(IRModule, PassContext&) {
  return throw std::runtime_error("the pass lost its way"), IRModule();
}
IRModule crash_oddly(IRModule, PassContext&) { return throw Odd(), IRModule(); }
IRModule refuse(IRModule, PassContext&) { fail({}, "no good"); }
IRModule break_it(IRModule module, PassContext&) {
  for (auto& [name, function] : module.functions) {
    if (auto graph = try_cast<Function>(function)) {
      Function copy = **graph;
      copy.params.clear();
      function = make_function(std::move(copy), graph->span());
    }
  }
  return module;
}
Pass pass(const std::string& name) { return {.name = name, .doc = "a pass", .on_module = keep}; }
Type infer(const OpCall& op) { return op.type(0); }

struct Mistake {
  const char* name;
  void (*make)(Tables& tables);
};
const Mistake kMistakes[] = {
    {"throw", [](Tables&) { throw std::runtime_error("no licence"); }},
    {"throw number", [](Tables&) { throw 1; }},
    {"pass", [](Tables& tables) { tables.add(pass("fuse")); }},
    {"pipeline", [](Tables& tables) { tables.add(pass("simplify")); }},
    {"twice", [](Tables& tables) { tables.add(pass("mine")), tables.add(pass("mine")); }},
    {"place", [](Tables& tables) { tables.add(pass("mine"), {{.pipeline = "simplify", .after = "fuze"}}); }},
    {"no pipeline", [](Tables& tables) { tables.add(pass("mine"), {{.pipeline = "simplest"}}); }},
    {"both", [](Tables& tables) { tables.add(pass("mine"), {{"simplify", "fold_constants", "fold_constants"}}); }},
    {"no function", [](Tables& tables) { tables.add(Pass{.name = "mine", .doc = "nothing"}); }},
    {"list", [](Tables& tables) { tables.add(Pipeline{"mine", "a list", {"fuse", "fuze"}}); }},
    {"cycle", [](Tables& tables) { tables.replace("lower", {"default"}); }},
    {"operator", [](Tables& tables) { tables.add(OpRow{.name = "relax.add", .infer = infer}); }},
    {"operator name", [](Tables& tables) { tables.add(OpRow{.name = "me.add", .infer = infer}); }},
    {"operator infer", [](Tables& tables) { tables.add(OpRow{.name = "relax.me.add"}); }},
    {"onnx", [](Tables& tables) { tables.add(OpRow{.name = "relax.me.abs", .onnx = "Abs", .infer = infer}); }},
    {"converter", [](Tables& tables) { tables.add(OnnxConverter{.name = "com.me::Mine"}); }},
    {"rule",
     [](Tables& tables) { tables.add_schedules("@S.rule(\"matmul\")\ndef default(sch):\n    pass\n", "r.py"); }},
    {"rule of a function",
     [](Tables& tables) { tables.add_schedules("@S.schedule(\"f\")\ndef mine(sch):\n    pass\n", "r.py"); }},
    {"use", [](Tables& tables) { tables.add_schedules("S.use(\"contraction\", rows=4)\n", "r.py"); }},
    {"crash",
     [](Tables& tables) {
       tables.add(Pass{.name = "mine", .doc = "crashes", .on_module = crash}, {{.pipeline = "simplify"}});
     }},
    {"crash at run time",
     [](Tables& tables) {
       tables.add(Pass{.name = "mine", .doc = "crashes", .on_module = crash_at_run_time}, {{.pipeline = "simplify"}});
     }},
    {"crash oddly",
     [](Tables& tables) {
       tables.add(Pass{.name = "mine", .doc = "crashes", .on_module = crash_oddly}, {{.pipeline = "simplify"}});
     }},
    {"refuse",
     [](Tables& tables) {
       tables.add(Pass{.name = "mine", .doc = "refuses", .on_module = refuse}, {{.pipeline = "simplify"}});
     }},
    {"invalid",
     [](Tables& tables) {
       tables.add(Pass{.name = "mine", .doc = "is wrong", .on_module = break_it}, {{.pipeline = "simplify"}});
     }},
};

}  // namespace

RELAXC_PLUGIN(tables) {
  const char* wanted = std::getenv("RELAXC_BAD_PLUGIN");
  for (const Mistake& mistake : kMistakes) {
    if (wanted && std::string(wanted) == mistake.name) return mistake.make(tables);
  }
  throw std::runtime_error("RELAXC_BAD_PLUGIN names no mistake");
}
