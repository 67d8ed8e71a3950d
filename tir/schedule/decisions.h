// The choices that a rule leaves open for one program, each with a name, candidates, and a default from a formula over
// the target. A user (S.use in a file of schedules), or a record of a tuner, may choose another candidate. The idea is
// that of AutoTVM's templates with knobs (Chen et al., "Learning to Optimize Tensor Programs", 2018), with formulas as
// the default.
#pragma once
#include "ir/attrs.h"
#include "support/span.h"

namespace relaxc {

// A decision that a rule may ask for.
struct DecisionRow {
  std::string name;  // "*.rows": with the name of a block instead of the star
  std::string doc, formula;
};

struct Decision {
  std::string name;
  AttrList candidates;  // of a list: those of its items
  AttrValue formula, value;
};

class Decisions {
 public:
  // `rows`: the decisions of the rule. `given`: the values that are not the formulas'; `place`: where they were given,
  // for errors about `subject`, the program or operator that they are for.
  Decisions(std::string rule, std::vector<DecisionRow> rows, Attrs given = {}, Span place = {},
            std::string subject = "")
      : rule_(std::move(rule)),
        rows_(std::move(rows)),
        given_(std::move(given)),
        place_(std::move(place)),
        subject_(std::move(subject)) {}

  // The value of the decision, which must have a row: the given value, which must be a candidate (a CompileError lists
  // them), else the formula's, which is one. A decision is taken once: asked again, it has the same value.
  int64_t number(const std::string& name, const std::vector<int64_t>& candidates, int64_t formula) {
    return *decide(name, AttrList(candidates.begin(), candidates.end()), formula).as<int64_t>();
  }
  bool flag(const std::string& name, bool formula) { return *decide(name, {false, true}, formula).as<bool>(); }
  std::string word(const std::string& name, AttrList candidates, const std::string& formula) {
    return *decide(name, std::move(candidates), formula).as<std::string>();
  }
  // Each item is a candidate.
  void list(const std::string& name, const std::vector<int64_t>& candidates, const std::vector<int64_t>& formula) {
    decide(name, AttrList(candidates.begin(), candidates.end()), formula);
  }
  const AttrValue& decide(const std::string& name, AttrList candidates, AttrValue formula);

  // Sets a prefix for the names that are asked for from now on: "C." for the block C. Their rows begin with "*.".
  void set_prefix(std::string prefix) { prefix_ = std::move(prefix); }
  // Returns all decisions that were taken, in order.
  const std::vector<Decision>& all() const { return all_; }
  // Throws a CompileError where a value was given for which there was no question.
  void check_all_asked() const;

 private:
  std::string rule_;
  std::vector<DecisionRow> rows_;
  Attrs given_;
  Span place_;
  std::string subject_, prefix_;
  std::vector<Decision> all_;
};

// These return the whole numbers from `first` to `last`, those of them that divide `extent`, and the powers of two
// times `first` up to `last`.
std::vector<int64_t> numbers_between(int64_t first, int64_t last);
std::vector<int64_t> divisors_between(int64_t first, int64_t last, int64_t extent);
std::vector<int64_t> doublings_between(int64_t first, int64_t last);

}  // namespace relaxc
