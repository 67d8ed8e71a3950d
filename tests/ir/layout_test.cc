#include "ir/layout.h"

#include <random>

#include "tests/catch.h"  // last

namespace relaxc {

namespace {

std::vector<Expr> numbers(const std::vector<int64_t>& values) {
  std::vector<Expr> result;
  for (int64_t value : values) result.push_back(int_imm(value));
  return result;
}
std::vector<int64_t> ints(const std::vector<Expr>& exprs) {
  std::vector<int64_t> result;
  for (const Expr& expr : exprs) result.push_back(as_int(simplify(expr)).value());
  return result;
}
std::vector<Expr> applied(const Lambda& map, const std::vector<Expr>& arguments) {
  VarMap values;
  for (size_t i = 0; i < arguments.size(); ++i) values.emplace(map.params[i].get(), arguments[i]);
  std::vector<Expr> result;
  for (const Expr& expr : map.results) result.push_back(simplify(substitute(expr, values)));
  return result;
}

}  // namespace

TEST_CASE("a layout's text reads back, and other texts are refused", "[ir]") {
  for (const char* text :
       {"NCHW", "NHWC", "NCHW16c", "OIHW16i16o", "OI4i16o4i", "NK32n4k", "NK32n2k", "NC_W16c", "_KBN", "N"}) {
    auto layout = Layout::parse(text);
    REQUIRE(layout);
    CHECK(layout->text() == text);
    CHECK(Layout::parse(layout->text(), layout->axes()) == layout);
  }
  CHECK(Layout::parse("NHWC", "NCHW")->dims()[3].axis == 1);
  CHECK(Layout::parse("NCHW")->is_plain());
  CHECK_FALSE(Layout::parse("NHWC", "NCHW")->is_plain());
  for (const char* text : {"NCHX", "NCH", "NCHWW", "NCHW16", "NCHWc", "NC16HW", "NCHW0c", "NCHW9999999c", "nchw",
                           "N-HW", "NCHW1024c1025c"})
    CHECK_FALSE(Layout::parse(text, "NCHW"));
  CHECK_FALSE(Layout::parse("NCNC"));
}

TEST_CASE("dims and indices go into a layout and back", "[ir]") {
  struct Case {
    const char *text, *axes;
    std::vector<int64_t> plain, dims, index, at;
  };
  const Case kCases[] = {
      {"NHWC", "NCHW", {2, 3, 4, 5}, {2, 4, 5, 3}, {1, 2, 3, 4}, {1, 3, 4, 2}},
      {"NCHW16c", "NCHW", {1, 40, 4, 5}, {1, 3, 4, 5, 16}, {0, 37, 1, 2}, {0, 2, 1, 2, 5}},
      {"OIHW16i16o", "OIHW", {32, 16, 3, 3}, {2, 1, 3, 3, 16, 16}, {17, 5, 1, 2}, {1, 0, 1, 2, 5, 1}},
      {"NK32n4k", "KN", {10, 50}, {2, 3, 32, 4}, {9, 45}, {1, 2, 13, 1}},
      {"OI4i16o4i", "OI", {16, 32}, {1, 2, 4, 16, 4}, {3, 30}, {0, 1, 3, 3, 2}},
      {"NC_W16c", "NCW", {2, 32, 7}, {2, 2, 1, 7, 16}, {1, 20, 6}, {1, 1, 0, 6, 4}},
      {"NKB16n", "KBN", {8, 4, 32}, {2, 8, 4, 16}, {7, 2, 19}, {1, 7, 2, 3}}};
  for (const Case& c : kCases) {
    CAPTURE(c.text);
    const Layout layout = *Layout::parse(c.text, c.axes);
    CHECK(ints(layout.from_plain(numbers(c.plain))) == c.dims);
    CHECK(ints(layout.from_plain_index(numbers(c.index))) == c.at);
    CHECK(ints(layout.to_plain_index(numbers(c.at))) == c.index);
    CHECK(ints(applied(*layout.index_map(), numbers(c.index))) == c.at);
    CHECK(ints(applied(*layout.inverse_map(), numbers(c.at))) == c.index);
    const bool is_padded = ints(layout.to_plain(numbers(c.dims))) != c.plain;
    CHECK(layout.is_padded(numbers(c.plain)) == is_padded);
    CHECK(Layout::of_index_map(*layout.index_map())->dims() == layout.dims());
    CHECK(Layout::of_inverse_map(*layout.inverse_map())->dims() == layout.dims());
  }
  Expr c = make_dim("c");
  const Layout blocks = *Layout::parse("NC4c");
  CHECK(blocks.is_padded({int_imm(1), c}));
  CHECK_FALSE(blocks.is_padded({int_imm(1), c * 8}));
  CHECK(ints({blocks.from_plain({int_imm(1), c * 8})[2]}) == std::vector<int64_t>{4});
}

TEST_CASE("maps that are no layout are told apart", "[ir]") {
  const VarRef i = make_dim("i"), j = make_dim("j");
  auto map = [&](std::vector<Expr> results) { return Lambda{{i, j}, std::move(results)}; };
  CHECK(Layout::of_index_map(map({j, i}))->text() == "BA");
  CHECK_FALSE(Layout::of_index_map(map({i, i})));
  CHECK_FALSE(Layout::of_index_map(map({i + j, j})));
  CHECK_FALSE(Layout::of_index_map(map({floor_div(i, 4), j})));
  CHECK_FALSE(Layout::of_index_map(map({floor_div(i, 4), floor_mod(i, 2), j})));
  CHECK_FALSE(Layout::of_index_map(map({int_imm(5) - i, j})));
  CHECK(Layout::of_inverse_map(map({i * 3 + j}))->text() == "A3a");
  CHECK_FALSE(Layout::of_inverse_map(map({i * 3 + j * 2})));
  CHECK_FALSE(Layout::of_inverse_map(map({floor_div(i, 2), j})));
}

TEST_CASE("an operand that is broadcast has the last axes of a layout", "[ir]") {
  const Layout blocks = *Layout::parse("NCHW16c"), last = *Layout::parse("NHWC", "NCHW"),
               row = *Layout::parse("NC_W16c", "NCW");
  CHECK(blocks.of_broadcast(numbers({32, 1, 1})).text() == "CHW16c");
  CHECK(blocks.of_broadcast(numbers({1, 1, 1})).text() == "CHW_");
  CHECK(blocks.of_broadcast(numbers({7})).text() == "W_");
  CHECK(blocks.of_broadcast(numbers({2, 1, 5, 5})).text() == "NCHW_");
  CHECK(last.of_broadcast(numbers({32, 1, 1})).text() == "HWC");
  CHECK(row.of_broadcast(numbers({32, 1})).text() == "C_W16c");
  CHECK(blocks.without('H').without('W').text() == "NC16c");
}

TEST_CASE("random layouts are one to one", "[ir]") {
  std::mt19937 random(5);
  auto below = [&](size_t bound) { return random() % bound; };
  for (int round = 0; round < 200; ++round) {
    const size_t rank = 1 + below(3);
    std::vector<Layout::Dim> dims;
    std::vector<int64_t> plain;
    for (size_t axis = 0; axis < rank; ++axis) {
      dims.push_back({axis, 0});
      for (size_t i = below(3); i-- > 0;) dims.push_back({axis, 2 + static_cast<int64_t>(below(3))});
      plain.push_back(1 + static_cast<int64_t>(below(9)));
    }
    if (below(3) == 0) dims.emplace_back();
    std::ranges::shuffle(dims, random);
    const Layout layout(std::string("ABC").substr(0, rank), dims);
    CAPTURE(layout.text());
    REQUIRE(Layout::parse(layout.text(), layout.axes()) == layout);
    const std::vector<int64_t> stored = ints(layout.from_plain(numbers(plain)));
    std::vector<int64_t> index;
    for (int64_t dim : plain) index.push_back(static_cast<int64_t>(below(static_cast<size_t>(dim))));
    const std::vector<Expr> at = layout.from_plain_index(numbers(index));
    for (size_t d = 0; d < stored.size(); ++d) CHECK(ints(at)[d] < stored[d]);
    CHECK(ints(layout.to_plain_index(at)) == index);
    CHECK(Layout::of_index_map(*layout.index_map())->dims() == layout.dims());
    CHECK(Layout::of_inverse_map(*layout.inverse_map())->dims() == layout.dims());
  }
}

}  // namespace relaxc
