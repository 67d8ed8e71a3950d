// Output of relaxc to files of every kind, and the messages when it cannot be written.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include <fmt/format.h>

#include "tests/folder.h"
#include "tests/process.h"
#include "vm/output_file.h"

#include "tests/catch.h"  // last

namespace {

namespace fs = std::filesystem;
using relaxc::test::Outcome;
using relaxc::test::run_program;

const std::string kModel = RELAXC_SOURCE_DIR "/examples/digits/digits.onnx",
                  kModule = RELAXC_SOURCE_DIR "/tests/modules/matmul_relu.py";

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void write_file(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}
bool holds_text(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Every way in which a subcommand writes one file; {} is where to.
const std::vector<std::vector<std::string>> kWriters = {
    {"compile", kModel, "-o", "{}"},
    {"compile", kModel, "--emit=graph", "-o", "{}"},
    {"bench", kModel, "--runs", "3", "--warmup", "0", "--json", "{}"},
    {"fmt", kModel, "--constants", "{}"},
};

Outcome run_with(std::vector<std::string> arguments, const std::string& output) {
  for (std::string& argument : arguments) {
    if (argument == "{}") argument = output;
  }
  arguments.insert(arguments.begin(), RELAXC_TOOL);
  return run_program(arguments, 300);
}
bool is_deterministic(const std::vector<std::string>& writer) { return writer[0] != "bench"; }

// A copy of a device such as /dev/full, so that a mistake does not replace the machine's own; false without the right
// to make one, and where the file system's devices cannot be opened.
bool make_device(const std::string& path, unsigned minor_number) {
  if (mknod(path.c_str(), S_IFCHR | 0666, makedev(1, minor_number)) != 0) return false;
  int descriptor = open(path.c_str(), O_WRONLY);
  if (descriptor < 0) return fs::remove(path), false;
  close(descriptor);
  return true;
}
constexpr unsigned kNull = 3, kFull = 7;

mode_t kind_of(const std::string& path) {
  struct stat status{};
  return lstat(path.c_str(), &status) == 0 ? status.st_mode & S_IFMT : 0;
}

}  // namespace

TEST_CASE("pipes, devices and links stay what they are", "[tools]") {
  test::Folder folder("output");
  for (const auto& writer : kWriters) {
    INFO(writer[0] << " " << writer[2]);
    std::string plain = folder.at("plain"), link = folder.at("link"), pipe = folder.at("pipe");
    REQUIRE(run_with(writer, plain).exit_code == 0);
    std::string content = read_file(plain);
    REQUIRE(!content.empty());

    write_file(folder.at("target"), "old");
    fs::create_symlink("target", link);
    CHECK(run_with(writer, link).exit_code == 0);
    CHECK(kind_of(link) == S_IFLNK);
    if (is_deterministic(writer)) CHECK(read_file(folder.at("target")) == content);
    CHECK(read_file(folder.at("target")) != "old");

    fs::remove(folder.at("target"));  // the link leads nowhere now
    CHECK(run_with(writer, link).exit_code == 0);
    CHECK(kind_of(link) == S_IFLNK);
    CHECK(kind_of(folder.at("target")) == S_IFREG);

    REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
    std::string received;
    std::thread reader([&] { received = read_file(pipe); });
    CHECK(run_with(writer, pipe).exit_code == 0);
    if (int end = open(pipe.c_str(), O_WRONLY | O_NONBLOCK); end >= 0) close(end);  // if nobody wrote
    reader.join();
    CHECK(kind_of(pipe) == S_IFIFO);
    CHECK(!received.empty());
    if (is_deterministic(writer)) CHECK(received == content);

    std::string device = folder.at("null");
    if (make_device(device, kNull)) {
      CHECK(run_with(writer, device).exit_code == 0);
      CHECK(kind_of(device) == S_IFCHR);
    }
    for (const char* name : {"plain", "link", "target", "pipe", "null"}) fs::remove(folder.at(name));
    CHECK(folder.count() == 0);
  }
}

TEST_CASE("no output replaces what it is made from", "[tools]") {
  test::Folder folder("output");
  for (std::vector<std::string> writer : kWriters) {
    INFO(writer[0] << " " << writer[2]);
    std::string model = folder.at("model.onnx"), link = folder.at("link");
    fs::copy_file(kModel, model, fs::copy_options::overwrite_existing);
    fs::remove(link);
    fs::create_symlink("model.onnx", link);
    writer[1] = model;
    for (const std::string& output : {model, link}) {
      Outcome outcome = run_with(writer, output);
      CHECK(outcome.exit_code == 2);
      CHECK(holds_text(outcome.err, "is the input"));
      CHECK((read_file(model) == read_file(kModel)));  // not printed
    }
  }
  // Nor a file beside it.
  fs::path models = RELAXC_SOURCE_DIR "/tests/hostile/models";
  std::string weights = folder.at("weights.bin");
  fs::copy(models / "external_ok.onnx", folder.path);
  fs::copy(models / "weights.bin", folder.path);
  Outcome outcome = run_with({"compile", folder.at("external_ok.onnx"), "-o", "{}"}, weights);
  CHECK(outcome.exit_code == 1);
  CHECK(holds_text(outcome.err, "holds weights of the model"));
  CHECK((read_file(weights) == read_file((models / "weights.bin").string())));
}

TEST_CASE("a write that fails is an error, and the old file stays", "[tools]") {
  test::Folder folder("output");
  for (const auto& writer : kWriters) {
    INFO(writer[0] << " " << writer[2]);
    auto fails = [&](const std::string& output) {
      Outcome outcome = run_with(writer, output);
      INFO(output << ": " << outcome.how_it_ended() << outcome.err);
      CHECK(outcome.exit_code == 1);
      CHECK(holds_text(outcome.err, "error: cannot write '" + output + "'"));
    };
    if (std::string full = folder.at("full"); make_device(full, kFull)) {
      fails(full);
      CHECK(kind_of(full) == S_IFCHR);
      fs::remove(full);
    }
    fails(folder.at("none/x"));
    fails(folder.path.string());

    // A limit on the size of files, in blocks of 512 or 1024 bytes, stands for a disk that is full.
    write_file(folder.at("old"), "old");
    std::string command = fmt::format("trap '' XFSZ; ulimit -f 0; exec '{}'", RELAXC_TOOL);
    for (const std::string& argument : writer) {
      command += fmt::format(" '{}'", argument == "{}" ? folder.at("old") : argument);
    }
    Outcome outcome = run_program({"/bin/sh", "-c", "TMPDIR=/tmp; " + command}, 300);
    INFO(outcome.how_it_ended() << outcome.err);
    CHECK(outcome.exit_code == 1);
    CHECK(read_file(folder.at("old")) == "old");
    fs::remove(folder.at("old"));
    CHECK(folder.count() == 0);
  }
}

TEST_CASE("standard output that cannot be written is an error of every subcommand", "[tools]") {
  const std::vector<std::string> commands = {"--help",
                                             "run --help",
                                             "run " + kModel,
                                             "run " + kModel + " --profile",
                                             "compile " + kModel + " --emit=graph",
                                             "compile " + kModel + " --emit=bytecode -o -",
                                             "opt " + kModule,
                                             "opt --list-passes",
                                             "opt --list-ops",
                                             "opt --list-primitives",
                                             "opt --list-annotations",
                                             "opt --list-rules",
                                             "opt --list-intrins",
                                             "bench --runs 3 --warmup 0 " + kModel,
                                             "bench --runs 3 --warmup 0 --json - " + kModel,
                                             "fmt " + kModule,
                                             "check " + kModule,
                                             "diff " + kModule + " " + kModule};
  for (const std::string& command : commands) {
    for (const char* closed : {">/dev/full", ">&-"}) {
      Outcome outcome = run_program({"/bin/sh", "-c", fmt::format("'{}' {} {}", RELAXC_TOOL, command, closed)}, 300);
      INFO(command << " " << closed << ": " << outcome.how_it_ended() << outcome.err);
      CHECK(outcome.exit_code == 1);
      CHECK(holds_text(outcome.err, "error: cannot write standard output"));
    }
  }
}

TEST_CASE("a minus is standard output", "[tools]") {
  Outcome shown = run_program({RELAXC_TOOL, "compile", kModule, "--emit=graph"}, 300);
  Outcome named = run_program({RELAXC_TOOL, "compile", kModule, "--emit=graph", "-o", "-"}, 300);
  CHECK(named.exit_code == 0);
  CHECK(named.out == shown.out);
  CHECK(!fs::exists("-"));
  CHECK(run_program({RELAXC_TOOL, "compile", kModule, "-o", "-"}, 300)
            .out.starts_with("\x7f"
                             "ELF"));
  // By its path the artifact goes there alone.
  test::Folder folder("output");
  std::string artifact = folder.at("m.so");
  std::string command = fmt::format("'{}' compile '{}' -o /dev/stdout > '{}'", RELAXC_TOOL, kModel, artifact);
  CHECK(run_program({"/bin/sh", "-c", command}, 300).exit_code == 0);
  CHECK(run_program({RELAXC_TOOL, "run", artifact}, 300).exit_code == 0);
}

TEST_CASE("a file that is replaced keeps its permissions, and its readers the old content", "[tools]") {
  test::Folder folder("output");
  std::string path = folder.at("x");
  write_file(path, "old");
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  std::ifstream reader(path);
  relaxc::vm::write_file(path, "new");
  CHECK(read_file(path) == "new");
  CHECK((fs::status(path).permissions() & fs::perms::all) == (fs::perms::owner_read | fs::perms::owner_write));
  std::string seen;
  reader >> seen;
  CHECK(seen == "old");
  {
    relaxc::vm::OutputFile unfinished(path);
    unfinished.write("half");
  }
  CHECK(read_file(path) == "new");
  CHECK(folder.count() == 1);
}
