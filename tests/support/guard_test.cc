// No text of the C++ library's exceptions without the place where relaxc went wrong.
#include "support/guard.h"

#include <optional>
#include <system_error>
#include <vector>

#include "support/check.h"
#include "support/diagnostic.h"
#include "vm/error.h"

#include "tests/catch.h"  // last

namespace relaxc {

namespace {

template <class Work>
std::string internal_error(const Work& work) {
  try {
    guarded([] { return "pass 'fuse'"; }, work);
  } catch (const InternalError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("exceptions of the C++ library become internal errors with a place", "[support]") {
  const std::vector<int> none;
  for (const std::string& text :
       {internal_error([&] { return none.at(0); }), internal_error([] { return std::optional<int>().value(); }),
        internal_error([] { return std::stoi("x"); }), internal_error([] { std::vector<int>().reserve(SIZE_MAX); }),
        internal_error([] { throw std::system_error(ENOENT, std::generic_category()); }),
        internal_error([] { check_failed("a < b", "file.cc", 3, "of our own"); })}) {
    INFO(text);
    CHECK(text.starts_with("internal error"));
    CHECK(text.find("in pass 'fuse'") != std::string::npos);
  }
}

TEST_CASE("errors of the user pass through a guard, as do results", "[support]") {
  auto where = [] { return ""; };
  CHECK(guarded(where, [] { return 3; }) == 3);
  CHECK_THROWS_AS(guarded(where, [] { fail({}, "wrong input"); }), CompileError);
  CHECK_THROWS_AS(guarded(where, [] { throw_runtime_error("wrong dim"); }), RuntimeError);
  CHECK_THROWS_AS(guarded(where, [] { throw std::bad_alloc(); }), std::bad_alloc);
}

}  // namespace relaxc
