// Patterns in the syntax of RE2 become steps of an automaton. What RE2 refuses is refused: back references, looks
// around.
#include "builtins/regex.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "support/printable.h"
#include "vm/error.h"
#include "vm/text.h"

namespace relaxc::vm {

namespace {

using Op = Regex::Op;

const CharacterSet kDigits = {{'0', '9'}}, kSpaces = {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}},
                   kWord = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};

struct NamedClass {
  std::string_view name;
  CharacterSet characters;
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
// Returns the characters that the name of a group consists of.
const CharacterSet& name_characters() {
  static const CharacterSet kCharacters = [] {
    CharacterSet all;
    for (std::string_view category : {"L", "Nl", "Nd", "Mn", "Mc", "Pc"}) {
      const CharacterSet more = characters_named(category).value();
      all.insert(all.end(), more.begin(), more.end());
    }
    return in_order(std::move(all));
  }();
  return kCharacters;
}
std::optional<uint32_t> digit_of(char c, uint32_t base) {
  const uint32_t digit = c >= '0' && c <= '9'   ? static_cast<uint32_t>(c - '0')
                         : c >= 'a' && c <= 'f' ? static_cast<uint32_t>(c - 'a' + 10)
                         : c >= 'A' && c <= 'F' ? static_cast<uint32_t>(c - 'A' + 10)
                                                : base;
  return digit < base ? std::optional(digit) : std::nullopt;
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
  size_t add(Regex::Step step) {
    constexpr size_t kMostSteps = 100000;
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
    const std::string_view before = rest_;
    const uint32_t c = take_character(rest_);
    if (c >= 0x80 && before.size() - rest_.size() == 1) fail("a byte that is not UTF-8");
    return c;
  }
  // Returns the part of the pattern that was read since it began here.
  static std::string_view read_since(std::string_view begin, std::string_view rest) {
    return begin.substr(0, begin.size() - rest.size());
  }

  // A part that a repetition repeats. Before it there is a jump to it, which may become a split.
  struct Item {
    size_t first;
    int copies = 1;               // the most that counts make of any part of it
    bool is_repeated = false;     // it ends with a repetition
    bool has_repetition = false;  // the jump before it is used
  };

  // Returns the most copies that counts make of any part, as `sequence` does.
  int alternatives(int depth) {  // NOLINT: bounded
    constexpr int kDeepest = 250;
    if (depth > kDeepest) fail("groups are nested too deep");
    Flags outer = flags_;
    size_t split = insert_jump(), first = steps_.size();
    std::vector<size_t> ends;
    int copies = sequence(depth);
    while (skip("|")) {
      ends.push_back(add({Op::kJump}));
      steps_[split] = {Op::kSplit, first, steps_.size()};
      split = insert_jump();
      first = steps_.size();
      copies = std::max(copies, sequence(depth));
    }
    steps_[split] = {Op::kJump, first};
    for (size_t end : ends) steps_[end].a = steps_.size();
    flags_ = outer;
    return copies;
  }
  // Adds a jump to the next step.
  size_t insert_jump() { return add({Op::kJump, steps_.size() + 1}); }

  int sequence(int depth) {  // NOLINT: bounded
    std::optional<Item> last;
    int copies = 1;
    bool is_quoted = false;
    auto begin_item = [&] { last = Item{insert_jump() + 1}; };
    while (!rest_.empty() && (is_quoted || (rest_[0] != '|' && rest_[0] != ')'))) {
      const bool is_mark = is_quoted ? skip("\\E") : skip("\\Q");
      if (is_mark || (!is_quoted && skip_flags())) {
        is_quoted = is_quoted != is_mark;
        if (last) last->is_repeated = false;  // a*(?i)* is (?:a*)*
      } else if (is_quoted) {
        begin_item();
        literal();
      } else if (auto times = count()) {
        if (!last) fail("nothing to repeat");
        if (last->is_repeated) fail("a repetition of a repetition");
        skip("?");  // the choice of the shortest match does not matter for a full one
        repeat(*last, *times);
      } else {
        begin_item();
        last->copies = atom(depth);
      }
      if (last) copies = std::max(copies, last->copies);
    }
    return copies;
  }
  struct Count {
    int least, most;  // -1: any
    bool is_counted;  // with numbers
  };
  std::optional<int> counted_number() {
    constexpr int kLargest = 100000000;
    if (rest_.size() > 1 && rest_[0] == '0' && digit_of(rest_[1], 10)) return std::nullopt;
    std::optional<int> value;
    for (; !rest_.empty() && digit_of(rest_[0], 10); rest_.remove_prefix(1)) {
      if (value.value_or(0) >= kLargest) return std::nullopt;
      value = value.value_or(0) * 10 + (rest_[0] - '0');
    }
    return value;
  }
  // Reads a repetition. A '{' that does not begin one is a character.
  std::optional<Count> count() {
    std::string_view before = rest_;
    if (skip("*")) return Count{0, -1, false};
    if (skip("+")) return Count{1, -1, false};
    if (skip("?")) return Count{0, 1, false};
    if (!skip("{")) return std::nullopt;
    std::optional<int> least = counted_number(), most = least;
    if (least && skip(",")) most = rest_.starts_with("}") ? -1 : counted_number();
    if (least && most && skip("}")) {
      if (*least > kMostCopies || *most > kMostCopies) fail(kTooManyCopies);
      if (*most >= 0 && *most < *least) fail("the second count is below the first one");
      return Count{*least, *most, true};
    }
    rest_ = before;
    return std::nullopt;
  }
  // Gives an item that is a repetition another jump before it.
  void wrap(const Item& item) {
    const size_t at = item.first - 1;
    for (size_t i = at; i < steps_.size(); ++i) {
      if (is_jump(steps_[i])) ++steps_[i].a, ++steps_[i].b;
    }
    steps_.insert(steps_.begin() + static_cast<ptrdiff_t>(at), {Op::kJump, item.first});
  }
  static bool is_jump(const Regex::Step& step) { return step.op == Op::kSplit || step.op == Op::kJump; }
  void repeat(Item& item, Count times) {
    if (item.has_repetition) wrap(item);
    item.is_repeated = item.has_repetition = true;
    const int of_this = std::max({times.least, times.most, 1});
    if (times.is_counted && of_this > 1 && of_this * item.copies > kMostCopies) fail(kTooManyCopies);
    if (times.is_counted) item.copies *= of_this;
    const size_t first = item.first;
    const std::vector<Regex::Step> steps(steps_.begin() + static_cast<ptrdiff_t>(first), steps_.end());
    size_t last = first;
    auto copy = [&] {
      last = steps_.size();
      for (Regex::Step step : steps) {
        if (is_jump(step)) step.a += last - first, step.b += last - first;
        add(step);
      }
    };
    std::vector<size_t> splits;
    if (times.most == 0) return steps_.resize(first);
    if (times.least == 0) splits.push_back(first - 1);
    for (int i = 1; i < times.least; ++i) copy();
    if (times.most < 0) add({Op::kSplit, last, steps_.size() + 1});
    for (int i = std::max(times.least, 1); i < times.most; ++i) {
      splits.push_back(add({Op::kSplit}));
      copy();
    }
    for (size_t at : splits) steps_[at] = {Op::kSplit, at + 1, steps_.size()};
  }

  // Returns the most copies of any part.
  int atom(int depth) {  // NOLINT: bounded
    if (skip("(")) return group(depth);
    const std::string_view begin = rest_;
    if (skip("[")) {
      CharacterSet set = bracket();
      add_class(read_since(begin, rest_), std::move(set));
    } else if (skip(".")) {
      add_class(flags_.dot_all ? "(?s)." : "(?-s).",
                complement(flags_.dot_all ? CharacterSet() : CharacterSet{{'\n', '\n'}}));
    } else if (skip("^")) {
      add({flags_.lines ? Op::kLineBegin : Op::kBegin});
    } else if (skip("$")) {
      add({flags_.lines ? Op::kLineEnd : Op::kEnd});
    } else if (rest_.starts_with("\\")) {
      escape();
    } else {
      literal();
    }
    return 1;
  }
  int group(int depth) {  // NOLINT: bounded
    Flags outer = flags_;
    if (skip("?")) {
      for (std::string_view look : {"=", "!", "<=", "<!"}) {
        if (rest_.starts_with(look)) fail("a look around, which RE2 does not have");
      }
      if (rest_.starts_with("P=")) fail("a back reference, which RE2 does not have");
      if (skip("P<") || skip("<"))
        group_name();
      else
        read_flags();
    }
    const int copies = alternatives(depth + 1);
    if (!skip(")")) fail("a '(' without its ')'");
    flags_ = outer;
    return copies;
  }
  void group_name() {
    const std::string_view begin = rest_;
    while (!rest_.empty() && rest_[0] != '>') {
      if (!contains(name_characters(), next())) fail("a name with a character that is none of a word's");
    }
    const std::string_view name = read_since(begin, rest_);
    if (!skip(">") || name.empty()) fail("a name without '>', or none");
  }
  // Skips flags for the rest of the group, (?i).
  bool skip_flags() {
    const std::string_view before = rest_;
    const Flags old = flags_;
    const bool may_be = rest_.size() > 2 && rest_.starts_with("(?") &&
                        std::string_view("imsU-)").find(rest_[2]) != std::string_view::npos;
    if (may_be && skip("(?") && read_flags()) return true;
    rest_ = before;
    flags_ = old;
    return false;
  }
  // Returns whether the flags end the group.
  bool read_flags() {
    for (bool value = true, has_flag = true;;) {
      const uint32_t flag = next();
      if (flag == ')' || flag == ':') {
        if (!has_flag) fail("a '-' without a flag");
        return flag == ')';
      }
      bool* known = flag == 'i'   ? &flags_.any_case
                    : flag == 'm' ? &flags_.lines
                    : flag == 's' ? &flags_.dot_all
                                  : nullptr;
      if (known) *known = value;
      if (!known && flag != 'U' && (flag != '-' || !value)) fail("an unknown flag");
      has_flag = flag != '-';
      if (flag == '-') value = false;
    }
  }

  // ---- Characters

  // Adds a step for the characters of a part of the pattern. Equal parts share their class.
  void add_class(std::string_view source, CharacterSet set) {
    auto [known, is_new] = known_classes_.try_emplace({source, flags_.any_case}, classes_.size());
    if (is_new) classes_.emplace_back(flags_.any_case ? with_other_cases(std::move(set)) : in_order(std::move(set)));
    add({Op::kClass, known->second});
  }
  void literal() {
    const std::string_view begin = rest_;
    const uint32_t c = next();
    add_class(read_since(begin, rest_), {{c, c}});
  }
  // Negates after the cases are added: (?i)\PL is what (?i)\pL is not.
  CharacterSet signed_set(CharacterSet set, bool negated) const {
    if (flags_.any_case) set = with_other_cases(std::move(set));
    return negated ? complement(std::move(set)) : set;
  }
  // Reads a class such as \d or \pL behind its '\'; returns nullopt for another escape.
  std::optional<CharacterSet> class_escape() {
    if (rest_.empty()) fail("a '\\' at the end");
    const std::string_view kLetters = "dswDSW";
    const size_t i = kLetters.find(rest_[0]);
    if (i != std::string_view::npos) rest_.remove_prefix(1);
    if (i != std::string_view::npos) return signed_set(i % 3 == 0 ? kDigits : i % 3 == 1 ? kSpaces : kWord, i >= 3);
    bool negated = rest_[0] == 'P';
    if (!skip("p") && !skip("P")) return std::nullopt;
    const std::string_view begin = rest_;
    next();
    std::string_view name = read_since(begin, rest_);
    if (name == "{") {
      name = rest_.substr(0, rest_.find('}'));
      if (name.size() == rest_.size()) fail("a '{' without its '}'");
      rest_.remove_prefix(name.size() + 1);
    }
    if (name.starts_with("^")) negated = !negated;
    if (name.starts_with("^")) name.remove_prefix(1);
    std::optional<CharacterSet> set = characters_named(name);
    if (!set) fail("an unknown class of Unicode");
    return signed_set(std::move(*set), negated);
  }
  // Reads up to so many digits.
  uint32_t number(uint32_t base, size_t most) {
    uint32_t value = 0;
    for (size_t i = 0; i < most && !rest_.empty() && digit_of(rest_[0], base); ++i) {
      value = value * base + *digit_of(rest_[0], base);
      if (value > kLastCharacter) fail("a number that is not a character");
      rest_.remove_prefix(1);
    }
    return value;
  }
  uint32_t escaped_character() {
    constexpr std::pair<char, char> kNamed[] = {{'a', '\a'}, {'f', '\f'}, {'t', '\t'},
                                                {'n', '\n'}, {'r', '\r'}, {'v', '\v'}};
    for (auto [name, c] : kNamed) {
      if (skip({&name, 1})) return static_cast<uint32_t>(c);
    }
    auto has_digit = [&](size_t i, uint32_t base) { return rest_.size() > i && digit_of(rest_[i], base); };
    if (skip("x{")) {
      const bool has_any = has_digit(0, 16);
      uint32_t c = number(16, rest_.size());
      if (!skip("}") || !has_any) fail("a '\\x{' without digits and '}'");
      return c;
    }
    if (skip("x")) {
      if (!has_digit(0, 16) || !has_digit(1, 16)) fail("a '\\x' without two digits");
      return number(16, 2);
    }
    if (has_digit(0, 8) && (rest_[0] == '0' || has_digit(1, 8))) return number(8, 3);
    if (has_digit(0, 10)) fail("a back reference, which RE2 does not have,");
    const uint32_t c = next();
    if (c >= 128 || (contains(kWord, c) && c != '_')) fail("an unknown escape");
    return c;
  }
  void escape() {
    constexpr std::pair<std::string_view, Op> kPlaces[] = {
        {"\\A", Op::kBegin}, {"\\z", Op::kEnd}, {"\\b", Op::kWordEdge}, {"\\B", Op::kNoWordEdge}, {"\\C", Op::kByte}};
    for (auto [text, op] : kPlaces) {
      if (skip(text)) return void(add({op}));
    }
    const std::string_view begin = rest_;
    skip("\\");
    std::optional<CharacterSet> set = class_escape();
    if (!set) {
      const uint32_t c = escaped_character();
      set = CharacterSet{{c, c}};
    }
    add_class(read_since(begin, rest_), std::move(*set));
  }
  // Reads a class such as [:alpha:] in brackets. Without its end it is characters.
  std::optional<CharacterSet> named_class() {
    const size_t end = rest_.starts_with("[:") ? rest_.find(":]", 2) : std::string_view::npos;
    if (end == std::string_view::npos) return std::nullopt;
    std::string_view name = rest_.substr(2, end - 2);
    const bool negated = name.starts_with("^");
    if (negated) name.remove_prefix(1);
    auto known = std::ranges::find(named_classes(), name, &NamedClass::name);
    if (known == named_classes().end()) fail("an unknown class");
    rest_.remove_prefix(end + 2);
    return signed_set(known->characters, negated);
  }
  CharacterSet bracket() {
    const bool negated = skip("^");
    CharacterSet set;
    for (bool is_first = true; is_first || !rest_.starts_with("]"); is_first = false) {
      std::optional<CharacterSet> known = named_class();
      const bool is_escape = !known && skip("\\");
      if (is_escape) known = class_escape();
      if (known) {
        set.insert(set.end(), known->begin(), known->end());
        continue;
      }
      uint32_t first = is_escape ? escaped_character() : next(), last = first;
      if (rest_.size() > 1 && rest_[0] == '-' && rest_[1] != ']') {
        skip("-");
        last = skip("\\") ? escaped_character() : next();
        if (last < first) fail("a range that ends before it begins");
      }
      set.push_back({first, last});
    }
    skip("]");
    return signed_set(std::move(set), negated);
  }

  static constexpr int kMostCopies = 1000;
  static constexpr const char* kTooManyCopies = "more than 1000 copies of an item";
  std::string_view whole_, rest_;
  std::vector<Regex::Step>& steps_;
  std::vector<Regex::Class>& classes_;
  std::map<std::pair<std::string_view, bool>, size_t> known_classes_;  // by source and flag of the case
  Flags flags_;
};

}  // namespace

Regex::Regex(std::string_view pattern) { Compiler(pattern, steps_, classes_).compile(); }

Regex::Class::Class(CharacterSet characters) : set(std::move(characters)) {
  for (uint32_t c = 0; c < ascii.size(); ++c) ascii[c] = contains(set, c);
}

}  // namespace relaxc::vm
