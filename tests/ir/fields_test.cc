// The compiler refuses these fields() lists.
#include "ir/module.h"

#include "tests/catch.h"  // last

namespace relaxc::test {

namespace {

struct Right {
  int64_t a = 0;
  std::vector<int64_t> b;
  static constexpr auto fields() { return list(field("a", &Right::a), field("b", &Right::b)); }
};
struct OneMemberTwice {
  int64_t a = 0, b = 0;
  static constexpr auto fields() { return list(field("a", &OneMemberTwice::a), field("b", &OneMemberTwice::a)); }
};
struct OneFieldTwice {
  int64_t a = 0, b = 0;
  static constexpr auto fields() { return list(field("a", &OneFieldTwice::a), field("a", &OneFieldTwice::a)); }
};
struct Swapped {
  int64_t a = 0, b = 0;
  static constexpr auto fields() { return list(field("a", &Swapped::b), field("b", &Swapped::a)); }
};
struct LeftOut {
  int64_t a = 0, b = 0;
  static constexpr auto fields() { return list(field("a", &LeftOut::a)); }
};
static_assert(lists_all_members<Right>());
static_assert(!lists_all_members<OneMemberTwice>());
static_assert(!lists_all_members<OneFieldTwice>());
static_assert(!lists_all_members<Swapped>());
static_assert(!lists_all_members<LeftOut>());

}  // namespace

TEST_CASE("every node lists each member once, under its name", "[ir]") {
  int kinds = 0;
#define X(name)                             \
  static_assert(lists_all_members<name>()); \
  ++kinds;
  RELAXC_NODE_KINDS(X)
#undef X
  CHECK(kinds == static_cast<int>(NodeKind::kBlock) + 1);
}

}  // namespace relaxc::test
