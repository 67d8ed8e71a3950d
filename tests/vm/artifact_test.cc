#include "vm/artifact.h"

#include <cstring>
#include <fstream>
#include <iterator>

#include "support/diagnostic.h"
#include "tests/vm/programs.h"

#include "tests/catch.h"

using namespace relaxc;
using namespace relaxc::vm;
using namespace relaxc::vm::test;

namespace {

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_file(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

// The shared object of add_program's kernel; empty when there is no C compiler.
std::string compile_kernel(const TemporaryFolder& folder, const std::string& symbol) {
  write_file(folder.file("k.c"),
             "#include <stdint.h>\n"
             "typedef struct { void* const* data; const int64_t* scalars; void* context; } args_t;\n"
             "int32_t " +
                 symbol +
                 "(const args_t* args) {\n"
                 "  const float* a = args->data[0]; const float* b = args->data[1]; float* out = args->data[2];\n"
                 "  for (int64_t i = 0; i < args->scalars[0]; ++i) out[i] = a[i] + b[i];\n"
                 "  return 0;\n}\n");
  std::string command = "cc -shared -fPIC -o " + folder.file("k.so") + " " + folder.file("k.c");
  if (std::system(command.c_str()) != 0) return {};
  return read_file(folder.file("k.so"));
}

// A program without machine code, with weights.
Executable plain_program() {
  ExecutableBuilder builder;
  FunctionBuilder main(builder, "main");
  Reg out = main.new_register();
  main.emit(Opcode::kConstLoad, {out, builder.constant(Tensor::of<float>({3}, kFloat32, {1, 2, 3}))});
  main.emit(Opcode::kRet, {out});
  main.finish();
  return builder.finish();
}

}  // namespace

TEST_CASE("an artifact with kernels loads and runs", "[vm]") {
  TemporaryFolder folder;
  std::string path = folder.file("model.so");
  std::string elf = compile_kernel(folder, "relaxc_k_add");
  if (elf.empty()) return;
  write_artifact(path, std::as_bytes(std::span(elf)), add_program());
  Program program = Program::load(path);
  CHECK(to_string(program.inputs()[1]) == "w: float32[n, 4]");
  CHECK(program.executable().metadata.at("peak_bytes") == "16 * n");
  Tensor x = Tensor::of<float>({1, 4}, kFloat32, {1, 2, 3, 4});
  Session session(program, {.threads = 1});
  CHECK(session.run({x, x})[0].as_double(3) == 12);
  CHECK(reinterpret_cast<uintptr_t>(program.executable().constants[0].raw()) % kAlignment == 0);
  CHECK(session.run({}, "weights")[0].as_double(2) == 3);

  // A new file under the old name, while the old one is in use.
  std::string other = compile_kernel(folder, "relaxc_k_other");
  write_artifact(path, std::as_bytes(std::span(other)), add_program());
  CHECK(error_of([&] { Program::load(path); }) ==
        path + ": error: kernel 'relaxc_k_add' is missing; compile the model again with 'relaxc compile'");
  CHECK(session.run({x, x})[0].as_double(3) == 12);
}

TEST_CASE("an artifact loads from memory, which is the host's again then", "[vm]") {
  TemporaryFolder folder;
  std::string elf = compile_kernel(folder, "relaxc_k_add");
  if (elf.empty()) return;
  write_artifact(folder.file("model.so"), std::as_bytes(std::span(elf)), add_program());
  std::string bytes = read_file(folder.file("model.so"));
  auto artifact = [&] { return std::as_bytes(std::span(bytes)); };
  Program program = Program::load_memory(artifact());
  const std::string error = "the artifact in the caller's memory: error: ";
  CHECK(error_of([&] { Program::load_memory(artifact().first(100)); }).starts_with(error));
  CHECK(error_of([] { Program::load_memory({}); }) == error + "the file is empty; " + kRecompile);
  CHECK(error_of([] { Program::load_memory({}, {.name = "linked"}); }).starts_with("linked: error: "));
  bytes.assign(bytes.size(), '\0');
  Tensor x = Tensor::of<float>({1, 4}, kFloat32, {1, 2, 3, 4});
  CHECK(Session(program, {.threads = 1}).run({x, x})[0].as_double(3) == 12);
}

TEST_CASE("damaged artifacts are refused with one line", "[vm]") {
  TemporaryFolder folder;
  std::string path = folder.file("model.so");
  write_artifact(path, {}, plain_program());
  CHECK(Session(Program::load(path), {.threads = 1}).run({})[0].as_double(2) == 3);
  std::string good = read_file(path);
  auto load = [&](const std::string& content) {
    write_file(path, content);
    try {
      load_artifact(path).weights->run();
    } catch (const CompileError& error) {
      std::string text = error.what();
      REQUIRE(text.find('\n') == std::string::npos);
      REQUIRE(text.starts_with(path + ": error: "));
      return text;
    } catch (const RuntimeError& error) {
      std::string text = error.what();
      REQUIRE(text.starts_with(path + ": the weights have changed: "));
      return text;
    }
    return std::string("no error");
  };
  REQUIRE(load(good) == "no error");
  for (size_t size = 0; size < good.size(); size += 1 + size / 64) REQUIRE(load(good.substr(0, size)) != "no error");
  for (size_t cut = 1; cut < 80; ++cut) REQUIRE(load(good.substr(0, good.size() - cut)) != "no error");
  for (size_t bit = 0; bit < good.size() * 8; bit += bit < (good.size() - 200) * 8 ? 61 : 1) {
    std::string flipped = good;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    REQUIRE(load(flipped) != "no error");
  }
  CHECK(load(good + "x") != "no error");
  CHECK(load("").find("the file is empty") != std::string::npos);
  auto with_byte = [&](size_t from_end, char value) {  // of the footer
    std::string changed = good;
    changed[changed.size() - from_end] = value;
    return changed;
  };
  CHECK(load(with_byte(56, 1)).find("format version is 1, this runtime reads 4") != std::string::npos);
  for (size_t last_byte_of_size : {41, 33, 25, 17}) {
    write_file(path, with_byte(last_byte_of_size, '\x7f'));
    std::string error = error_of([&] { load_artifact(path, {.verify_hash = false}); });
    CHECK(error.find(last_byte_of_size == 17 ? "its footer says" : "do not fit the file") != std::string::npos);
  }

  // Weights are compared with their hash by the first run, by later ones, and by who asks for it.
  const std::string weight = {'\0', '\0', '\x40', '\x40'};  // 3.0f
  std::string changed = good;
  changed[good.rfind(weight)] = '\x01';
  write_file(path, changed);
  Program program = Program::load(path);
  for (int session = 0; session < 2; ++session) {
    CHECK(error_of([&] { Session(program, {.threads = 1}).run({}); }).find("the weights have changed") !=
          std::string::npos);
  }
  CHECK_THROWS_AS(program.check_weights(), RuntimeError);
  CHECK_NOTHROW(Session(Program::load(path, {.verify_hash = false}), {.threads = 1}).run({}));

  // Without the hashes the other checks hold alone: no crash, whatever is flipped.
  for (size_t bit = 0; bit < good.size() * 8; bit += bit < (good.size() - 200) * 8 ? 7 : 1) {
    std::string flipped = good;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    write_file(path, flipped);
    error_of([&] { load_artifact(path, {.verify_hash = false}); });
  }
  CHECK(error_of([&] { load_artifact(folder.file("none.so")); }).find("no such file") == std::string::npos);
  CHECK_THROWS_AS(load_artifact(folder.file("none.so")), CompileError);
  CHECK_THROWS_AS(write_artifact(folder.file("missing/x.so"), {}, plain_program()), RuntimeError);
}
