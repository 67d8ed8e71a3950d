// The rule for matrix registers, on products and convolutions of all dtypes that tiles have, with constant and symbolic
// extents that do and do not fill tiles: the same numbers in the interpreter, before and after the loops over tiles
// have become instructions, and in machine code where this processor has these.
#include <fmt/format.h>

#include "codegen/target.h"
#include "ir/text/printer.h"
#include "support/diagnostic.h"
#include "tests/schedule/chains.h"
#include "tir/analysis/annotations.h"
#include "tir/compute.h"
#include "tir/rules/builtin_rules.h"
#include "tir/schedule/schedule.h"
#include "tir/tile_forms.h"

#include "tests/catch.h"

namespace relaxc::test {

namespace {

constexpr const char* kTarget = "cpu=sapphirerapids";

// Returns the program with the notes that fusion and note_constants leave on the block of a product.
PrimFuncRef noted(const PrimFuncRef& program, const std::string& op) {
  PrimFuncRef named = with_op_name(program, op);
  return with_body(named, rewrite(named->body, [](const Ref<Block>& block) -> std::optional<Stmt> {
                     if (!block->init) return std::nullopt;
                     return edited<Block>(block, [](Block& product) {
                       product.annotations.set(annotation<"constant_operand">(), std::string("W"));
                     });
                   }));
}

Expr product_of(const TileForm& form, const Expr& a, const Expr& b) {
  return cast_to(a, form.result) * cast_to(b, form.result);
}

// y[b, m, n] += x[b, m, k] * w[k, n], and an epilogue.
PrimFuncRef matmul(const TileForm& form, const Expr& batch, const Expr& rows, int64_t columns, int64_t depth) {
  ComputeBuilder b;
  const Expr n = int_imm(columns), k = int_imm(depth);
  Buffer x = b.input("X", form.a, {batch, rows, k}), w = b.input("W", form.b, {k, n});
  Buffer y = b.reduce("Y", form.result, {batch, rows, n}, {k}, zero(form.result), combine_sum, [&](Axes i, Axes r) {
    return product_of(form, load(x, {i[0], i[1], r[0]}), load(w, {r[0], i[2]}));
  });
  Buffer out = b.compute("Z", form.result, {batch, rows, n},
                         [&](Axes i) { return load(y, {i[0], i[1], i[2]}) + load(y, {i[0], i[1], i[2]}); });
  return noted(b.finish({out}), "matmul");
}

// y[n, f, i, j] += x[n, c, i * stride + di, j * stride + dj] * w[f, c, di, dj], without an epilogue.
PrimFuncRef convolution(const TileForm& form, const Expr& images, const Expr& width, int64_t channels, int64_t filters,
                        int64_t window, int64_t stride) {
  ComputeBuilder b;
  const Expr height = int_imm(5), c = int_imm(channels), f = int_imm(filters), size = int_imm(window);
  Buffer x = b.input("X", form.a, {images, c, height * stride + window - 1, width * stride + window - 1});
  Buffer w = b.input("W", form.b, {f, c, size, size});
  Buffer y = b.reduce("Y", form.result, {images, f, height, width}, {c, size, size}, zero(form.result), combine_sum,
                      [&](Axes i, Axes r) {
                        return product_of(form, load(x, {i[0], r[0], i[2] * stride + r[1], i[3] * stride + r[2]}),
                                          load(w, {i[1], r[0], r[1], r[2]}));
                      });
  return noted(b.finish({y}), "nn.conv2d");
}

// The same, with windows of 3 x 3, over an image in blocks of 16 channels that gets a border of zeros, into one of
// blocks of 16 filters (ops/convolution_layouts.cc).
PrimFuncRef blocked_convolution(const TileForm& form, const Expr& images, const Expr& width, int64_t blocks,
                                int64_t filter_blocks, int64_t stride) {
  ComputeBuilder b;
  const Expr height = int_imm(6), lanes = int_imm(16), c = int_imm(blocks), f = int_imm(filter_blocks);
  Buffer x = b.input("X", form.a, {images, c, height, width, lanes});
  Buffer w = b.input("W", form.b, {f, c, int_imm(3), int_imm(3), lanes, lanes});
  Buffer padded = b.compute("P", form.a, {images, c, height + 2, width + 2, lanes}, [&](Axes i) {
    const Expr inside = int_imm(1) <= i[2] && i[2] <= height && int_imm(1) <= i[3] && i[3] <= width;
    return if_then_else(inside, load(x, {i[0], i[1], i[2] - 1, i[3] - 1, i[4]}), zero(form.a));
  });
  auto size = [&](const Expr& extent) { return floor_div(extent - 1, stride) + 1; };
  Buffer y =
      b.reduce("Y", form.result, {images, f, size(height), size(width), lanes}, {c, int_imm(3), int_imm(3), lanes},
               zero(form.result), combine_sum, [&](Axes i, Axes r) {
                 return product_of(form, load(padded, {i[0], r[0], i[2] * stride + r[1], i[3] * stride + r[2], r[3]}),
                                   load(w, {i[1], r[0], r[1], r[2], r[3], i[4]}));
               });
  return noted(b.finish({y}), "nn.conv2d");
}

// Applies the rule, with decisions given, and compares for these sizes. Returns the scheduled program.
PrimFuncRef check_tiles(const PrimFuncRef& program, const std::vector<std::map<std::string, int64_t>>& sizes,
                        const Attrs& given = {}) {
  const Target target = codegen::parse_target(kTarget);
  const ScheduleRule& rule = *find_builtin_rule("tiles");
  Schedule schedule(program, {.show_program = false});
  Decisions decisions{rule.name, rule.decisions, given, {}, "program"};
  CHECK(rule.fits(program, target, decisions) == std::nullopt);
  std::optional<Diagnostic> refusal = apply_rule(rule, schedule, target, decisions);
  REQUIRE((refusal ? refusal->message : "") == "");
  const Target host = codegen::host_target();
  CHECK(compare_programs(program, schedule.function(), sizes, 3,
                         {.compile = host.has_int8_tiles && host.has_bfloat16_tiles, .target = kTarget}) == "");
  return schedule.function();
}

// Returns whether the program copies a buffer to rows for tiles.
bool copies_rows(const PrimFuncRef& program, const std::string& buffer) {
  return print_function("main", program).find(buffer + "_global") != std::string::npos;
}

}  // namespace

TEST_CASE("products on matrix registers", "[schedule]") {
  for (const TileForm& form : tile_forms()) {
    INFO(form.name);
    const int64_t depth = form.depth;
    check_tiles(matmul(form, int_imm(1), int_imm(64), 64, 2 * depth), {{}});
    check_tiles(matmul(form, int_imm(2), int_imm(19), 40, depth + 5), {{}});
    check_tiles(matmul(form, make_dim("b"), make_dim("m"), 48, depth + 9),
                {{{"b", 2}, {"m", 1}}, {{"b", 1}, {"m", 16}}, {{"b", 3}, {"m", 37}}, {{"b", 0}, {"m", 5}}});
  }
}

TEST_CASE("convolutions on matrix registers", "[schedule]") {
  for (const TileForm& form : tile_forms()) {
    INFO(form.name);
    check_tiles(convolution(form, int_imm(2), int_imm(7), 8, 32, 3, 2), {{}});
    check_tiles(convolution(form, int_imm(1), int_imm(4), 64, 20, 1, 1), {{}});
    check_tiles(convolution(form, make_dim("n"), int_imm(6), 16, 16, 2, 1), {{{"n", 1}}, {{"n", 3}}});
    check_tiles(convolution(form, make_dim("n"), make_dim("w"), 9, 17, 3, 1),
                {{{"n", 2}, {"w", 3}}, {{"n", 1}, {"w", 21}}});
  }
}

TEST_CASE("convolutions of images in blocks on matrix registers", "[schedule]") {
  for (const TileForm& form : {tile_forms()[1], tile_forms()[4]}) {
    for (int64_t stride : {1, 2}) {
      INFO(form.name << " stride " << stride);
      check_tiles(blocked_convolution(form, int_imm(2), int_imm(5), 2, 3, stride), {{}});
      check_tiles(blocked_convolution(form, make_dim("n"), int_imm(7), 1, 2, stride), {{{"n", 1}}, {{"n", 3}}});
    }
  }
}

TEST_CASE("tiles of matrix registers are read where their rows are evenly apart", "[schedule]") {
  for (const TileForm& form : {tile_forms()[1], tile_forms()[4]}) {
    const int64_t depth = form.depth;
    INFO(form.name);
    CHECK_FALSE(copies_rows(check_tiles(matmul(form, int_imm(1), int_imm(48), 32, 2 * depth), {{}}), "X"));
    CHECK(copies_rows(check_tiles(matmul(form, int_imm(1), int_imm(50), 32, 2 * depth), {{}}), "X"));
    CHECK(copies_rows(check_tiles(matmul(form, int_imm(1), int_imm(48), 32, depth + 4), {{}}), "X"));
    Attrs given;
    given.set("in_place", false);
    CHECK(copies_rows(check_tiles(matmul(form, int_imm(1), int_imm(48), 32, depth), {{}}, given), "X"));
    for (int64_t stride : {1, 2, 3}) {
      INFO("stride " << stride);
      const int64_t blocks = depth / 16;
      CHECK_FALSE(
          copies_rows(check_tiles(blocked_convolution(form, int_imm(1), int_imm(12), blocks, 2, stride), {{}}), "P"));
      CHECK_FALSE(copies_rows(
          check_tiles(blocked_convolution(form, int_imm(2), int_imm(9), 2 * blocks, 1, stride), {{}}), "P"));
      CHECK_FALSE(copies_rows(check_tiles(blocked_convolution(form, make_dim("n"), int_imm(11), blocks, 2, stride),
                                          {{{"n", 1}}, {{"n", 3}}}),
                              "P"));
    }
  }
}

TEST_CASE("decisions of the rule for matrix registers", "[schedule]") {
  const TileForm& form = tile_forms()[1];
  for (int64_t rows : {1, 2}) {
    for (int64_t columns : {1, 2}) {
      for (int flags = 0; flags < 4; ++flags) {
        Attrs given;
        given.set("row_tiles", rows);
        given.set("column_tiles", columns);
        given.set("copies_before", (flags & 1) != 0);
        if (flags & 1) given.set("columns_first", (flags & 2) != 0);
        given.set("groups", int64_t{3});
        INFO("rows " << rows << " columns " << columns << " flags " << flags);
        check_tiles(matmul(form, int_imm(1), int_imm(96), 64, 100), {{}}, given);
      }
    }
  }
}

TEST_CASE("what does not fit matrix registers", "[schedule]") {
  const TileForm& form = tile_forms()[1];
  auto reason = [](const PrimFuncRef& program, const char* target) {
    const ScheduleRule& rule = *find_builtin_rule("tiles");
    Decisions decisions{rule.name, rule.decisions, {}, {}, "program"};
    return rule.fits(program, codegen::parse_target(target), decisions).value_or("");
  };
  PrimFuncRef product = matmul(form, int_imm(1), int_imm(64), 64, 128);
  CHECK(reason(product, kTarget).empty());
  CHECK(reason(product, "cpu=cooperlake") == "the target has no matrix registers");
  CHECK(reason(matmul(form, int_imm(1), int_imm(2), 64, 128), kTarget) == "tiles would be mostly padding");
  CHECK(reason(matmul({"", 16, kFloat32, kFloat32, kFloat32, "", nullptr}, int_imm(1), int_imm(64), 64, 128),
               kTarget) == "no tiles have its dtypes");
}

}  // namespace relaxc::test
