// Patterns of graph operators, and finding them. A pattern is a graph of what it matches: operands (wildcards) and
// calls of operators on them. The form is that of Relax's dataflow patterns (`tvm.relax.dpl`), which follow Chen et
// al., "TVM: An Automated End-to-End Optimizing Compiler", 2018, and its pattern language.
#pragma once
#include <set>

#include "ir/visit.h"
#include "ops/user_kernel.h"

namespace relaxc {

struct PatternNode;
using PatternRef = std::shared_ptr<const PatternNode>;

// What a value must be, by its kind:
struct PatternNode {
  enum class Kind : uint8_t {
    kAny,       // any value
    kConstant,  // a constant; with `number` one whose elements all have this value
    kCall,      // a call of one of `ops` on `args` with `attrs`; of call_tir and the like: of the kernel `callee`
    kTuple,     // a tuple of `args`
    kItem,      // item `index` of args[0]
    kEither,    // one of `args`; the first that matches counts
    kIsnt,      // any value that args[0] does not match
  };
  Kind kind = Kind::kAny;
  std::string name = {};  // in messages
  Span span = {};
  std::vector<PatternRef> args = {};
  std::vector<std::string> ops = {};  // full names
  std::string callee = {};
  Attrs attrs = {};           // the attributes that must have these values; others may have any
  bool any_operands = false;  // a call on any operands: its tensors are the match's operands
  int64_t index = 0;
  std::optional<double> number = {};
  std::optional<Expr> dim = {};  // the scalar that the value must be
  // What the value's type must be; dims of one name in a pattern are equal.
  std::optional<DType> dtype = {};
  std::optional<std::vector<Expr>> shape = {};
};

struct Pattern {
  std::vector<PatternRef> params;   // operands, in the order in which a kernel gets them
  std::vector<PatternRef> results;  // in order
  std::vector<VarRef> dims = {};    // named in types
  // For those who compute a match from its operands alone: a cheap value inside of it (made of elementwise operators)
  // may be used elsewhere, too, and is computed in both places; an operand of an alternative that does not match is
  // left out.
  bool is_loose = false;
};

// One place at which a pattern was found.
struct PatternMatch {
  std::vector<Expr> operands;       // one for each param
  std::vector<Binding> inside;      // the bindings that it covers, in order
  std::vector<VarRef> results;      // the variables of the results
  size_t at = 0;                    // the position of the one that is computed last
  std::vector<size_t> late = {};    // positions of bindings that read results before that, and so move behind it
  std::vector<OpenAttr> open = {};  // attributes that the pattern leaves open and that are not the operators' defaults
  Attrs attrs = {};                 // of all operators; those of the last result's count first
  VarMap dims = {};                 // the values of the pattern's dims
  std::map<std::string, Expr, std::less<>> values = {};  // by their names in the pattern, operands included
  std::vector<VarRef> shared = {};                       // inside, used elsewhere, too
};

// Why a pattern does not match at a place, and how much of it does: of several reasons the one of the largest depth
// says most.
struct PatternRefusal {
  std::string why = {};
  int depth = -1;
};

// Decides about the matches of a pattern: whoever takes one replaces what it covers.
class PatternUser {
 public:
  virtual ~PatternUser() = default;
  // Returns whether the binding may hold the pattern's last result.
  virtual bool wants(size_t) const { return true; }
  // Is told that the binding, which is wanted, belongs to an earlier match.
  virtual void is_taken(size_t) {}
  // Takes the match, or returns why it does not.
  virtual std::optional<std::string> take(const PatternMatch& match) = 0;
  // Is told why a binding that holds the operator of the pattern's last result is not taken.
  virtual void is_refused(size_t, const PatternRefusal&) {}
};

// The bindings of a block, as patterns are looked for in them.
class PatternScope {
 public:
  PatternScope(const std::vector<Binding>& bindings, const VarSet& used_after, const OpTable& ops);

  // Returns the match whose last result is bindings[at]; the others may be computed before or after it. A value inside,
  // other than a result, must not be used outside. Where there is none, and bindings[at] is the result's operator,
  // `refused` gets the condition that failed.
  std::optional<PatternMatch> match(const Pattern& pattern, size_t at, PatternRefusal& refused) const;
  // Looks for the pattern from the last binding to the first, and notes that `by` replaced the matches that are taken
  // by a value at their last results. What a match shares stays.
  void find_all(const Pattern& pattern, const std::string& by, PatternUser& user);
  bool is_replaced(size_t i) const { return replaced_[i]; }
  // Returns all positions, in the order in which their bindings, and what replaced them, compute values.
  std::vector<size_t> order() const;

 private:
  friend class PatternMatcher;
  void replace(const PatternMatch& match, const std::string& by);
  // Returns what has to move behind the binding `at`, which takes the place of those inside.
  std::optional<std::vector<size_t>> late_users(const std::set<size_t>& inside, size_t at, std::string& refused) const;
  bool may_move(size_t i) const;
  const std::vector<Binding>& bindings_;
  const VarSet& used_after_;
  const OpTable& ops_;
  std::vector<bool> replaced_;
  std::vector<std::string> replaced_by_;      // names
  std::vector<size_t> rank_, unit_;           // by position: its place in the order, and that of what replaced it
  std::vector<std::vector<size_t>> members_;  // of what replaced several bindings, at its position; else the position
  std::unordered_map<const NodeHeader*, size_t> position_;            // of a variable's binding
  std::unordered_map<const NodeHeader*, std::vector<size_t>> users_;  // of a variable, by position
};

// Returns the operators of which one is the last result of a match; empty: any value may be.
std::vector<std::string> result_operators(const Pattern& pattern);

}  // namespace relaxc
