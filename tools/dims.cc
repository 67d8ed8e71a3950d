#include "tools/dims.h"

#include <algorithm>
#include <cctype>

#include "support/checked_math.h"
#include "support/diagnostic.h"
#include "support/lists.h"
#include "support/temporarily.h"
#include "support/whole_number.h"
#include "vm/bytecode.h"

namespace relaxc::tools {

namespace {

constexpr int kDeepestDim = 100;  // nested parentheses

bool is_name_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; }

// Returns the length of the quoted name that the text begins with; 0 for another text.
size_t length_of_quoted(std::string_view text) {
  if (!text.starts_with('\'')) return 0;
  size_t end = 1;
  while (end < text.size() && text[end] != '\'') end += text[end] == '\\' ? 2 : 1;
  return std::min(end + 1, text.size());
}
// Returns the name that a quoted text stands for.
std::string unquoted(std::string_view text) {
  std::string name;
  for (size_t i = 1; i + 1 < text.size(); ++i) {
    if (text[i] == '\\') ++i;
    name += text[i];
  }
  return name;
}
// Returns the name that the whole text is; nullopt for a number or an expression.
std::optional<std::string> name_of(std::string_view text) {
  if (text.starts_with('\'') && length_of_quoted(text) == text.size()) return unquoted(text);
  bool is_word =
      !text.empty() && !std::isdigit(static_cast<unsigned char>(text[0])) && std::ranges::all_of(text, is_name_char);
  return is_word ? std::optional(std::string(text)) : std::nullopt;
}

class DimReader {
 public:
  DimReader(std::string_view text, const std::map<std::string, int64_t>& dims) : rest_(text), dims_(dims) {}

  std::optional<int64_t> read() {
    std::optional<int64_t> result = sum();
    return next().empty() ? result : std::nullopt;
  }

 private:
  // Returns the next token without taking it: a name, a number or a symbol.
  std::string_view next() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size()));
    size_t size = length_of_quoted(rest_);
    while (!rest_.starts_with('\'') && size < rest_.size() && is_name_char(rest_[size])) ++size;
    if (size == 0) size = rest_.starts_with("//") ? 2 : std::min<size_t>(rest_.size(), 1);
    return rest_.substr(0, size);
  }
  std::string_view take() {
    std::string_view token = next();
    rest_.remove_prefix(token.size());
    return token;
  }
  bool skip(std::string_view token) {
    if (next() != token) return false;
    take();
    return true;
  }
  static std::optional<int64_t> apply(vm::SlotOp op, std::optional<int64_t> a, std::optional<int64_t> b) {
    return a && b ? vm::evaluate(op, *a, *b) : std::nullopt;
  }
  struct Operator {
    std::string_view token;
    vm::SlotOp op;
  };

  std::optional<int64_t> sum() {
    static constexpr Operator kSums[] = {{"+", vm::SlotOp::kAdd}, {"-", vm::SlotOp::kSub}};
    return chain(kSums, &DimReader::product);
  }
  std::optional<int64_t> product() {
    static constexpr Operator kProducts[] = {
        {"*", vm::SlotOp::kMul}, {"//", vm::SlotOp::kFloorDiv}, {"%", vm::SlotOp::kFloorMod}};
    return chain(kProducts, &DimReader::factor);
  }
  std::optional<int64_t> chain(std::span<const Operator> operators, std::optional<int64_t> (DimReader::*operand)()) {
    std::optional<int64_t> left = (this->*operand)();
    while (const Operator* found = find_item(operators, next(), &Operator::token)) {
      take();
      left = apply(found->op, left, (this->*operand)());
    }
    return left;
  }
  std::optional<int64_t> factor() {
    Temporarily deeper(depth_, depth_ + 1);
    if (depth_ > kDeepestDim) return std::nullopt;
    if (skip("-")) return apply(vm::SlotOp::kSub, 0, factor());
    if (skip("(")) return in_parentheses();
    std::string token(take());
    if (token.starts_with('\'')) return copy_value(dims_, unquoted(token));
    if (token == "T.min" || token == "T.max" || token == "min" || token == "max")
      return extremum(token.ends_with("max"));
    // A number with its type, as the printer may write it.
    if ((token == "T.int64" || token == "T.int32") && skip("(")) return in_parentheses();
    if (auto number = whole_number(token)) return number;
    return copy_value(dims_, token);
  }
  std::optional<int64_t> in_parentheses() {
    std::optional<int64_t> value = sum();
    return skip(")") ? value : std::nullopt;
  }
  std::optional<int64_t> extremum(bool is_max) {  // NOLINT: private
    if (!skip("(")) return std::nullopt;
    std::optional<int64_t> a = sum();
    if (!skip(",")) return std::nullopt;
    return apply(is_max ? vm::SlotOp::kMax : vm::SlotOp::kMin, a, in_parentheses());
  }

  std::string_view rest_;
  const std::map<std::string, int64_t>& dims_;
  int depth_ = 0;
};

std::optional<int64_t> evaluate(const vm::DimInfo& dim, const std::map<std::string, int64_t>& dims) {
  if (dim.text == "?") return 1;  // any number will do
  return dim.text.empty() ? dim.value : evaluate_dim(dim.text, dims);
}

}  // namespace

std::optional<int64_t> evaluate_dim(std::string_view text, const std::map<std::string, int64_t>& dims) {
  return DimReader(text, dims).read();
}

std::set<std::string> names_in_dim(std::string_view text) {
  std::set<std::string> names;
  for (size_t i = 0; i < text.size();) {
    if (size_t quoted = length_of_quoted(text.substr(i))) {
      names.insert(unquoted(text.substr(i, quoted)));
      i += quoted;
      continue;
    }
    size_t end = i;
    while (end < text.size() && is_name_char(text[end])) ++end;
    std::string name(text.substr(i, end - i));
    bool is_call = end < text.size() && text[end] == '(';
    if (!name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) && !is_call) names.insert(name);
    i = std::max(end, i + 1);
  }
  return names;
}

void DimSolver::learn(const vm::DimInfo& dim, int64_t value) {
  // A name alone has the value; what contradicts it is for the run to tell.
  if (auto name = name_of(dim.text)) {
    known_.emplace(*name, value);
  } else if (!dim.text.empty() && dim.text != "?") {
    equations_.emplace_back(dim, value);
  }
}

// Finds the one name of the expression that has no value.
bool DimSolver::invert(const vm::DimInfo& dim, int64_t value) {
  constexpr int64_t kSearched = 1 << 16;
  std::set<std::string> names = names_in_dim(dim.text);
  std::erase_if(names, [&](const std::string& name) { return known_.contains(name); });
  if (names.size() != 1) return false;
  std::map<std::string, int64_t> dims = known_;
  int64_t& unknown = dims[*names.begin()];
  auto solves = [&](int64_t candidate) {
    unknown = candidate;
    return candidate >= 0 && evaluate(dim, dims) == value;
  };
  // Most expressions are linear, and then two points tell.
  unknown = 0;
  std::optional<int64_t> at_0 = evaluate(dim, dims);
  unknown = 1;
  std::optional<int64_t> at_1 = evaluate(dim, dims);
  std::optional<int64_t> rise = at_0 && at_1 ? checked_sub(*at_1, *at_0) : std::nullopt;
  std::optional<int64_t> distance = at_0 ? checked_sub(value, *at_0) : std::nullopt;
  bool found = rise && *rise != 0 && distance && solves(*distance / *rise);
  for (int64_t i = 0; !found && i < kSearched; ++i) found = solves(i);
  if (found) known_.insert_or_assign(*names.begin(), unknown);
  return found;
}

bool DimSolver::all_at_least(int64_t least, const std::map<std::string, int64_t>& dims) const {
  return std::ranges::all_of(needed_, [&](const vm::DimInfo& dim) {
    std::optional<int64_t> number = evaluate(dim, dims);
    return number && *number >= (dim.text.empty() ? 0 : least) && *number <= dim.most;
  });
}

void DimSolver::solve() {
  // Each equation that is solved may leave another with one unknown name.
  auto is_solved = [&](const auto& equation) { return invert(equation.first, equation.second); };
  auto unknown_in = [&](const auto& equation) {
    std::set<std::string> names = names_in_dim(equation.first.text);
    std::erase_if(names, [&](const std::string& name) { return known_.contains(name); });
    return names;
  };
  auto is_open = [&](const auto& equation) { return unknown_in(equation).size() > 1; };
  while (true) {
    while (std::erase_if(equations_, is_solved) > 0) {
    }
    // n * m == 6: one of them is 1.
    auto open = std::ranges::find_if(equations_, is_open);
    if (open == equations_.end()) break;
    known_.emplace(*unknown_in(*open).begin(), 1);
  }
  std::set<std::string> unknown;
  for (const vm::DimInfo& dim : needed_) unknown.merge(names_in_dim(dim.text));
  std::erase_if(unknown, [&](const std::string& name) { return known_.contains(name); });
  std::map<std::string, int64_t> ranges_begin;  // of names with a stated range
  for (const vm::DimInfo& dim : needed_) ranges_begin.emplace(dim.text, dim.least);
  for (int64_t least : {1, 0}) {
    for (int64_t number = 1; number <= 1 << 16; number *= 2) {
      std::map<std::string, int64_t> dims = known_;
      for (const std::string& name : unknown) {
        const auto begin = ranges_begin.find(name);
        dims.emplace(name, std::max(number, begin == ranges_begin.end() ? 0 : begin->second));
      }
      if (!all_at_least(least, dims)) continue;
      known_ = std::move(dims);
      return;
    }
  }
  for (const std::string& name : unknown) known_.emplace(name, 1);  // value() says which dim is wrong
}

int64_t DimSolver::value(const vm::DimInfo& dim) const {
  std::optional<int64_t> number = evaluate(dim, known_);
  if (number && *number >= 0) return *number;
  std::string name = dim.text.empty() ? std::to_string(dim.value) : dim.text;
  if (number) fail({}, "the dim '{}' would be {}; choose its names with --dim NAME=VALUE", name, *number);
  const bool has_names =
      std::ranges::all_of(names_in_dim(dim.text), [&](const auto& of) { return known_.contains(of); });
  if (has_names) fail({}, "the dim '{}' has no value that int64 holds; choose its names with --dim NAME=VALUE", name);
  fail({}, "the dim '{}' has no value; give its names with --dim NAME=VALUE, or the input with --input", name);
}

std::map<std::string, int64_t> dims_of_inputs(const std::vector<vm::ValueInfo>& infos,
                                              const std::vector<vm::Value>& inputs) {
  DimSolver dims;
  for (size_t i = 0; i < infos.size(); ++i) {
    const Tensor* tensor = inputs[i].get_if<Tensor>();
    if (!tensor || !infos[i].dims || infos[i].dims->size() != tensor->shape().size()) continue;
    for (size_t d = 0; d < tensor->shape().size(); ++d) dims.learn((*infos[i].dims)[d], tensor->shape()[d]);
  }
  dims.solve();
  return dims.known();
}

}  // namespace relaxc::tools
