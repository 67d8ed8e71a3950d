#include "ir/text/names.h"

#include <algorithm>

#include "ir/text/lexer.h"

namespace relaxc::text {

namespace {

constexpr std::string_view kKeywords[] = {
    "and",      "as",     "assert",  "async", "await", "break",  "class", "continue", "def",  "del",  "elif",
    "else",     "except", "finally", "for",   "from",  "global", "if",    "import",   "in",   "is",   "lambda",
    "nonlocal", "not",    "or",      "pass",  "raise", "return", "try",   "while",    "with", "yield"};
// Names that the parser predefines, and Python's constants.
constexpr std::string_view kPredefined[] = {"False", "I",     "Module", "None", "R",   "T",    "True",       "_",
                                            "bool",  "cls",   "float",  "int",  "len", "list", "match_cast", "metadata",
                                            "range", "relax", "slice",  "str",  "tir", "tirx", "tuple",      "tvm"};

// The files of tvm.relax and tvm.relax.op, which are modules of Python: relax.op.linear_algebra.matmul is
// relax.op.matmul, relax.block_builder.BlockBuilder is relax.BlockBuilder.
constexpr std::string_view kPythonFiles[] = {"base",     "binary",      "block_builder",  "create",     "datatype",
                                             "expr",     "index",       "linear_algebra", "manipulate", "mask",
                                             "op_attrs", "qdq",         "sampling",       "search",     "set",
                                             "sorting",  "statistical", "struct_info",    "ternary",    "unary"};
// The functions of te that stood in tvm until 2020: tvm.compute.
constexpr std::string_view kEarlyTe[] = {"all",         "any",   "comm_reducer", "compute", "const",  "exp",
                                         "extern",      "floor", "if_then_else", "log",     "max",    "min",
                                         "placeholder", "power", "reduce_axis",  "scan",    "select", "sigmoid",
                                         "size_var",    "sqrt",  "sum",          "tanh",    "var"};

// The operators of relax.op.nn that stood in relax.op in 2022: relax.op.relu.
constexpr std::string_view kEarlyNn[] = {
    "adaptive_avg_pool2d", "avg_pool2d",  "batch_norm", "conv2d", "dropout", "gelu",   "layer_norm",
    "leakyrelu",           "log_softmax", "max_pool2d", "relu",   "silu",    "softmax"};

bool is_reserved(std::string_view word) {
  return is_keyword(word) || std::ranges::find(kPredefined, word) != std::end(kPredefined);
}

}  // namespace

// The length is tested first, since most names are not keywords.
bool is_keyword(std::string_view word) {
  return word.size() >= 2 && word.size() <= 8 && std::ranges::find(kKeywords, word) != std::end(kKeywords);
}

std::string path_of_operator(std::string_view path) {
  path = without_python_file(path);
  return fmt::format("{}{}", std::ranges::count(kEarlyNn, path) > 0 ? "nn." : "", path);
}

std::string_view without_python_file(std::string_view path) {
  const size_t dot = path.find('.');
  const bool is_file = dot != path.npos && std::ranges::count(kPythonFiles, path.substr(0, dot)) > 0;
  return is_file ? path.substr(dot + 1) : path;
}

bool is_early_te(std::string_view name) { return std::ranges::find(kEarlyTe, name) != std::end(kEarlyTe); }

std::string identifier(std::string_view hint) {
  std::string result;
  for (char c : hint) {
    bool keep = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    result += keep ? c : '_';
  }
  if (result.empty()) return "v";
  if (result[0] >= '0' && result[0] <= '9') result.insert(0, "v");
  return result;
}

const std::string* NameTable::find(const VarRef& var) const { return find_value(names_, var.get()); }

std::string NameTable::reserve(std::string_view hint) {
  std::string base = identifier(hint), name = base;
  if (is_reserved(base) || used_.contains(base)) {
    int64_t& number = next_.try_emplace(base, 1).first->second;
    do {
      name = base + "_" + std::to_string(number++);
    } while (used_.contains(name));
  }
  used_.insert(name);
  scopes_.back().names.push_back(name);
  return name;
}

const std::string& NameTable::define(const VarRef& var) {
  scopes_.back().vars.push_back(var);
  return names_.insert_or_assign(var.get(), reserve(var->name)).first->second;
}
void NameTable::alias(const VarRef& var, std::string name) {
  scopes_.back().vars.push_back(var);
  names_.insert_or_assign(var.get(), std::move(name));
}

void NameTable::leave() {
  for (const VarRef& var : scopes_.back().vars) names_.erase(var.get());
  for (const std::string& name : scopes_.back().names) {
    used_.erase(name);
    // A freed "x_3" makes 3 the next number to try for "x".
    size_t bar = name.rfind('_');
    if (bar == std::string::npos) continue;
    std::optional<int64_t> number = whole_number(std::string_view(name).substr(bar + 1));
    auto it = next_.find(name.substr(0, bar));
    if (number >= 1 && it != next_.end()) it->second = std::min(it->second, *number);
  }
  scopes_.pop_back();
}

// ---- Names in text that is read

void Scopes::leave() {
  for (Stacks::value_type* named : scopes_.back()) named->second.pop_back();
  scopes_.pop_back();
  // The names of a function are erased after it, so that the next one does not pay for them.
  if (scopes_.size() == 1) std::erase_if(stacks_, [](const auto& named) { return named.second.empty(); });
}

void Scopes::define(std::string_view name, Entity entity, size_t depth) {
  depth = std::min(depth, scopes_.size());
  auto found = stacks_.find(name);
  if (found == stacks_.end()) found = stacks_.try_emplace(std::string(name)).first;
  std::vector<Definition>& stack = found->second;
  if (!stack.empty() && stack.back().depth == depth) {
    stack.back().entity = std::move(entity);
  } else {
    stack.push_back({depth, std::move(entity)});
    scopes_[depth - 1].push_back(&*found);
  }
}

std::map<std::string, Entity> Scopes::here() const {
  std::map<std::string, Entity> result;
  for (const Stacks::value_type* named : scopes_.back()) result.emplace(named->first, named->second.back().entity);
  return result;
}

const Entity* Scopes::find_here(std::string_view name) const {
  const std::vector<Definition>* stack = find_value(stacks_, name);
  return stack && !stack->empty() && stack->back().depth == scopes_.size() ? &stack->back().entity : nullptr;
}

const Entity* Scopes::find(std::string_view name) const {
  const std::vector<Definition>* stack = find_value(stacks_, name);
  return stack && !stack->empty() ? &stack->back().entity : nullptr;
}

std::map<std::string, const Entity*> Scopes::visible() const {
  std::map<std::string, const Entity*> result;
  for (const auto& [name, stack] : stacks_) {
    if (!stack.empty()) result.emplace(name, &stack.back().entity);
  }
  return result;
}

}  // namespace relaxc::text
