// Every operator of ONNX, given inputs of any count, rank, dtype and size and attributes with any numbers, is imported
// and taken through the passes, or refused with an error that names its node. RELAXC_OPERATOR_DRAWS=N draws N times for
// each operator.
#include <cstdlib>
#include <cstring>
#include <random>

#include "codegen/compile.h"
#include "frontend/onnx/import.h"
#include "support/check.h"
#include "support/diagnostic.h"

#include "tests/catch.h"  // last

namespace relaxc::test {

namespace {

// ---- Protobuf's wire format, as far as a model of one node needs it

std::string varint(uint64_t value) {
  std::string result;
  for (; value >= 128; value >>= 7) result += static_cast<char>(value | 128);
  return result + static_cast<char>(value);
}
std::string number(int field, int64_t value) {
  return varint(static_cast<uint64_t>(field) << 3) + varint(static_cast<uint64_t>(value));
}
std::string bytes(int field, const std::string& content) {
  return varint(static_cast<uint64_t>(field) << 3 | 2) + varint(content.size()) + content;
}

constexpr int kFloatType = 1, kInt32Type = 6, kInt64Type = 7, kBoolType = 9;
constexpr int kOpset = 17;

class ModelMaker {
 public:
  explicit ModelMaker(uint64_t seed) : random_(seed) {}

  std::string make(const OnnxOperator& op) {
    std::string node = bytes(3, "the_node") + bytes(4, op.name) + bytes(7, op.domain), graph;
    int most = std::min(op.most_inputs, op.least_inputs + 3);
    int inputs = op.least_inputs + below(most - op.least_inputs + 1);
    for (int i = 0; i < inputs; ++i) {
      bool absent = folds_ ? below(4) == 0 : i > 0 && below(12) == 0;
      std::string name = absent ? "" : "x" + std::to_string(i);
      node += bytes(1, name);
      if (!absent) graph += !folds_ && below(3) ? graph_input(name) : initializer(name);
    }
    for (int i = below(8) ? 0 : 2; i >= 0; --i) node += bytes(2, "y" + std::to_string(i));
    for (int i = below(3); i > 0; --i) node += bytes(5, attribute());
    graph = bytes(1, node) + bytes(2, "g") + graph + bytes(12, bytes(1, "y0"));
    return number(1, 8) + bytes(8, bytes(1, "") + number(2, kOpset)) + bytes(7, graph) +
           (op.domain.empty() ? "" : bytes(8, bytes(1, op.domain) + number(2, 1)));
  }

 private:
  int below(int count) { return static_cast<int>(random_() % static_cast<uint64_t>(count)); }
  template <class T, size_t N>
  const T& one_of(const T (&items)[N]) {
    return items[below(N)];
  }
  int dtype() { return is_mixed_ ? any_dtype() : common_; }
  int any_dtype() {
    return one_of({kFloatType, kFloatType, kFloatType, kInt64Type, kInt64Type, kInt32Type, kBoolType});
  }
  int64_t dim() { return one_of<int64_t>({0, 1, 2, 3, 4, 8}); }

  std::string graph_input(const std::string& name) {
    std::string shape;
    for (int d = below(6); d > 0; --d)
      shape += bytes(1, below(3) ? number(1, dim()) : bytes(2, one_of<std::string>({"n", "m"})));
    return bytes(11, bytes(1, name) + bytes(2, bytes(1, number(1, dtype()) + bytes(2, shape))));
  }
  std::string initializer(const std::string& name) {
    int type = dtype();
    std::string dims;
    int64_t count = 1;
    for (int d = below(folds_ ? 2 : 4); d > 0; --d) {
      int64_t size = dim();
      dims += number(1, size);
      count *= size;
    }
    std::string data;
    for (; count > 0; --count) {
      int64_t whole = below(8) - 2;
      if (below(16) == 0) whole = one_of({INT64_MAX, INT64_MIN, int64_t{INT32_MAX}});
      float real = static_cast<float>(whole) / 2;
      char raw[8];
      std::memcpy(raw, &whole, 8);
      if (type == kFloatType) std::memcpy(raw, &real, 4);
      if (type == kBoolType) raw[0] = static_cast<char>(whole & 1);
      data.append(raw, type == kInt64Type ? 8 : type == kBoolType ? 1 : 4);
    }
    return bytes(5, dims + number(2, type) + bytes(8, name) + bytes(9, data));
  }
  std::string attribute() {
    const char* kInt[] = {"axis",        "keepdims",    "group",      "to",  "num_groups",
                          "blocksize",   "num_outputs", "batch_dims", "k",   "ceil_mode",
                          "hidden_size", "exclusive",   "allowzero",  "size"};
    const char* kInts[] = {"axes", "kernel_shape", "strides", "pads", "dilations", "perm", "output_shape", "split"};
    const char* kString[] = {"mode", "auto_pad", "direction", "equation", "reduction"};
    const char* kFloat[] = {"alpha", "epsilon", "ratio"};
    switch (below(4)) {
      case 0: {
        std::string numbers;
        for (int i = below(5); i > 0; --i) numbers += number(8, one_of<int64_t>({-1, 0, 1, 1, 2, 3, 1 << 20}));
        return bytes(1, one_of(kInts)) + numbers + number(20, 7);
      }
      case 1:
        return bytes(1, one_of(kString)) + number(20, 3) +
               bytes(4, one_of<std::string>({"", "SAME_UPPER", "VALID", "reverse", "linear", "ij,jk->ik", "->"}));
      case 2: {
        float value = static_cast<float>(below(5)) - 1;
        return bytes(1, one_of(kFloat)) + number(20, 1) + std::string(1, 2 << 3 | 5) +
               std::string(reinterpret_cast<const char*>(&value), 4);
      }
      default:
        return bytes(1, one_of(kInt)) + number(20, 2) + number(3, one_of<int64_t>({-3, -1, 0, 1, 2, 7, INT64_MAX}));
    }
  }

  std::mt19937_64 random_;
  int common_ = any_dtype();
  bool is_mixed_ = below(4) == 0;
  bool folds_ = below(4) == 0;  // all operands are what shape arithmetic is made of, or absent
};

// Empty: accepted, or refused as it should be.
std::string problem_with(const std::string& model, bool& accepted) {
  try {
    IRModule module = import_onnx_bytes(std::as_bytes(std::span(model)), "drawn.onnx", op_table());
    accepted = true;
    CompileSettings settings;
    settings.jobs = 1;
    settings.target = "x86-64-v3";
    run_pipeline(module, settings);
  } catch (const CompileError& error) {
    if (std::getenv("RELAXC_PRINT_DRAWS")) fmt::print(stderr, "  {}\n", error.what());
    bool names_it = std::string(error.what()).find("the_node") != std::string::npos ||
                    std::string(error.what()).find("'x") != std::string::npos ||
                    std::string(error.what()).find("'y") != std::string::npos;
    return names_it ? "" : std::string("the error names neither node nor input: ") + error.what();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("every ONNX operator takes any inputs or refuses them", "[frontend]") {
  const char* wish = std::getenv("RELAXC_OPERATOR_DRAWS");
  int draws = wish ? std::atoi(wish) : 8, accepted = 0, failures = 0;
  uint64_t seed = 0;
  for (const OnnxOperator& op : onnx_operators()) {
    for (int i = 0; i < draws && failures < 20; ++i) {
      bool runs = false;
      std::string model = ModelMaker(++seed).make(op);
      if (std::getenv("RELAXC_PRINT_DRAWS")) fmt::print(stderr, "{} {}\n", seed, op.name);
      std::string problem = problem_with(model, runs);
      accepted += runs;
      if (problem.empty()) continue;
      ++failures;
      FAIL_CHECK(op.name << ", draw " << seed << ": " << problem);
    }
  }
  CHECK(accepted > 100);
}

}  // namespace relaxc::test
