// Expects: any module. Guarantees: a private tensor program is not structurally equal to another program, except
// for programs that a user's rule names, and with check_bounds. It runs before schedule, which then works once for all
// equal layers of a network. Equal programs that are public keep their names; the runner and the code generator handle
// them once.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <set>

#include "ir/attr_names.h"
#include "ir/visit.h"
#include "passes/tables.h"
#include "support/lists.h"
#include "tir/analysis/annotations.h"

namespace relaxc {

namespace {

bool is_public(const PrimFuncRef& program) { return program->attrs.has(attr_names::kGlobalSymbol); }

bool has_annotation_of_buffers(const PrimFuncRef& program) {
  auto names_buffers = [](const auto& entry) {
    const Annotation* row = find_annotation(entry.first);
    return row && (row->value == AnnotationValue::kStrings || row->value == AnnotationValue::kStringsAndInts);
  };
  return any_node(program->body, [&](const NodeRef& node) {
    return node.is<For>() && std::ranges::any_of(node.as<For>()->annotations, names_buffers);
  });
}

// Returns the names that a schedule or an annotation can mention.
std::string names_in(const PrimFuncRef& program) {
  std::string names;
  for (const VarRef& param : program->params) names += param->name + "\n";
  walk_nodes(program->body, [&](const NodeRef& node) {
    if (const Var* var = node.as<Var>()) names += var->name + "\n";
    if (const Block* block = node.as<Block>()) names += block->name + "\n";
    if (const For* loop = node.as<For>()) names += loop->var->name + "\n";
    return true;
  });
  return names;
}

}  // namespace

ProgramMap programs_of(const IRModule& module) {
  ProgramMap result;
  for (const auto& [name, function] : module.functions) {
    if (auto program = try_cast<PrimFunc>(function)) result.emplace(name, *program);
  }
  return result;
}

ProgramKey program_keys(const std::string& circumstances) {
  uint64_t seed = XXH3_64bits(circumstances.data(), circumstances.size());
  return [seed](const std::string&, const PrimFuncRef& program) -> std::optional<uint64_t> {
    uint64_t hash = structural_hash(without_symbol(program));
    return XXH3_64bits_withSeed(&hash, sizeof(hash), seed);
  };
}

std::string circumstances_of(const PassContext& context, const std::string& passes) {
  // A setting that is added has to be named here, and in the text if passes over programs read it; codegen/options.cc
  // has a row for it, or its hash is added in codegen/artifact_cache.cc if it changes the result. The graph's passes
  // have applied `kernels`, `winograd_error`, `precision`, `fast_int8`, `gather` and `function`, and the code generator
  // has `opt_level` in a key of its own.
  const auto& [jobs, opt_level, reuse, store, schedules, report, progress, decided, scheduled, kernels, claimed,
               winograd_error, precision, fast_int8, gather, check_bounds, function, tables] =
      static_cast<const PassSettings&>(context);
  std::string plugins = tables ? tables->identity().value_or("") : "";
  std::string text = fmt::format("{} {} {} {}", print_target(context.target), check_bounds, passes, plugins);
  for (const ScheduleRule& rule : schedules) {
    if (rule.function.empty())
      text += fmt::format(" {} {} {} {}", rule.name, rule.op, rule.uses, to_string(AttrValue(rule.given)));
  }
  return text;
}

ProgramKey keys_in(const PassContext& context, const std::string& passes) {
  std::set<std::string> named;  // by a user's rule
  for (const ScheduleRule& rule : context.schedules) named.insert(rule.function);
  bool has_rules = !context.schedules.empty() || (context.tables && !context.tables->rules().rules.empty());
  return [key = program_keys(circumstances_of(context, passes)), named, has_rules](
             const std::string& name, const PrimFuncRef& program) -> std::optional<uint64_t> {
    if (named.contains(name)) return std::nullopt;
    uint64_t hash = *key(name, program);
    if (!has_rules && !has_annotation_of_buffers(program)) return hash;
    std::string names = names_in(program);
    return XXH3_64bits_withSeed(names.data(), names.size(), hash);
  };
}

std::map<std::string, std::string> equal_programs(const ProgramMap& programs, const ProgramKey& key) {
  std::vector<std::string> names;
  for (const auto& [name, program] : programs) names.push_back(name);
  std::ranges::stable_partition(names, is_public, [&](const std::string& name) { return programs.at(name); });
  std::unordered_map<uint64_t, std::vector<std::pair<std::string, PrimFuncRef>>> known;
  std::map<std::string, std::string> result;
  for (const std::string& name : names) {
    PrimFuncRef program = without_symbol(programs.at(name));
    std::optional<uint64_t> hash = key(name, program);
    if (!hash) continue;
    auto& candidates = known[*hash];
    auto equal = std::ranges::find_if(candidates, [&](const auto& c) { return structural_equal(program, c.second); });
    if (equal == candidates.end()) {
      candidates.emplace_back(name, program);
    } else {
      result.emplace(name, equal->first);
    }
  }
  return result;
}

std::map<std::string, std::string> equal_public_programs(ProgramMap programs, const ProgramKey& key) {
  std::erase_if(programs, [](const auto& entry) { return !is_public(entry.second); });
  return equal_programs(programs, key);
}

PrimFuncRef without_symbol(const PrimFuncRef& program) {
  if (!is_public(program)) return program;
  PrimFunc copy = *program;
  copy.attrs = copy.attrs.without(attr_names::kGlobalSymbol);
  return make_prim_func(std::move(copy), program.span());
}

PrimFuncRef with_symbol_of(const PrimFuncRef& program, const PrimFuncRef& other) {
  PrimFunc copy = *with_fresh_variables(program);
  copy.attrs = copy.attrs.without(attr_names::kGlobalSymbol);
  if (is_public(other)) copy.attrs.set(attr_names::kGlobalSymbol, *other->attrs.find(attr_names::kGlobalSymbol));
  return make_prim_func(std::move(copy), other.span());
}

IRModule merge_kernels(IRModule module, PassContext& context) {
  if (context.check_bounds) return module;  // its errors name programs and lines
  ProgramMap programs = programs_of(module);
  std::unordered_map<std::string, Expr> kept;  // the kernel that stands for a merged one
  for (const auto& [name, first] : equal_programs(programs, keys_in(context))) {
    if (!is_public(programs.at(name))) kept.emplace(name, global_var(first, programs.at(first).type()));
  }
  if (kept.empty()) return module;
  std::erase_if(module.functions, [&](const auto& entry) { return kept.contains(entry.first); });
  for (auto& [name, function] : module.functions) {
    if (!function.is<Function>()) continue;
    function = rewrite(function, [&](const Ref<GlobalVar>& global) { return copy_value(kept, global->name); });
  }
  return module;
}

}  // namespace relaxc
