// Functions of floats against double references: the recorded bounds of docs/math.md, special values, and that every
// intrinsic of the table is there for each float type.
#include <bit>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "ir/intrinsics.h"
#include "tests/codegen/float_functions.h"

#include "tests/catch.h"

namespace relaxc::codegen {

namespace {

// A row of the table: the worst error that the exhaustive check found, and where.
struct Recorded {
  struct Target {
    std::string ulps, at, nanoseconds;
  } fma, no_fma;
};
std::map<std::string, Recorded> recorded() {
  std::map<std::string, Recorded> rows;
  std::ifstream file(RELAXC_SOURCE_DIR "/docs/math.md");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("| ")) continue;
    std::vector<std::string> cells;
    std::istringstream in(line.substr(2));
    for (std::string cell; std::getline(in, cell, '|');) cells.push_back(cell);
    if (cells.size() < 7) continue;
    std::string name = cells[0].substr(0, cells[0].find(' '));
    rows["tir." + name] = {{cells[1], cells[2], cells[3]}, {cells[4], cells[5], cells[6]}};
  }
  return rows;
}

// The floats around those that the text names, one or two.
void add_neighborhood(const std::string& text, int arity, std::vector<float>& a, std::vector<float>& b) {
  const char* begin = text.c_str();
  char* end = nullptr;
  float x = std::strtof(begin, &end);
  if (end == begin) return;
  float y = arity == 2 ? std::strtof(end, nullptr) : 0;
  for (int p = -32; p < 32; ++p) {
    a.push_back(std::bit_cast<float>(std::bit_cast<int32_t>(x) + p));
    b.push_back(y);
  }
}

}  // namespace

TEST_CASE("float32 functions take few instructions", "[codegen]") {
  struct Row {
    const char* name;
    int most;  // for a vector, without moves and constants
  };
  for (const auto& [name, most] : {Row{"tir.tanh", 20}, Row{"tir.sigmoid", 18}, Row{"tir.erf", 29}}) {
    constexpr int kLanes = 8;
    VarRef i = make_dim("i");
    Buffer a = flat_buffer("A", kFloat32, 64), b = flat_buffer("B", kFloat32, 64);
    Expr index = ramp(i * kLanes, imm(1), kLanes);
    Stmt body = store(b, intrinsic(name, {load(a, {index})}, kFloat32.with_lanes(kLanes)), {index});
    std::istringstream text(
        to_assembly({{"k", prim_func({a, b}, {loop(i, imm(8), body)})}}, parse_target("x86-64-v3")));
    int count = 0;
    for (std::string line; std::getline(text, line);) {
      bool is_move = line.starts_with("\tvmov") || line.find("broadcast") != std::string::npos;
      count += line.starts_with("\tv") && line.find("ymm") != std::string::npos && !is_move;
    }
    INFO(name << ": " << count);
    CHECK(count > 0);
    CHECK(count <= most);
  }
}

TEST_CASE("float32 functions keep their recorded bounds", "[codegen]") {
  std::map<std::string, Recorded> bounds = recorded();
  bool host_has_fma = host_target().has_fma;
  for (const Intrinsic* row : float_functions()) {
    INFO(row->name);
    REQUIRE(bounds.contains(row->name));
    const Recorded& bound = bounds[row->name];
    std::vector<float> a, b;
    if (row->arity == 1) {
      for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 4099)
        a.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
      a.insert(a.end(), corner_values().begin(), corner_values().end());
      b.resize(a.size());
    } else {
      for (uint64_t p = 0; p < 500000; ++p) {
        auto [x, y] = argument_pair(p);
        a.push_back(x), b.push_back(y);
      }
    }
    for (const std::string& at : {bound.fma.at, bound.no_fma.at}) add_neighborhood(at, row->arity, a, b);
    while (a.size() % 16) a.push_back(0), b.push_back(0);
    std::vector<double> exact(a.size());
    for (size_t p = 0; p < a.size(); ++p) exact[p] = row->eval(static_cast<double>(a[p]), static_cast<double>(b[p]), 0);
    for (const std::string& target : {std::string("host"), std::string("x86-64")}) {
      std::vector<float> y(a.size());
      FloatFunction(*row, target)(a, b, y);
      Worst worst;
      for (size_t p = 0; p < a.size(); ++p) worst.add(y[p], exact[p], a[p], b[p]);
      double limit = std::stod((target == "host" && host_has_fma ? bound.fma : bound.no_fma).ulps);
      INFO(target << ": " << worst.ulps << " ulp at " << worst.a << ", " << worst.b);
      CHECK(worst.wrong == 0);
      CHECK(worst.ulps <= limit);
      CHECK(limit <= 2);
    }
  }
}

TEST_CASE("e^x that is 0 below a bound", "[codegen]") {
  // In one factor above -125.5 ln2 = -86.99, and in two.
  for (double bound : {-80.0, -86.75, -87.0, -103.0}) {
    std::vector<float> x = {NAN, INFINITY, -INFINITY, 88.72283f, 88.72284f, 1e30f, -1e30f};
    for (int p = -3; p <= 3; ++p) x.push_back(std::bit_cast<float>(std::bit_cast<int32_t>(float(bound)) + p));
    for (float each = -100; each < 89; each += 0.0137f) x.push_back(each);
    x.resize((x.size() + 15) / 16 * 16);
    std::vector<float> y(x.size());
    const auto size = static_cast<int64_t>(x.size());
    Buffer a = flat_buffer("A", kFloat32, size), b = flat_buffer("B", kFloat32, size);
    VarRef i = make_dim("i");
    const DType lanes = kFloat32.with_lanes(16);
    const Expr at = ramp(i * imm(16), imm(1), 16), value = load(a, {at});
    const Expr power =
        intrinsic("tir.exp", {select(value < scalar_imm(bound, lanes), scalar_imm(-INFINITY, lanes), value)}, lanes);
    for (const std::string& target : {std::string("host"), std::string("x86-64"), std::string("x86-64-v3")}) {
      CompiledKernel kernel(prim_func({a, b}, {loop(i, imm(size / 16), store(b, power, {at}))}), target);
      REQUIRE(kernel.run({x.data(), y.data()}).status == 0);
      for (size_t p = 0; p < x.size(); ++p) {
        INFO(target << " " << bound << ": e^" << x[p] << " is " << y[p]);
        const double exact = std::exp(static_cast<double>(x[p]));
        if (std::isnan(x[p]))
          REQUIRE(std::isnan(y[p]));
        else if (x[p] < static_cast<float>(bound))
          REQUIRE(y[p] == 0);
        else if (exact > std::numeric_limits<float>::max())
          REQUIRE(y[p] == INFINITY);
        else
          REQUIRE(std::abs(y[p] - exact) <= 2e-7 * exact + 1.5e-45);
      }
    }
  }
}

TEST_CASE("every intrinsic, on every float type, scalar and vector", "[codegen]") {
  struct Type {
    DType dtype;
    double tolerance;
  };
  for (const Type& type :
       {Type{kFloat32, 1e-6}, Type{kFloat64, 1e-14}, Type{DType::float_(16), 1e-3}, Type{DType::bfloat16(), 8e-3}}) {
    for (const std::string& target : {std::string("host"), std::string("x86-64")}) {
      for (const Intrinsic& row : intrinsics()) {
        if (!row.eval) continue;
        INFO(target << " " << row.name << " " << to_string(type.dtype));
        constexpr int64_t kSize = 20;  // a vector of 16, a vector of 3 and a scalar
        Buffer a = flat_buffer("A", kFloat64, kSize), b = flat_buffer("B", kFloat64, kSize);
        auto body = [&](const Expr& index) {
          int lanes = dtype_of(index).lanes;
          Expr x = cast_to(load(a, {index}), type.dtype.with_lanes(lanes));
          std::vector<Expr> args(static_cast<size_t>(row.arity), x);
          for (size_t p = 1; p < args.size(); ++p)
            args[p] = scalar_imm(0.75 * static_cast<double>(p), type.dtype.with_lanes(lanes));
          bool is_bool = row.result == Intrinsic::Result::kBool;
          Expr y = intrinsic(row.name, args, (is_bool ? kBool : type.dtype).with_lanes(lanes));
          return store(b, cast_to(y, kFloat64.with_lanes(lanes)), {index});
        };
        auto vector = [&](int64_t start, int lanes) { return body(ramp(imm(start), imm(1), lanes)); };
        CompiledKernel kernel(prim_func({a, b}, {vector(0, 16), vector(16, 3), body(imm(19))}), target);
        std::vector<double> x(kSize), y(kSize);
        for (size_t p = 0; p < kSize; ++p) x[p] = static_cast<double>(p) * 0.25 - 2.0;  // exact in each type
        REQUIRE(kernel.run({x.data(), y.data()}).status == 0);
        for (size_t p = 0; p < kSize; ++p) {
          double expected = row.eval(x[p], 0.75, 1.5);
          INFO(x[p] << ": " << y[p] << ", expected " << expected);
          if (std::isnan(expected)) {
            REQUIRE(std::isnan(y[p]));
          } else if (std::isinf(expected)) {
            REQUIRE(y[p] == expected);
          } else {
            REQUIRE(std::fabs(y[p] - expected) <= type.tolerance * std::max(1.0, std::fabs(expected)));
          }
        }
      }
    }
  }
}

}  // namespace relaxc::codegen
