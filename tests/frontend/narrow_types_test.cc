// Floats of 8 bits and packed elements in ONNX models: results as make_narrow.py computes them, and damaged data.
#include <filesystem>
#include <fstream>
#include <iterator>

#include "codegen/compile.h"
#include "frontend/onnx/test_data.h"
#include "support/diagnostic.h"
#include "tests/frontend/onnx_model.h"
#include "tests/process.h"
#include "tests/vm/programs.h"

#include "tests/catch.h"  // last

using namespace relaxc;
using vm::test::TemporaryFolder;

namespace {

namespace fs = std::filesystem;
const fs::path kNarrow = RELAXC_SOURCE_DIR "/tests/frontend/narrow";

// Writes the files that NAME.data holds into the folder; returns their number.
int unpack(const fs::path& data, const std::string& folder) {
  std::ifstream file(data, std::ios::binary);
  auto item = [&]() -> std::string {
    uint32_t size = 0;
    file.read(reinterpret_cast<char*>(&size), sizeof(size));
    std::string text(file ? size : 0, '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    return text;
  };
  int count = 0;
  for (std::string name = item(); !name.empty(); name = item(), ++count)
    std::ofstream(folder + "/" + name, std::ios::binary) << item();
  return count;
}

test::Outcome run(const fs::path& model, const std::string& folder, std::vector<std::string> flags = {}) {
  std::vector<std::string> command = {RELAXC_TOOL, "run", model.string(), "--test-data", folder, "--rtol", "0",
                                      "--atol",    "0"};
  command.insert(command.end(), flags.begin(), flags.end());
  return test::run_program(command, 300);
}

// A tensor in ONNX's encoding: element type, one dim, raw_data.
std::string tensor_proto(int type, int dim, const std::string& bytes) {
  return std::string{'\x08', static_cast<char>(dim), '\x10', static_cast<char>(type)} + "J" +
         static_cast<char>(bytes.size()) + bytes;
}

}  // namespace

TEST_CASE("narrow types of ONNX models are exact", "[frontend]") {
  int models = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(kNarrow)) {
    if (entry.path().extension() != ".onnx") continue;
    ++models;
    TemporaryFolder folder;
    CHECK(unpack(fs::path(entry.path()).replace_extension(".data"), folder.path) > 3);
    test::Outcome outcome = run(entry.path(), folder.path);
    INFO(entry.path().filename() << ": " << outcome.how_it_ended() << "\n" << outcome.out << outcome.err);
    CHECK(outcome.exit_code == 0);
  }
  CHECK(models > 30);
}

TEST_CASE("the interpreter computes the same of narrow types", "[frontend]") {
  for (const char* name : {"move_int4", "move_uint2", "move_e8m0", "cast_integers_25", "quantize_e2m1_25", "cast_25"}) {
    TemporaryFolder folder;
    unpack(kNarrow / (std::string(name) + ".data"), folder.path);
    test::Outcome outcome = run(kNarrow / (std::string(name) + ".onnx"), folder.path, {"--interpret"});
    INFO(name << ": " << outcome.how_it_ended() << "\n" << outcome.out << outcome.err);
    CHECK(outcome.exit_code == 0);
  }
}

TEST_CASE("packed data of a wrong length is refused", "[frontend]") {
  TemporaryFolder folder;
  auto read = [&](const std::string& proto) {
    std::string path = folder.path + "/x.pb";
    std::ofstream(path, std::ios::binary) << proto;
    return read_tensor_pb(path);
  };
  constexpr int kInt4 = 22, kUInt2 = 25, kFloat4 = 23;
  Tensor three = read(tensor_proto(kInt4, 3, "\x8f\x07"));
  CHECK(three.bytes() == 2);
  CHECK(std::vector<int64_t>{three.as_int(0), three.as_int(1), three.as_int(2)} == std::vector<int64_t>{-1, -8, 7});
  CHECK(read(tensor_proto(kUInt2, 5, "\xe4\x02")).as_int(4) == 2);
  CHECK(read(tensor_proto(kFloat4, 2, "\x7e")).as_double(0) == -4);
  CHECK_THROWS_WITH(read(tensor_proto(kInt4, 3, "\x12\x34\x56")),
                    Catch::Contains("3 bytes of data, expected 2 for int4[3]"));
  CHECK_THROWS_WITH(read(tensor_proto(kInt4, 4, "\x12")), Catch::Contains("1 bytes of data, expected 2 for int4[4]"));
  CHECK_THROWS_WITH(read(tensor_proto(kUInt2, 9, "\x12\x34")), Catch::Contains("expected 3 for uint2[9]"));
  CHECK_THROWS_WITH(read(tensor_proto(27, 1, "\x12")), Catch::Contains("element type 27 is unknown"));
}

TEST_CASE("weights and tables of floats of few bits stay so in the artifact", "[frontend]") {
  for (const auto& [name, scale_name] : {std::pair("float4_e2m1fn", "float8_e8m0fnu"), {"float8_e4m3fn", "float32"}}) {
    const DType narrow = *parse_dtype(name);
    test::OnnxModel model(25);
    Tensor weight = Tensor::empty({256, 64}, narrow), scale = Tensor::empty({8, 64}, *parse_dtype(scale_name));
    for (int64_t i = 0; i < weight.size(); ++i) weight.set_double(i, static_cast<double>(i % 13 - 6) / 2);
    for (int64_t i = 0; i < scale.size(); ++i) scale.set_double(i, i % 2 ? 0.5 : 2);
    model.constant("w", weight).constant("s", scale).input("x", kFloat32, "n,256").input("ids", kInt64, "k");
    model.output("y").output("rows");
    onnx::NodeProto& real = model.node("DequantizeLinear", "w s", "real");
    test::set_int(test::set_int(test::set_int(real, "axis", 0), "block_size", 32), "output_dtype", 1);
    model.node("MatMul", "x real", "y");
    test::set_int(model.node("Gather", "real ids", "rows"), "axis", 1);
    CompileSettings settings;
    const CompiledModule compiled = compile(model.import(settings), settings);
    int64_t stored = 0;
    for (const Tensor& constant : compiled.executable().constants) stored += constant.bytes();
    CHECK(stored <= 2 * (weight.bytes() + scale.bytes()) + 64);  // for the product and for the rows

    Tensor x = Tensor::empty({256, 256}, kFloat32), ids = Tensor::of<int64_t>({2}, kInt64, {63, 5});
    for (int64_t i = 0; i < x.size(); ++i) x.set_double(i, i % 257 == 0);
    const std::vector<Tensor> results = Session(compiled.load()).run(std::vector<Tensor>{x, ids});
    int wrong = 0;
    for (int64_t i = 0; i < weight.size(); ++i) {
      const int64_t row = i / 64, column = i % 64;
      const double number = weight.as_double(i) * scale.as_double(row / 32 * 64 + column);
      wrong += results[0].as_double(i) != number;
      if (column == 5) wrong += results[1].as_double(2 * row + 1) != number;
    }
    CHECK(wrong == 0);
  }
}
