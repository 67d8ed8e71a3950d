// Names of variables in printed text: each hint becomes a Python identifier, unique among the names that are live.
// Names in text that is read, and the entities that they mean: scopes nest, and the innermost definition counts.
#pragma once
#include <unordered_map>
#include <unordered_set>

#include "ir/expr.h"

namespace relaxc::text {

// Returns whether the word is one of Python's keywords.
bool is_keyword(std::string_view word);
// Returns the path of a function in tvm.relax or tvm.relax.op without the file of Python that it stands in.
std::string_view without_python_file(std::string_view path);
// Returns the path of relax.op.PATH in R.
std::string path_of_operator(std::string_view path);
// Returns whether tvm.NAME was a function of te until 2020.
bool is_early_te(std::string_view name);
// Returns the hint with everything that an identifier cannot hold replaced by '_'.
std::string identifier(std::string_view hint);

class NameTable {
 public:
  // Returns the variable's name; null when it has none yet.
  const std::string* find(const VarRef& var) const;
  // Makes a new name for the variable: its hint, or the hint with the lowest free number.
  const std::string& define(const VarRef& var);
  // Gives the variable a name that another one has; for `_` and for branches that end in the same name.
  void alias(const VarRef& var, std::string name);
  // Makes a new name for something that is not a variable.
  std::string reserve(std::string_view hint);

  // Names defined since enter() are free again after leave().
  void enter() { scopes_.emplace_back(); }
  void leave();

 private:
  struct Scope {
    std::vector<VarRef> vars;
    std::vector<std::string> names;
  };
  std::vector<Scope> scopes_ = std::vector<Scope>(1);
  std::unordered_map<const NodeHeader*, std::string> names_;
  std::unordered_set<std::string> used_;
  std::unordered_map<std::string, int64_t> next_;  // per base name: below it every number is taken
};

// The meaning of a name. Poisoned: its definition failed, so its uses are not reported again.
struct Entity {
  std::optional<Expr> expr = {};  // absent: poisoned, or the module itself
  bool is_module = false;
  bool is_dim = false;           // a symbolic dim of the signature: `n = T.int64()` in the body means this one
  bool may_be_negative = false;  // of a dim: it is a scalar parameter, x: R.Prim(value="n"), and no tensor has it
  // Tensor programs. pointer: the name of an allocation means the pointer to it; cell: a scalar that changes, kept in a
  // buffer of one element. thread: the axis that T.env_thread named.
  enum class Form : uint8_t { kValue, kPointer, kCell, kThread } form = Form::kValue;
  std::string thread = {};
};

// One stack per name, so that a look-up costs the same however deep the scopes nest.
class Scopes {
 public:
  void enter() { scopes_.emplace_back(); }
  void leave();
  static constexpr size_t kOfFunction = 2;  // the outermost scope of a function, inside of the module's
  // Defines the name in the innermost scope, where it replaces a definition. In another scope, whose number `depth` is,
  // it must not have a meaning anywhere.
  void define(std::string_view name, Entity entity, size_t depth = SIZE_MAX);
  std::map<std::string, Entity> here() const;
  // Returns what the innermost scope itself says about the name; null when it says nothing.
  const Entity* find_here(std::string_view name) const;
  // Searches all scopes.
  const Entity* find(std::string_view name) const;
  // Returns every name that has a meaning, with the innermost one.
  std::map<std::string, const Entity*> visible() const;

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view name) const { return std::hash<std::string_view>()(name); }
  };
  struct Definition {
    size_t depth;
    Entity entity;
  };
  using Stacks = std::unordered_map<std::string, std::vector<Definition>, Hash, std::equal_to<>>;
  Stacks stacks_;
  std::vector<std::vector<Stacks::value_type*>> scopes_;  // the names defined in each
};

// Keeps a scope of a table of names open: of Scopes, or of NameTable.
template <class Table>
struct NameScope {
  explicit NameScope(Table& t) : table(t) { table.enter(); }
  ~NameScope() { table.leave(); }
  NameScope(const NameScope&) = delete;
  NameScope& operator=(const NameScope&) = delete;
  Table& table;
};

}  // namespace relaxc::text
