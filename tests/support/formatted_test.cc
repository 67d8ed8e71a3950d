// Text from patterns (support/formatted.h), in all forms that std::format has for them.
#include "support/formatted.h"

#include <cstdint>
#include <limits>

#include "tests/catch.h"  // last

using namespace relaxc;

namespace {

// Whether a field of this text is taken for an argument of the type.
template <class T>
constexpr bool takes(std::string_view field) {
  try {
    size_t next = 0;
    take_field(field, next).check(FormatArgument::kind_of<T>());
  } catch (const char*) {
    return false;
  }
  return true;
}

}  // namespace

TEST_CASE("integers are formatted", "[support]") {
  CHECK(formatted("{} {:d} {:+} {:5}|{:<5}|{:^5}|{:*>5}", 1, -2, 3, 4, 5, 6, 7) == "1 -2 +3     4|5    |  6  |****7");
  CHECK(formatted("{:x} {:#x} {:04x} {:#06x}", 42, 42u, uint8_t{42}, 42) == "2a 0x2a 002a 0x002a");
  CHECK(formatted("{:x} {:#x} {:#08x} {:+#08x} {:+05}", -42, -42, -42, 42, 42) == "-2a -0x2a -0x0002a +0x0002a +0042");
  CHECK(formatted("{:#x} {}", INT64_MIN, UINT64_MAX) == "-0x8000000000000000 18446744073709551615");
  CHECK(formatted("{:<05} {:^05}|", 7, 7) == "7       7  |");  // an alignment turns zeros off
}

TEST_CASE("floats are formatted", "[support]") {
  constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();
  CHECK(formatted("{} {} {:#} {:.3} {:.2f} {:.1e} {:g}", 0.1, 0.1f, 2.0, 3.14159, 2.0 / 3, 12345.0, 1e-7) ==
        "0.1 0.1 2.0 3.14 0.67 1.2e+04 1e-07");
  CHECK(formatted("{:08} {:08.2f} {:+08.1f}", -1.5, 1.5, 1.5) == "-00001.5 00001.50 +00001.5");
  CHECK(formatted("{:08} {:08} {:+05.1f} {:05}|{:<05}|", kInf, -kInf, kInf, kNan, kNan) ==
        "     inf     -inf  +inf   nan|nan  |");
}

TEST_CASE("widths of texts count columns", "[support]") {
  CHECK(formatted("{:4}|{:>4}|{:^4}|{:-<4}|", "ab", "ab", "ab", "ab") == "ab  |  ab| ab |ab--|");
  CHECK(formatted("{:4}|{:>5}|", "é", "größe") == "é   |größe|");
  CHECK(formatted("{:5}|{:>3}|{:4}|", "日本", "語", "🙂") == "日本 | 語|🙂  |");
  CHECK(formatted("{:.2}|{:.3}|{:.3}|{:.0}|", "größe", "日本", "ab", "x") == "gr|日|ab||");
  CHECK(formatted("{:3}|{:3}|", "\xff\xc3", "\xe6\x97") == "\xff\xc3 |\xe6\x97 |");  // not UTF-8
  CHECK(formatted("{:6}|{:6}|{:d}{:02d}|{:3}|", true, false, true, true, 'c') == "true  |false |101|c  |");
}

TEST_CASE("fields that std::format refuses, or that are not needed, are errors of the compilation", "[support]") {
  CHECK((takes<int>("}") && takes<int>(":#08x}") && takes<double>(":+.60f}") && takes<std::string>(":<5.2s}")));
  for (const char* field : {":+}", ":#}", ":08}", ":d}", ":x}"}) CHECK_FALSE(takes<std::string>(field));
  for (const char* field : {":+}", ":08}", ":.2}", ":s}"}) CHECK_FALSE(takes<bool>(field));
  for (const char* field : {":.2}", ":f}", ":s}"}) CHECK_FALSE(takes<int>(field));
  for (const char* field : {":.61f}", ":#.2f}", ":x}", ":8-}"}) CHECK_FALSE(takes<double>(field));
}
