// Names of variables in printed text: each hint becomes a Python identifier, unique among the names that are live.
#pragma once
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/expr.h"

namespace relaxc::text {

// Returns whether the word is one of Python's keywords.
bool is_keyword(std::string_view word);
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

}  // namespace relaxc::text
