// The spelling of random variables and arguments in traces. Internal to tir/schedule/.
#pragma once
#include <set>

#include "tir/schedule/trace.h"

namespace relaxc::scheduling {

// Gives each random variable a different name.
class RVNames {
 public:
  std::string operator()(const VarRef& var);

 private:
  std::unordered_map<const NodeHeader*, std::string> names_;
  std::set<std::string> taken_;
};
// Returns the value as a schedule's text writes it.
std::string value_text(const AttrValue& value, RVNames& names);

}  // namespace relaxc::scheduling
