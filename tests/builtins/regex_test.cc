#include "builtins/regex.h"

#include <initializer_list>
#include <string>

#include "tests/catch.h"
#include "vm/error.h"

using namespace relaxc;
using namespace relaxc::vm;

namespace {

struct Matches {
  std::string_view pattern;
  std::initializer_list<std::string_view> yes, no;
};

void check(std::initializer_list<Matches> rows) {
  for (const Matches& row : rows) {
    Regex regex(row.pattern);
    for (std::string_view text : row.yes) {
      INFO("'" << row.pattern << "' on '" << text << "'");
      CHECK(regex.matches(text));
    }
    for (std::string_view text : row.no) {
      INFO("'" << row.pattern << "' on '" << text << "'");
      CHECK_FALSE(regex.matches(text));
    }
  }
}

}  // namespace

TEST_CASE("regular expressions have the composites and repetitions of RE2", "[regex]") {
  check({
      {"", {""}, {"a"}},
      {"a|b", {"a", "b"}, {"ab", ""}},
      {"|a", {"", "a"}, {"b"}},
      {"(a|ab)(c|bcd)(d*)", {"abcd", "acd"}, {"abd"}},
      {"a*?b+?c??", {"b", "aabbc"}, {"aac"}},
      {"a{2}b{1,2}c{2,}d{0}", {"aabcc", "aabbccc"}, {"aabccd", "abcc"}},
      {"a{2}?b{1,}?", {"aab"}, {"ab"}},
      {"a{,2}b{c{1", {"a{,2}b{c{1"}, {"aab"}},
      {"x{02}", {"x{02}"}, {"xx"}},
      {"(?:a(?i)b)c|D", {"aBc", "D"}, {"aBC", "d"}},
      {"a(?i)b|c", {"aB", "C"}, {"AB"}},
      {"a(?i)*b*(?-i)*", {"aaB", "aabBb"}, {"aAb"}},
      {"(?i-s)(?m-i:^a$)(?U)\\n.+", {"a\nx"}, {"A\nx", "a\n\n"}},
      {"(?P<year>\\d{4})-(?<größe_1>[0-9]+)", {"2026-11"}, {"26-11"}},
      {"^\\Aab$\\z", {"ab"}, {"ab\n"}},
      {"(?m)a$\\n^b", {"a\nb"}, {"ab"}},
      {"a.c", {"abc", "aäc"}, {"a\nc", "ac"}},
      {"(?s)a.c", {"a\nc"}, {}},
      {"\\bab\\b c\\Bd", {"ab cd"}, {"ab c d"}},
      {"(a*)*(|b)+", {"", "aab"}, {"ba"}},
  });
}

TEST_CASE("regular expressions have the escapes and classes of RE2", "[regex]") {
  check({
      {"\\a\\f\\t\\n\\r\\v\\*\\_", {"\a\f\t\n\r\v*_"}, {}},
      {"\\123\\12\\0\\x7F\\x{1F600}\\x{00000041}",
       {std::string_view("S\n\0\x7f\xF0\x9F\x98\x80"
                         "A",
                         9)},
       {}},
      {"\\Qa.b*\\E+c", {"a.b***c"}, {"aXb*c", "a.bc"}},
      {"\\Q|)", {"|)"}, {}},
      {"\\C\\Cx", {"äx", "abx"}, {"ax"}},
      {"[äb]\\C", {"äb", "bx"}, {"bä"}},
      {".", {"a", "ä"}, {"\xff", "\xc3"}},
      {"\\d\\D\\s\\S\\w\\W", {"1a\tb_-", "0ä x9ä"}, {"1\v\vaaa"}},
      {"[]a][^]a][-b][c-]", {"]b-c", "a--c"}, {"]]bc"}},
      {"[--/][a-c-e]", {".-", "/e"}, {"ad"}},
      {"[\\d_x-z]+", {"1_y"}, {"w"}},
      {"[^\\d][^\\D]", {"a1"}, {"1a"}},
      {"[[:alpha:]][[:^alpha:]][^[:^digit:]]", {"aä1", "Z.9"}, {"aa1"}},
      {"[[:alnum:][:punct:]]+[[:space:]][[:word:]][[:xdigit:]]", {"a1!\v_f"}, {"a1 -f"}},
      {"[[:a]+", {"[:a"}, {"b"}},
      {"\\pN\\p{Nd}\\PN", {"1٣a", "Ⅷ1é"}, {"1Ⅷa", "123"}},
      {"\\p{Lu}\\P{Lu}\\p{^Lu}\\P{^Lu}", {"ÄäaΣ"}, {"Ääaσ"}},
      {"\\p{Greek}+\\p{Han}", {"Λόγος中"}, {"logos中"}},
      {"[\\p{L}\\d_]+[^\\p{Latin}\\s]", {"straße_9ж"}, {"straße9a", "a-ж"}},
      {"[[:^alpha:]\\p{Cyrillic}]\\p{Any}\\p{Zs}\\p{Sc}", {"жж\u00a0€", "1\n ¥"}, {"ab $"}},
      {"\\pC\\p{Co}\\pM", {"\x01\uE000\u0301"}, {"a\uE000\u0301"}},
      {"\\pC", {}, {"\u0378"}},  // not assigned
  });
}

TEST_CASE("regular expressions fold cases beyond ASCII", "[regex]") {
  check({
      {"(?i)straße k", {"STRAẞE \u212a", "\u017ftra\u1e9ee K"}, {"STRASSE K"}},
      {"(?i)ΣΊ", {"ςί", "σΊ"}, {"αί"}},
      {"(?i)[à-ÿ]+x", {"ÀÉÞX"}, {"×x"}},
      {"(?i)[^k]", {"a"}, {"K", "\u212a"}},
      {"(?i)\\w\\W", {"\u017fä"}, {"a\u212a"}},
      {"(?i)\\p{Lu}\\PL", {"a1", "Ä1"}, {"1a", "中1"}},
      {"(?i)[[:upper:]][^\\x00-@]", {"aB"}, {"1B"}},
      {"(?i)i", {"I"}, {"İ", "ı"}},
      {"(?i)ǆ\u13a0", {"ǅ\uab70", "Ǆ\u13a0"}, {}},
  });
}

TEST_CASE("a regular expression that RE2 refuses is refused with its place", "[regex]") {
  for (auto [pattern, message] : std::initializer_list<std::pair<std::string_view, std::string_view>>{
           {"(a)\\1", "a back reference, which RE2 does not have, at position 4"},
           {"(?P<n>a)(?P=n)", "a back reference, which RE2 does not have at position 10"},
           {"a(?=b)", "a look around, which RE2 does not have at position 3"},
           {"(?<!a)b", "a look around"},
           {"(?>a)", "an unknown flag"},
           {"(?#a)", "an unknown flag"},
           {"(?i-)a", "a '-' without a flag"},
           {"(?--i)a", "an unknown flag"},
           {"(?i", "the pattern ends early"},
           {"(?P<>a)", "a name without '>', or none"},
           {"(?P<a b>a)", "a name with a character"},
           {"*a", "nothing to repeat"},
           {"a|*", "nothing to repeat"},
           {"(*FAIL)", "nothing to repeat"},
           {"a**", "a repetition of a repetition"},
           {"a++", "a repetition of a repetition"},
           {"a{2}{3}", "a repetition of a repetition"},
           {"a{1001}", "more than 1000 copies of an item"},
           {"a{2,1}", "the second count is below the first one"},
           {"((a{100}){5}b){3}", "more than 1000 copies of an item"},
           {"(ab", "a '(' without its ')'"},
           {"ab)", "a ')' without its '('"},
           {"[a", "the pattern ends early"},
           {"[b-a]", "a range that ends before it begins"},
           {"[[:letter:]]", "an unknown class"},
           {"[\\b]", "an unknown escape"},
           {"\\p{Letter}", "an unknown class of Unicode"},
           {"\\p{Cn}", "an unknown class of Unicode"},
           {"\\p{Greek", "a '{' without its '}'"},
           {"\\p", "the pattern ends early"},
           {"\\", "a '\\' at the end"},
           {"\\x4", "a '\\x' without two digits"},
           {"\\x{}", "a '\\x{' without digits and '}'"},
           {"\\x{110000}", "a number that is not a character"},
           {"\\Z\\G", "an unknown escape"},
           {"\\h", "an unknown escape"},
           {"\\ä", "an unknown escape"},
           {"a\xff", "a byte that is not UTF-8"},
       }) {
    INFO(pattern);
    CHECK_THROWS_WITH(Regex(pattern), Catch::Contains(std::string(message)));
  }
}

TEST_CASE("the time of a match is linear in text and pattern", "[regex]") {
  const std::string text(20000, 'a');
  CHECK_FALSE(Regex("(a*)*(a|a)*(a?){30}b").matches(text));
  std::string classes;
  for (int i = 0; i < 5000; ++i) classes += "(?i)[\\pL\\p{Greek}]";
  CHECK(Regex(classes).matches(text.substr(0, 5000)));
}
