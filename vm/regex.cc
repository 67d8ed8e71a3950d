#include "vm/regex.h"

#include <algorithm>
#include <optional>

#include "support/printable.h"
#include "vm/error.h"
#include "vm/text.h"

namespace relaxc::vm {

namespace {

using Range = Regex::Range;
using Op = Regex::Op;
constexpr uint32_t kLast = 0x10ffff;

const std::vector<Range> kDigits = {{'0', '9'}}, kSpaces = {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}},
                         kWord = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};

struct NamedClass {
  std::string_view name;
  std::vector<Range> ranges;
};
const std::vector<NamedClass>& named_classes() {
  static const std::vector<NamedClass> kNamed = {{"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
                                                 {"alpha", {{'A', 'Z'}, {'a', 'z'}}},
                                                 {"ascii", {{0, 127}}},
                                                 {"blank", {{'\t', '\t'}, {' ', ' '}}},
                                                 {"cntrl", {{0, 31}, {127, 127}}},
                                                 {"digit", kDigits},
                                                 {"graph", {{'!', '~'}}},
                                                 {"lower", {{'a', 'z'}}},
                                                 {"print", {{' ', '~'}}},
                                                 {"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
                                                 {"space", {{'\t', '\r'}, {' ', ' '}}},
                                                 {"upper", {{'A', 'Z'}}},
                                                 {"word", kWord},
                                                 {"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}}};
  return kNamed;
}
std::vector<Range> complement(std::vector<Range> ranges) {
  std::ranges::sort(ranges, {}, &Range::first);
  std::vector<Range> result;
  uint32_t next = 0;
  for (const Range& range : ranges) {
    if (range.first > next) result.push_back({next, range.first - 1});
    next = std::max(next, range.last + 1);
  }
  if (next <= kLast) result.push_back({next, kLast});
  return result;
}
bool is_word(uint32_t c) {
  return std::ranges::any_of(kWord, [c](const Range& range) { return range.first <= c && c <= range.last; });
}

// Reads a pattern and appends its steps. A repeated part is copied.
class Compiler {
 public:
  Compiler(std::string_view pattern, std::vector<Regex::Step>& steps, std::vector<Regex::Class>& classes)
      : whole_(pattern), rest_(pattern), steps_(steps), classes_(classes) {}

  void compile() {
    alternatives(0);
    if (!rest_.empty()) fail("a ')' without its '('");
    add({Op::kMatch});
  }

 private:
  struct Flags {
    bool any_case = false, lines = false, dot_all = false;
  };
  [[noreturn]] void fail(std::string_view what) const {
    throw_runtime_error("pattern '{}': {} at position {}", printable(std::string(whole_)), what,
                        whole_.size() - rest_.size());
  }
  [[noreturn]] void fail_unsupported(std::string_view what) const {
    throw UnsupportedPattern(fmt::format("pattern '{}': {} at position {}", printable(std::string(whole_)), what,
                                         whole_.size() - rest_.size()));
  }
  size_t add(Regex::Step step) {
    constexpr size_t kMostSteps = 20000;
    if (steps_.size() >= kMostSteps) fail("the pattern is too large");
    steps_.push_back(step);
    return steps_.size() - 1;
  }
  bool skip(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  uint32_t next() {
    if (rest_.empty()) fail("the pattern ends early");
    return take_character(rest_);
  }

  void alternatives(int depth) {  // NOLINT: bounded
    constexpr int kDeepest = 100;
    if (depth > kDeepest) fail("groups are nested too deep");
    Flags outer = flags_;
    size_t split = insert_jump(), first = steps_.size();
    std::vector<size_t> ends;
    sequence(depth);
    while (skip("|")) {
      ends.push_back(add({Op::kJump}));
      steps_[split] = {Op::kSplit, first, steps_.size()};
      split = insert_jump();
      first = steps_.size();
      sequence(depth);
    }
    steps_[split] = {Op::kJump, first};
    for (size_t end : ends) steps_[end].a = steps_.size();
    flags_ = outer;
  }
  // Adds a jump to the next step.
  size_t insert_jump() { return add({Op::kJump, steps_.size() + 1}); }

  void sequence(int depth) {  // NOLINT: bounded
    while (!rest_.empty() && rest_[0] != '|' && rest_[0] != ')') {
      if (skip("\\Q")) {
        while (!rest_.empty() && !skip("\\E")) {
          const size_t split = insert_jump();
          character(next());
          bool is_last = skip("\\E");
          std::optional<Count> times = is_last ? count() : std::nullopt;
          if (times) repeat(split, split + 1, *times);
          if (is_last) break;
        }
        continue;
      }
      repeated(depth);
    }
  }
  struct Count {
    int least, most;  // -1: any
  };
  std::optional<Count> count() {
    std::string_view before = rest_;
    auto number = [&]() -> std::optional<int> {
      int value = 0, digits = 0;
      for (; !rest_.empty() && rest_[0] >= '0' && rest_[0] <= '9'; rest_.remove_prefix(1), ++digits)
        value = std::min(value * 10 + (rest_[0] - '0'), 100000);
      return digits ? std::optional(value) : std::nullopt;
    };
    if (skip("*")) return Count{0, -1};
    if (skip("+")) return Count{1, -1};
    if (skip("?")) return Count{0, 1};
    if (!skip("{")) return std::nullopt;
    std::optional<int> least = number(), most = least;
    if (least && skip(",")) most = number().value_or(-1);
    if (least && skip("}")) {
      constexpr int kMostCopies = 1000;
      if (*least > kMostCopies || *most > kMostCopies || (*most >= 0 && *most < *least)) fail("a wrong count");
      return Count{*least, *most};
    }
    rest_ = before;
    return std::nullopt;
  }
  void repeated(int depth) {  // NOLINT: bounded
    const std::string_view begin = rest_;
    if (count()) fail("nothing to repeat");
    rest_ = begin;
    const size_t split = insert_jump(), first = split + 1;
    bool is_flags = atom(depth);
    std::optional<Count> times = count();
    if (!times) return;
    if (is_flags) fail("nothing to repeat");
    skip("?");  // the choice of the shortest match does not matter for a full one
    const std::string_view end = rest_;
    if (count()) fail("a repetition of a repetition");
    rest_ = end;
    repeat(split, first, *times);
  }
  // Repeats the steps from `first` on, before which there is a jump that may become a split.
  void repeat(size_t split, size_t first, Count times) {
    const std::vector<Regex::Step> item(steps_.begin() + static_cast<ptrdiff_t>(first), steps_.end());
    size_t last = first;
    auto copy = [&] {
      last = steps_.size();
      for (Regex::Step step : item) {
        bool jumps = step.op == Op::kSplit || step.op == Op::kJump;
        if (jumps) step.a += last - first;
        if (jumps) step.b += last - first;
        add(step);
      }
    };
    std::vector<size_t> splits;
    if (times.most == 0) return steps_.resize(first);
    if (times.least == 0) splits.push_back(split);
    for (int i = 1; i < times.least; ++i) copy();
    if (times.most < 0) add({Op::kSplit, last, steps_.size() + 1});
    for (int i = std::max(times.least, 1); i < times.most; ++i) {
      splits.push_back(add({Op::kSplit}));
      copy();
    }
    for (size_t at : splits) steps_[at] = {Op::kSplit, at + 1, steps_.size()};
  }

  // Returns true for (?flags), which is not a part of the text.
  bool atom(int depth) {  // NOLINT: bounded
    if (skip("(")) return group(depth);
    if (skip("[")) return bracket(), false;
    if (skip(".")) {
      character_class(flags_.dot_all ? std::vector<Range>{{0, kLast}} : complement({{'\n', '\n'}}), false);
      return false;
    }
    if (skip("^")) return add({flags_.lines ? Op::kLineBegin : Op::kBegin}), false;
    if (skip("$")) return add({flags_.lines ? Op::kLineEnd : Op::kEnd}), false;
    if (skip("\\")) return escape(), false;
    character(next());
    return false;
  }
  bool group(int depth) {  // NOLINT: bounded
    Flags outer = flags_;
    if (skip("?")) {
      if (rest_.starts_with("=") || rest_.starts_with("!") || rest_.starts_with("<=") || rest_.starts_with("<!"))
        fail("a look around, which RE2 does not have");
      if (skip("P<") || skip("<")) {
        size_t end = rest_.find('>');
        if (end == std::string_view::npos) fail("a name without '>'");
        rest_.remove_prefix(end + 1);
      } else if (read_flags()) {
        return true;
      }
    }
    alternatives(depth + 1);
    if (!skip(")")) fail("a '(' without its ')'");
    flags_ = outer;
    return false;
  }
  // Returns whether the flags end the group.
  bool read_flags() {
    for (bool value = true;;) {
      uint32_t flag = next();
      if (flag == ')') return true;
      if (flag == ':') return false;
      bool* known = flag == 'i'   ? &flags_.any_case
                    : flag == 'm' ? &flags_.lines
                    : flag == 's' ? &flags_.dot_all
                                  : nullptr;
      if (known) *known = value;
      if (flag == '-') value = false;
      if (!known && flag != '-' && flag != 'U') fail("an unknown flag");
    }
  }

  // ---- Characters

  void character_class(std::vector<Range> ranges, bool negated) {
    classes_.push_back({std::move(ranges), negated, flags_.any_case});
    add({Op::kClass, classes_.size() - 1});
  }
  void character(uint32_t c) { character_class({{c, c}}, false); }
  // Reads a class such as \d; returns nullopt for another escape.
  std::optional<std::vector<Range>> class_escape() {
    if (rest_.empty()) fail("a '\\' at the end");
    const std::string_view kLetters = "dswDSW";
    size_t i = kLetters.find(rest_[0]);
    if (rest_[0] == 'p' || rest_[0] == 'P') fail_unsupported("a class of Unicode");
    if (i == std::string_view::npos) return std::nullopt;
    rest_.remove_prefix(1);
    const std::vector<Range>& ranges = i % 3 == 0 ? kDigits : i % 3 == 1 ? kSpaces : kWord;
    return i < 3 ? ranges : complement(ranges);
  }
  uint32_t number(int base, size_t most) {
    uint32_t value = 0;
    for (size_t i = 0; i < most && !rest_.empty(); ++i) {
      char c = rest_[0];
      int digit = c >= '0' && c <= '9'   ? c - '0'
                  : c >= 'a' && c <= 'f' ? c - 'a' + 10
                  : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                         : base;
      if (digit >= base) break;
      value = value * static_cast<uint32_t>(base) + static_cast<uint32_t>(digit);
      rest_.remove_prefix(1);
    }
    if (value > kLast) fail("a number that is not a character");
    return value;
  }
  uint32_t escaped_character() {
    constexpr std::pair<char, char> kNamed[] = {{'a', '\a'}, {'f', '\f'}, {'t', '\t'},
                                                {'n', '\n'}, {'r', '\r'}, {'v', '\v'}};
    for (auto [name, c] : kNamed) {
      if (skip({&name, 1})) return static_cast<uint32_t>(c);
    }
    if (skip("x{")) {
      uint32_t c = number(16, 6);
      if (!skip("}")) fail("a '\\x{' without '}'");
      return c;
    }
    if (skip("x")) return number(16, 2);
    if (!rest_.empty() && rest_[0] == '0') return number(8, 3);
    if (!rest_.empty() && rest_[0] >= '1' && rest_[0] <= '7' && rest_.size() > 2 && rest_[1] >= '0' && rest_[1] <= '7')
      return number(8, 3);
    uint32_t c = next();
    if (c < 128 && is_word(c) && c != '_') fail("an unknown escape");
    return c;
  }
  void escape() {
    if (skip("A")) return void(add({Op::kBegin}));
    if (skip("z")) return void(add({Op::kEnd}));
    if (skip("b")) return void(add({Op::kWordEdge}));
    if (skip("B")) return void(add({Op::kNoWordEdge}));
    if (auto ranges = class_escape()) return character_class(*ranges, false);
    character(escaped_character());
  }
  void bracket() {
    bool negated = skip("^");
    std::vector<Range> ranges;
    for (bool is_first = true; is_first || !rest_.starts_with("]"); is_first = false) {
      if (skip("[:")) {
        bool inverse = skip("^");
        auto known = std::ranges::find_if(named_classes(), [&](const NamedClass& row) {
          return rest_.starts_with(row.name) && rest_.substr(row.name.size()).starts_with(":]");
        });
        if (known == named_classes().end()) fail("an unknown class");
        rest_.remove_prefix(known->name.size() + 2);
        append(ranges, inverse ? complement(known->ranges) : known->ranges);
        continue;
      }
      bool is_escape = skip("\\");
      if (auto known = is_escape ? class_escape() : std::nullopt) {
        append(ranges, *known);
        continue;
      }
      uint32_t first = is_escape ? escaped_character() : next(), last = first;
      if (rest_.starts_with("-") && !rest_.starts_with("-]")) {
        skip("-");
        last = skip("\\") ? escaped_character() : next();
        if (last < first) fail("a range that ends before it begins");
      }
      ranges.push_back({first, last});
    }
    skip("]");
    character_class(std::move(ranges), negated);
  }
  static void append(std::vector<Range>& to, const std::vector<Range>& more) {
    to.insert(to.end(), more.begin(), more.end());
  }

  std::string_view whole_, rest_;
  std::vector<Regex::Step>& steps_;
  std::vector<Regex::Class>& classes_;
  Flags flags_;
};

bool holds(const Regex::Class& set, uint32_t c) {
  auto in = [&](uint32_t each) {
    return std::ranges::any_of(set.ranges,
                               [=](const Range& range) { return range.first <= each && each <= range.last; });
  };
  bool found = in(c) || (set.any_case && (in(lower_case(c)) || in(upper_case(c))));
  return found != set.negated;
}

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

// A place between two characters; -1 stands for none.
struct Place {
  int64_t before = -1, after = -1;
  bool holds(Op op) const {
    auto word = [](int64_t c) { return c >= 0 && is_word(static_cast<uint32_t>(c)); };
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
      case Op::kSplit:
      case Op::kJump:
      case Op::kMatch:
        return false;
    }
    return false;
  }
};

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

// Returns the character that ends at a position; -1 at the beginning.
int64_t character_before(std::string_view text, size_t end) {
  for (size_t length = 1; length <= std::min<size_t>(end, 4); ++length) {
    std::string_view rest = text.substr(end - length, length);
    uint32_t character = take_character(rest);
    if (rest.empty()) return character;
  }
  return end == 0 ? -1 : static_cast<unsigned char>(text[end - 1]);
}

}  // namespace

Regex::Regex(std::string_view pattern) { Compiler(pattern, steps_, classes_).compile(); }

std::optional<size_t> Regex::longest(std::string_view text, size_t from) const {
  States now(steps_.size()), next(steps_.size());
  std::string_view rest = text.substr(from);
  auto read = [&]() -> int64_t { return rest.empty() ? -1 : int64_t{take_character(rest)}; };
  std::optional<size_t> end;
  auto note_end = [&](size_t at) {
    if (now.known[steps_.size() - 1]) end = at;
  };
  Place place{character_before(text, from), read()};
  follow(steps_, 0, place, now);
  note_end(from);
  while (place.after >= 0 && !now.list.empty()) {
    auto c = static_cast<uint32_t>(place.after);
    const size_t behind = text.size() - rest.size();
    place = {place.after, read()};
    next.clear();
    for (size_t at : now.list) {
      if (steps_[at].op == Op::kClass && holds(classes_[steps_[at].a], c)) follow(steps_, at + 1, place, next);
    }
    std::swap(now, next);
    note_end(behind);
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
