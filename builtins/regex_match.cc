// The simulation of the automaton of a regular expression.
#include <algorithm>
#include <array>

#include "builtins/regex.h"
#include "vm/text.h"

namespace relaxc::vm {

namespace {

using Op = Regex::Op;

// The steps that the automaton is at, each once.
struct States {
  explicit States(size_t count) : known(count) {}
  void clear() {
    for (size_t step : list) known[step] = false;
    list.clear();
  }
  std::vector<size_t> list;
  std::vector<bool> known;
};

// A place between two bytes; -1 stands for none.
struct Place {
  int before = -1, after = -1;
  bool holds(Op op) const {
    auto word = [](int c) {
      return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= 'a' && c <= 'z');
    };
    switch (op) {
      case Op::kBegin:
        return before < 0;
      case Op::kEnd:
        return after < 0;
      case Op::kLineBegin:
        return before < 0 || before == '\n';
      case Op::kLineEnd:
        return after < 0 || after == '\n';
      case Op::kWordEdge:
        return word(before) != word(after);
      case Op::kNoWordEdge:
        return word(before) == word(after);
      case Op::kClass:
      case Op::kByte:
      case Op::kSplit:
      case Op::kJump:
      case Op::kMatch:
        return false;
    }
    return false;
  }
};
Place place_at(std::string_view text, size_t at) {
  auto byte = [&](size_t i) { return int{static_cast<unsigned char>(text[i])}; };
  return {at > 0 ? byte(at - 1) : -1, at < text.size() ? byte(at) : -1};
}

// Adds the steps that are reached from one without a character.
void follow(const std::vector<Regex::Step>& steps, size_t from, const Place& place, States& to) {
  std::vector<size_t> work = {from};
  while (!work.empty()) {
    size_t at = work.back();
    work.pop_back();
    if (to.known[at]) continue;
    to.known[at] = true;
    to.list.push_back(at);
    const Regex::Step& step = steps[at];
    if (step.op == Op::kSplit) work.push_back(step.b);
    if (step.op == Op::kSplit || step.op == Op::kJump) work.push_back(step.a);
    if (place.holds(step.op)) work.push_back(at + 1);
  }
}

}  // namespace

std::optional<size_t> Regex::longest(std::string_view text, size_t from) const {
  // The steps behind characters that end at the next places: one of UTF-8 is four bytes at most, and \C is one.
  std::array<std::vector<size_t>, 5> arriving;
  auto arriving_at = [&](size_t at) -> std::vector<size_t>& { return arriving[at % arriving.size()]; };
  arriving_at(from) = {0};
  size_t waiting = 1;
  States now(steps_.size());
  std::optional<size_t> end;
  for (size_t at = from; at <= text.size() && waiting > 0; ++at) {
    const Place place = place_at(text, at);
    now.clear();
    for (size_t step : arriving_at(at)) follow(steps_, step, place, now);
    waiting -= arriving_at(at).size();
    arriving_at(at).clear();
    if (now.known.back()) end = at;
    if (now.list.empty() || at == text.size()) continue;

    std::string_view rest = text.substr(at);
    const uint32_t c = take_character(rest);
    const size_t length = text.size() - at - rest.size();
    const bool is_character = length > 1 || c < 0x80;
    for (size_t step : now.list) {
      const bool is_byte = steps_[step].op == Op::kByte;
      const bool fits = steps_[step].op == Op::kClass && is_character && classes_[steps_[step].a].holds(c);
      if (!is_byte && !fits) continue;
      arriving_at(at + (is_byte ? 1 : length)).push_back(step + 1);
      ++waiting;
    }
  }
  return end;
}

std::optional<std::pair<size_t, size_t>> Regex::find(std::string_view text, size_t from) const {
  for (std::string_view rest = text.substr(std::min(from, text.size()));; take_character(rest)) {
    size_t begin = text.size() - rest.size();
    if (auto end = longest(text, begin)) return std::pair(begin, *end);
    if (rest.empty()) return std::nullopt;
  }
}

}  // namespace relaxc::vm
