#include "tir/schedule/tuning_database.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "ir/text/syntax.h"
#include "ir/visit.h"
#include "support/base64.h"
#include "support/joined.h"
#include "support/printable.h"
#include "tir/primitives/get_block.h"
#include "tir/schedule/schedule.h"
#include "tir/schedule/script.h"

namespace relaxc {

namespace {

struct BlockShape {
  std::string name;
  std::string axes;  // "S64 R3"
};
// What records and programs are compared by.
struct Structure {
  std::optional<std::vector<std::string>> params;  // "float32[1, 64]", as in the record
  std::optional<std::vector<BlockShape>> blocks;   // without the root
};

std::string axes_text(const std::vector<std::pair<char, std::string>>& axes) {
  return joined(axes, [](const auto& axis) { return axis.first + axis.second; }, " ");
}
std::string param_text(std::string_view dtype, const std::vector<std::string>& shape) {
  return fmt::format("{}[{}]", dtype, joined(shape));
}

// Names symbolic dims in the order in which params have them: n0, n1. Programs that differ in these names only are
// alike.
class DimNames {
 public:
  std::string operator()(const Expr& dim) {
    walk(dim, [&](const Ref<Var>& var) {
      if (!names_.contains(var.get()))
        names_.emplace(var.get(), make_var(fmt::format("n{}", names_.size()), var.type()));
    });
    Expr named = simplify(substitute(dim, names_));
    auto number = as_int(named);
    return number ? std::to_string(*number) : print_expr(cast_to(named, kInt64));
  }

 private:
  VarMap names_;
};

struct ParamShape {
  std::string dtype;
  std::vector<std::string> shape;
};
// Returns nullopt for a program with params that are not buffers.
std::optional<std::vector<ParamShape>> param_shapes(const PrimFunc& program, DimNames& dims) {
  std::vector<ParamShape> result;
  for (const VarRef& param : program.params) {
    const BufferType* type = param.type().as<BufferType>();
    if (!type) return std::nullopt;
    result.push_back({to_string(type->dtype), map_each(type->shape, [&](const Expr& dim) { return dims(dim); })});
  }
  return result;
}
std::optional<std::vector<ParamShape>> param_shapes(const PrimFunc& program) {
  DimNames dims;
  return param_shapes(program, dims);
}

std::vector<BlockShape> blocks_of(const PrimFunc& program, DimNames& dims) {
  std::vector<BlockShape> result;
  walk(program.body, [&](const Block& block) {
    if (is_root(block)) return;
    std::vector<std::pair<char, std::string>> axes;
    for (const IterVar& axis : block.iter_vars) {
      char letter = info(axis.kind).letter;
      axes.emplace_back(letter ? letter : 'O', dims(axis.domain.extent));
    }
    result.push_back({block.name, axes_text(axes)});
  });
  return result;
}

Structure structure_of(const PrimFunc& program) {
  Structure result;
  DimNames dims;
  if (auto shapes = param_shapes(program, dims)) {
    result.params = map_each(*shapes, [](const ParamShape& param) { return param_text(param.dtype, param.shape); });
    result.blocks = blocks_of(program, dims);
  }
  return result;
}

// ---- Workloads

// TVM's graph of nodes, which refer to each other by number. Older versions write numbers as texts, and later ones
// members under "data".
class NodeGraph {
 public:
  explicit NodeGraph(const Attrs& top) {
    if (const AttrValue* nodes = top.find("nodes"); nodes && nodes->as<AttrList>()) nodes_ = *nodes->as<AttrList>();
  }

  // Returns the blocks of the first tensor program, outer ones first; nullopt if there is none.
  std::optional<std::vector<BlockShape>> blocks() {
    for (const AttrValue& node : nodes_) {
      if (kind_of(node) != "tir.PrimFunc") continue;
      std::vector<BlockShape> result;
      add_blocks(member(node, "body"), result, 0);
      return is_known_ ? std::optional(result) : std::nullopt;
    }
    return std::nullopt;
  }

 private:
  static const AttrValue& none() {
    static const AttrValue kNone;
    return kNone;
  }
  static const AttrValue& entry(const AttrValue& dict, std::string_view key) {
    const Attrs* entries = dict.as<Attrs>();
    const AttrValue* value = entries ? entries->find(key) : nullptr;
    return value ? *value : none();
  }
  static std::string kind_of(const AttrValue& node) {
    const AttrValue& old = entry(node, "type_key");
    const std::string* text = (old.is_none() ? entry(node, "type") : old).as<std::string>();
    return text ? *text : "";
  }
  static std::optional<int64_t> number(const AttrValue& value) {
    if (const int64_t* known = value.as<int64_t>()) return *known;
    const std::string* digits = value.as<std::string>();
    return digits ? text::whole_number(*digits) : std::nullopt;
  }
  static const AttrValue& field(const AttrValue& node, std::string_view name) {
    const AttrValue& old = entry(node, "attrs");
    return entry(old.is_none() ? entry(node, "data") : old, name);
  }
  const AttrValue& at(const AttrValue& reference) const {
    auto index = number(reference);
    bool is_there = index && *index >= 0 && *index < std::ssize(nodes_);
    return is_there ? nodes_[static_cast<size_t>(*index)] : none();
  }
  const AttrValue& member(const AttrValue& node, std::string_view name) const { return at(field(node, name)); }
  AttrList items(const AttrValue& array) const {
    const AttrList* list = entry(array, "data").as<AttrList>();
    AttrList result;
    for (const AttrValue& item : list ? *list : AttrList()) result.push_back(at(item));
    return result;
  }

  void add_blocks(const AttrValue& node, std::vector<BlockShape>& result, int depth) {
    constexpr int kDeepest = 200;
    is_known_ = is_known_ && depth < kDeepest;
    if (node.is_none() || !is_known_) return;
    std::string kind = kind_of(node);
    if (kind == "tir.Block" || kind == "tir.SBlock") add_block(node, result);
    for (const char* name : {"block", "body", "then_case", "else_case"})
      add_blocks(member(node, name), result, depth + 1);
    if (kind != "tir.SeqStmt") return;
    for (const AttrValue& item : items(member(node, "seq"))) add_blocks(item, result, depth + 1);
  }

  void add_block(const AttrValue& block, std::vector<BlockShape>& result) {
    const AttrValue& given = field(block, "name_hint");
    const std::string* name = (given.as<std::string>() ? given : entry(at(given), "data")).as<std::string>();
    is_known_ = is_known_ && name;
    if (!name || *name == kRootBlock) return;
    std::vector<std::pair<char, std::string>> axes;
    for (const AttrValue& axis : items(member(block, "iter_vars"))) {
      // The kinds of TVM's IterVarType that blocks have.
      constexpr std::string_view kLetters = "SOROO";
      auto type = number(field(axis, "iter_type"));
      auto extent = number(field(member(member(axis, "dom"), "extent"), "value"));
      is_known_ = is_known_ && type && extent && *type >= 0 && *type < std::ssize(kLetters);
      if (!is_known_) return;
      axes.emplace_back(kLetters[static_cast<size_t>(*type)], std::to_string(*extent));
    }
    result.push_back({*name, axes_text(axes)});
  }

  AttrList nodes_;
  bool is_known_ = true;
};

// Returns what is known about a workload, which is a graph of nodes or a text; nothing if it cannot be read.
Structure structure_of_workload(const std::string& encoded) {
  std::optional<std::string> text = from_base64(encoded);
  if (!text) return {};
  try {
    if (text->starts_with("{")) {
      AttrValue graph = read_json(*text);
      return {std::nullopt, graph.as<Attrs>() ? NodeGraph(*graph.as<Attrs>()).blocks() : std::nullopt};
    }
    Diagnostics diagnostics;
    IRModule module = parse_module(*text, "workload", OpTable({}), diagnostics);
    if (!diagnostics.has_errors() && module.functions.size() == 1)
      return structure_of(*module.functions.begin()->second.as<PrimFunc>());
  } catch (const CompileError&) {  // of another version
  }
  return {};
}

// ---- Records

struct TuningRecord {
  int64_t line;
  AttrValue trace;
  double seconds;
  Structure structure;
  std::string other_target = {};  // for which it is, if not for a CPU
};

std::vector<std::pair<int64_t, AttrValue>> json_lines(const TuningFile& file) {
  std::vector<std::pair<int64_t, AttrValue>> result;
  int64_t number = 0;
  for (size_t at = 0; at < file.text.size();) {
    size_t end = std::min(file.text.find('\n', at), file.text.size());
    std::string_view line = std::string_view(file.text).substr(at, end - at);
    at = end + 1;
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    try {
      result.emplace_back(number, read_json(line));
    } catch (const CompileError& error) {
      fail({}, "{}:{}: the line is not JSON: {}", file.name, number, error.diagnostics().at(0).message);
    }
  }
  return result;
}

const AttrList* list_of(const AttrValue& value, size_t size) {
  const AttrList* list = value.as<AttrList>();
  return list && list->size() == size ? list : nullptr;
}

// Returns the mean of the measured runs; records without one come last.
double mean_seconds(const AttrValue& runs) {
  std::vector<double> seconds;
  if (runs.is_none() || !from_attr(runs, seconds) || seconds.empty()) return std::numeric_limits<double>::infinity();
  return std::accumulate(seconds.begin(), seconds.end(), 0.0) / static_cast<double>(seconds.size());
}

// Returns the params' texts for [["TENSOR", dtype, shape], ...], or nullopt for null and other kinds. A symbolic dim is
// a string.
std::optional<std::vector<std::string>> params_of(const AttrValue& arguments) {
  const AttrList* list = arguments.as<AttrList>();
  std::vector<std::string> result;
  for (const AttrValue& argument : list ? *list : AttrList()) {
    const AttrList* parts = list_of(argument, 3);
    const std::string* dtype = parts ? (*parts)[1].as<std::string>() : nullptr;
    const AttrList* dims = parts ? (*parts)[2].as<AttrList>() : nullptr;
    if (!dtype || !dims) return std::nullopt;
    std::vector<std::string> shape;
    for (const AttrValue& dim : *dims) {
      const int64_t* number = dim.as<int64_t>();
      const std::string* symbol = dim.as<std::string>();
      if (!number && !symbol) return std::nullopt;
      shape.push_back(number ? std::to_string(*number) : *symbol);
    }
    result.push_back(param_text(*dtype, shape));
  }
  return list ? std::optional(result) : std::nullopt;
}

// Returns the kind of the target if it is not a CPU, whose schedules bind threads; else "".
std::string other_target(const AttrValue& target) {
  const Attrs* entries = target.as<Attrs>();
  const AttrValue* kind = entries ? entries->find("kind") : target.as<std::string>() ? &target : nullptr;
  const std::string* name = kind ? kind->as<std::string>() : nullptr;
  return !name || name->starts_with("llvm") || *name == "c" ? "" : name->substr(0, name->find(' '));
}

std::vector<TuningRecord> read_records(const TuningFile& records, const TuningFile& workloads) {
  std::vector<Structure> structures;
  for (const auto& [line, value] : json_lines(workloads)) {
    const AttrList* parts = list_of(value, 2);
    const std::string* program = parts ? (*parts)[1].as<std::string>() : nullptr;
    if (!program) fail({}, "{}:{}: expected a workload, [hash, program in base64]", workloads.name, line);
    structures.push_back(structure_of_workload(*program));
  }
  std::vector<TuningRecord> result;
  for (const auto& [line, value] : json_lines(records)) {
    const AttrList* pair = list_of(value, 2);
    const AttrList* parts = pair ? list_of((*pair)[1], 4) : nullptr;
    const int64_t* index = pair ? (*pair)[0].as<int64_t>() : nullptr;
    if (!parts || !index || *index < 0)
      fail({}, "{}:{}: expected a record, [workload, [trace, seconds, target, arguments]]", records.name, line);
    if (!workloads.text.empty() && *index >= std::ssize(structures))
      fail({}, "{}:{}: the record is of workload {}; '{}' has {}", records.name, line, *index, workloads.name,
           structures.size());
    Structure structure = structures.empty() ? Structure() : structures[static_cast<size_t>(*index)];
    if (auto params = params_of((*parts)[3])) structure.params = params;
    if (!structure.params && !structure.blocks) continue;  // nothing says what it is for
    result.push_back({line, (*parts)[0], mean_seconds((*parts)[1]), structure, other_target((*parts)[2])});
  }
  std::ranges::stable_sort(result, {}, &TuningRecord::seconds);
  return result;
}

bool is_of(const Structure& record, const Structure& program) {
  if (!program.params || (record.params && *record.params != *program.params)) return false;
  return !record.blocks ||
         std::ranges::equal(*record.blocks, *program.blocks, {}, &BlockShape::axes, &BlockShape::axes);
}

bool matches(const TuningRecord& record, const Structure& program) {
  return record.other_target.empty() && is_of(record.structure, program);
}

// Returns the record's trace with the program's names of the blocks.
Trace trace_for(const TuningRecord& record, const Structure& program) {
  Trace trace = Trace::from_value(record.trace);
  if (!record.structure.blocks) return trace;
  for (TraceStep& step : trace.steps) {
    const std::string* name = step.arguments.empty() ? nullptr : step.arguments[0].as<std::string>();
    if (!name || step.primitive->name != GetBlock::kInfo.name) continue;
    const std::vector<BlockShape>& blocks = *record.structure.blocks;
    auto found = std::ranges::find(blocks, *name, &BlockShape::name);
    if (found != blocks.end()) step.arguments[0] = program.blocks->at(static_cast<size_t>(found - blocks.begin())).name;
  }
  return trace;
}

// Applies the first record that fits.
void apply_records(Schedule& schedule, const std::vector<TuningRecord>& records, const std::string& file) {
  PrimFuncRef program = schedule.function();
  Structure structure = structure_of(*program);
  std::string why;
  for (const TuningRecord& record : records) {
    if (!matches(record, structure)) continue;
    try {
      Trace trace = trace_for(record, structure);
      Schedule trial(program, {.show_program = false});
      trace.replay(trial);
      trace.replay(schedule);
      return;
    } catch (const CompileError& error) {
      if (why.empty()) why = fmt::format("{}:{}: {}", file, record.line, to_string(error.diagnostics().at(0)));
    }
  }
  fail_to_fit({}, "no record of this structure can be applied; the fastest: {}", why);
}

}  // namespace

ScheduleRule tuned_rule(const TuningFile& records, const TuningFile& workloads) {
  auto all = std::make_shared<const std::vector<TuningRecord>>(read_records(records, workloads));
  ScheduleRule rule{.name = "tuning records"};
  rule.doc = "programs that a record of MetaSchedule was measured on";
  rule.fits = [all](const PrimFuncRef& program, const Target&, Decisions&) -> std::optional<std::string> {
    Structure structure = structure_of(*program);
    if (std::ranges::any_of(*all, [&](const TuningRecord& one) { return matches(one, structure); }))
      return std::nullopt;
    if (!structure.params) return "it has params that are not buffers";
    for (const TuningRecord& one : *all) {
      if (is_of(one.structure, structure))
        return fmt::format("the record of line {} is left out, because it is for '{}'", one.line, one.other_target);
    }
    return fmt::format("no record is of params {} and blocks {}", joined(*structure.params),
                       joined(*structure.blocks, [](const BlockShape& one) { return one.name + " " + one.axes; }));
  };
  rule.apply = [all, file = records.name](Schedule& schedule, const Target&, Decisions&) {
    apply_records(schedule, *all, file);
  };
  return rule;
}

std::string print_workloads(const std::vector<TunedProgram>& programs) {
  std::string result;
  for (const TunedProgram& one : programs) {
    if (param_shapes(*one.program))
      result += fmt::format("[\"{}\", \"{}\"]\n", structural_hash(one.program),
                            to_base64(print_function(one.name, one.program)));
  }
  return result;
}

std::string print_tuning_records(const std::vector<TunedProgram>& programs, const Target& target) {
  std::string result;
  int64_t index = 0;
  for (const TunedProgram& one : programs) {
    auto shapes = param_shapes(*one.program);
    if (!shapes) continue;
    auto dim_json = [](const std::string& dim) { return text::whole_number(dim) ? dim : json_string(dim); };
    std::string arguments = joined(*shapes, [&](const ParamShape& param) {
      return fmt::format("[\"TENSOR\", {}, [{}]]", json_string(param.dtype), joined(param.shape, dim_json));
    });
    result += fmt::format("[{}, [{}, null, {{\"kind\": \"llvm\", \"mcpu\": {}}}, [{}]]]\n", index++, one.trace.json(),
                          json_string(target.cpu), arguments);
  }
  return result;
}

}  // namespace relaxc
