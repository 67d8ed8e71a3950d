// Files that change while they are mapped: found before a run reads them.
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <thread>

#include <fmt/format.h>

#include "codegen/compile.h"
#include "tests/folder.h"
#include "tests/process.h"
#include "vm/error.h"
#include "vm/file_memory.h"

#include "tests/catch.h"  // last

using namespace relaxc;

namespace {

namespace fs = std::filesystem;
const std::string kSource = RELAXC_SOURCE_DIR;

std::string file_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct Change {
  const char* name;
  bool harmless;
  std::function<void(const std::string& path)> apply;
};
const std::vector<Change> kChanges = {
    {"cut off", false, [](const std::string& path) { fs::resize_file(path, 10); }},
    {"grown", false, [](const std::string& path) { std::ofstream(path, std::ios::app) << "x"; }},
    {"written to", false,
     [](const std::string& path) {
       std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
       file.seekp(100);
       file.put('?');
     }},
    {"copied over", false, [](const std::string& path) { std::ofstream(path, std::ios::binary) << "another file"; }},
    {"replaced by rename", true,
     [](const std::string& path) {
       std::ofstream(path + ".new") << "another file";
       fs::rename(path + ".new", path);
     }},
    {"deleted", true, [](const std::string& path) { fs::remove(path); }},
};

// load() makes a program in whose mapped file `path` names; its input is of that shape.
void check_changes(const std::string& path, const std::vector<int64_t>& shape, const std::function<Program()>& load) {
  const std::string content = file_text(path);
  REQUIRE(!content.empty());
  for (const Change& change : kChanges) {
    INFO(path << " is " << change.name);
    std::ofstream(path, std::ios::binary) << content;
    Session session(load(), {.threads = 1});
    Tensor x = Tensor::empty(shape, kFloat32);
    for (int64_t i = 0; i < x.size(); ++i) x.set_double(i, 0.5);
    Tensor before = session.run({x})[0];
    // Beyond the granularity of the file system's clock.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    change.apply(path);
    if (change.harmless) {
      CHECK(same_contents(session.run({x})[0], before));
    } else {
      CHECK_THROWS_AS(session.run({x}), RuntimeError);
    }
  }
}

}  // namespace

TEST_CASE("a changed artifact is an error of the next run", "[vm]") {
  relaxc::test::Folder folder("mapped");
  std::string path = folder.at("m.so");
  compile_file(kSource + "/examples/digits/digits.onnx").write(path);
  check_changes(path, {1, 1, 8, 8}, [&] { return Program::load(path); });
}

TEST_CASE("an artifact that was written over in place loads beside a program of its old content", "[vm]") {
  relaxc::test::Folder folder("mapped");
  const std::string path = folder.at("m.so"), other = folder.at("other.so");
  compile_file(kSource + "/examples/digits/digits.onnx").write(path);
  CompileSettings settings;
  settings.opt_level = GENERATE(0, 2);  // another content, and the same one
  compile_file(kSource + "/examples/digits/digits.onnx", settings).write(other);
  Tensor x = Tensor::empty({1, 1, 8, 8}, kFloat32);
  for (int64_t i = 0; i < x.size(); ++i) x.set_double(i, 0.5);
  const Tensor expected = Session(Program::load(other), {.threads = 1}).run({x})[0];
  const std::string content = file_text(other);
  const Program first = Program::load(path);
  std::vector<Session> sessions;
  for (int i = 0; i < 4; ++i) {
    sessions.emplace_back(Program::load(path), SessionOptions{.threads = 1});
    const Tensor result = sessions.back().run({x})[0];
    if (i > 0) CHECK(same_contents(result, expected));
    for (size_t old = 0; old + 1 < sessions.size(); ++old) CHECK_THROWS_AS(sessions[old].run({x}), RuntimeError);
    // Beyond the granularity of the file system's clock.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::ofstream(path, std::ios::binary) << content;
  }
  CHECK_THROWS_AS(first.artifact(), RuntimeError);
  // The newest may go before the older ones, and the other way around.
  sessions.pop_back();
  sessions.erase(sessions.begin());
  Session again(Program::load(path), {.threads = 1});
  Session beside(Program::load(path), {.threads = 1});
  CHECK(same_contents(again.run({x})[0], expected));
  CHECK(same_contents(beside.run({x})[0], expected));
}

TEST_CASE("a changed model and its changed weights are an error of the next run in this process", "[vm]") {
  relaxc::test::Folder folder("mapped");
  CompileSettings settings;
  settings.opt_level = 0;
  std::string path = folder.at("m.onnx");
  fs::copy(kSource + "/examples/digits/digits.onnx", path);
  check_changes(path, {1, 1, 8, 8}, [&] { return compile_file(path, settings).load(); });

  // And of external data.
  std::string models = kSource + "/tests/hostile/models/";
  fs::copy(models + "external_ok.onnx", folder.path);
  fs::copy(models + "weights.bin", folder.path);
  check_changes(folder.at("weights.bin"), {2, 3},
                [&] { return compile_file(folder.at("external_ok.onnx"), settings).load(); });
}

TEST_CASE("a file that is cut off under the command ends it with an error, not with a signal", "[vm]") {
  relaxc::test::Folder folder("mapped");
  std::string path = folder.at("m.so");
  relaxc::test::Outcome outcome;
  // On a busy machine the command may not have read the file yet: then it says that the file is empty.
  for (int seconds = 1; seconds <= 30; seconds *= 2) {
    compile_file(kSource + "/examples/digits/digits.onnx").write(path);
    std::thread run([&] {
      outcome = relaxc::test::run_program({RELAXC_TOOL, "bench", path, "--runs", "100000000", "--seconds", "60"}, 120);
    });
    std::this_thread::sleep_for(std::chrono::seconds(seconds));
    fs::resize_file(path, 0);
    run.join();
    if (outcome.err.find("0 bytes are too few") == std::string::npos) break;
  }
  INFO(outcome.how_it_ended() << outcome.err);
  CHECK(outcome.signal == 0);
  CHECK(outcome.exit_code == 1);
  CHECK(outcome.err.find("cut off") != std::string::npos);
}
