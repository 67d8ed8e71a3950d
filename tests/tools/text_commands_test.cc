// relaxc fmt, check and diff as a user runs them.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/process.h"

#include "tests/catch.h"  // last

namespace {

namespace fs = std::filesystem;
using relaxc::test::Outcome;

const std::string kSource = RELAXC_SOURCE_DIR;
const std::string kModule = kSource + "/tests/modules/matmul_relu.py",
                  kModel = kSource + "/examples/digits/digits.onnx";

Outcome relaxc_command(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), RELAXC_TOOL);
  return relaxc::test::run_program(arguments, 300);
}
struct Folder {
  fs::path path = fs::temp_directory_path() / ("relaxc_text_" + std::to_string(getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path / name, std::ios::binary) << text;
    return (path / name).string();
  }
  std::string read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(path / name, std::ios::binary).rdbuf();
    return text.str();
  }
};
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("fmt prints canonical text, and prints that as itself", "[tools]") {
  Folder folder;
  Outcome once = relaxc_command({"fmt", kModule});
  REQUIRE(once.exit_code == 0);
  std::string file = folder.write("once.py", once.out);
  CHECK(relaxc_command({"fmt", file}).out == once.out);
  std::string loose = folder.write("loose.py", "# a comment that goes\n" + once.out);
  CHECK(relaxc_command({"fmt", "-i", loose}).exit_code == 0);
  CHECK(folder.read("loose.py") == once.out);
  Outcome later = relaxc_command({"fmt", file, "--dialect", "0.26"});
  CHECK(has(later.out, "out_ty="));
  CHECK(has(later.out, "T.sblock("));
  CHECK(relaxc_command({"fmt", "-i", kModel}).exit_code == 2);
}

TEST_CASE("large constants go to a file beside the text and come back", "[tools]") {
  Folder folder;
  std::string side = (folder.path / "digits.safetensors").string();
  Outcome printed = relaxc_command({"fmt", kModel, "--constants", side});
  REQUIRE(printed.exit_code == 0);
  std::string text = folder.write("digits.py", printed.out);
  CHECK(has(printed.out, "I.load_safetensors(\"digits.safetensors\")"));
  Outcome same = relaxc_command({"diff", text, kModel});
  CHECK(same.exit_code == 0);
  CHECK(relaxc_command({"run", text, "--test-data", kSource + "/examples/digits/test_data_set_0", "--atol", "1e-4"})
            .exit_code == 0);
  std::string bytes = folder.read("digits.safetensors");
  // In place, with the file that the constants come from: nothing is lost.
  CHECK(relaxc_command({"fmt", "-i", text, "--constants", side}).exit_code == 0);
  CHECK(folder.read("digits.py") == printed.out);
  CHECK(folder.read("digits.safetensors") == bytes);
  CHECK(relaxc_command({"fmt", text, "--constants", "/nowhere/c.safetensors"}).exit_code == 1);
  auto refused = [&](const std::string& contents, const std::string& what) {
    folder.write("digits.safetensors", contents);
    Outcome outcome = relaxc_command({"check", text});
    INFO(outcome.how_it_ended() << ": " << outcome.err);
    CHECK(outcome.exit_code == 1);
    CHECK(has(outcome.err, what));
  };
  refused(bytes.substr(0, bytes.size() - 1), "stands at");
  refused(bytes.substr(0, 20), "truncated");
  refused("", "truncated");
  std::string other = bytes;
  other.replace(other.find("F32"), 3, "F99");
  refused(other, "dtype F99");
  folder.write("digits.safetensors", bytes);
  std::string elsewhere = printed.out;
  elsewhere.replace(elsewhere.find("digits.safetensors"), 18, "../../etc/passwd");
  CHECK(has(relaxc_command({"check", folder.write("elsewhere.py", elsewhere)}).err, "without a path"));
}

TEST_CASE("check reports every error with its place", "[tools]") {
  Folder folder;
  CHECK(has(relaxc_command({"check", kModule}).out, "no errors"));
  std::string file = folder.write("wrong.py",
                                  "@R.function\n"
                                  "def main(x: R.Tensor((2, 3), \"float32\")):\n"
                                  "    y = R.nn.rleu(x)\n"
                                  "    z = R.add(x, R.const([1.0, 2.0], \"float32\"))\n"
                                  "    w = R.matmul(x, q)\n"
                                  "    return x\n");
  Outcome outcome = relaxc_command({"check", file});
  CHECK(outcome.exit_code == 1);
  for (const char* part : {"wrong.py:3:9", "R.nn.relu", "wrong.py:4:9", "wrong.py:5:21", "undefined name 'q'", "^"})
    CHECK(has(outcome.err, part));
}

TEST_CASE("diff names the first difference by its path", "[tools]") {
  Folder folder;
  std::string text = relaxc_command({"fmt", kModule}).out, other = text;
  other.replace(other.find("T.float32(0.0)"), 14, "T.float32(1.0)");
  Outcome outcome = relaxc_command({"diff", kModule, folder.write("other.py", other)});
  CHECK(outcome.exit_code == 1);
  CHECK(has(outcome.out, "body"));
  CHECK(relaxc_command({"diff", kModule, kModule}).out == "equal\n");
  CHECK(relaxc_command({"diff", kModule}).exit_code == 2);
}
