#include "passes/stored_programs.h"

#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "ir/visit.h"
#include "passes/pass.h"
#include "vm/content_hash.h"

namespace relaxc {

static constexpr const char* kStoredName = "program";

static std::string text_in_store(const PrimFuncRef& program) {
  return print_module({{{kStoredName, without_symbol(program)}}, {}, {}});
}

std::optional<std::string> key_in_store(const std::string& circumstances, const PrimFuncRef& program) {
  const bool has_constants = any_node(program->body, [](const NodeRef& node) { return node.is<Constant>(); });
  if (has_constants) return std::nullopt;
  return vm::ContentHash().add(circumstances).add(text_in_store(program)).digest();
}

std::optional<PrimFuncRef> find_program(ResultStore& store, const std::string& key, const OpTable& ops) {
  const std::optional<std::string> text = store.find(key);
  if (!text) return std::nullopt;
  Diagnostics diagnostics;
  const IRModule module = parse_module(*text, kStoredName, ops, diagnostics);
  if (diagnostics.has_errors() || !module.find(kStoredName)) return std::nullopt;
  return module.prim_func(kStoredName);
}

void keep_program(ResultStore& store, const std::string& key, const PrimFuncRef& program) {
  store.keep(key, text_in_store(program));
}

}  // namespace relaxc
