// Inputs of relaxc run and bench from files of other orders, dtypes and kinds, and what they print of results.
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "support/version.h"
#include "tests/folder.h"
#include "tests/patterns.h"
#include "tests/relaxc_command.h"
#include "vm/npy.h"

#include "tests/catch.h"  // last

using namespace relaxc;
using test::contains;
using test::Outcome;
using test::run_relaxc;

namespace {

constexpr const char* kTwoInputs = R"(
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), n: R.Tensor((3,), "int64")):
        y = R.add(x, R.astype(n, "float32"))
        return y
)";
constexpr const char* kOneInput = R"(
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 3), "float32")):
        y = R.negative(x)
        return y
)";
// The mean over the pixels of each channel.
constexpr const char* kImageInput = R"(
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((1, 3, "h", "w"), "float32")):
        y = R.mean(x, axis=[2, 3])
        return y
)";

void run_python(const std::string& script) {
  const Outcome outcome = test::run_program({"/usr/bin/python3", "-c", script}, 60);
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
}

Tensor counted_tensor(std::vector<int64_t> shape, DType dtype) {
  Tensor tensor = Tensor::empty(std::move(shape), dtype);
  for (int64_t i = 0; i < tensor.size(); ++i) tensor.set_double(i, static_cast<double>(i));
  return tensor;
}

std::string npy_with_header(const std::string& dict, const std::string& data) {
  return std::string("\x93NUMPY\1\0", 8) + static_cast<char>(dict.size()) + '\0' + dict + data;
}

}  // namespace

TEST_CASE("inputs of another dtype or order are converted with a note", "[tools]") {
  test::Folder folder("inputs");
  const std::string module = folder.write("two.py", kTwoInputs), x = folder.at("x.npy"), n = folder.at("n.npy");
  write_npy(x, counted_tensor({2, 3}, kFloat64));
  write_npy(n, counted_tensor({3}, DType::int_(32)));
  const Outcome outcome = run_relaxc({"run", module, "--input", "x=" + x, "--input", "n=" + n});
  CHECK(contains(outcome.out, "[0, 2, 4, 3, 5, 7]"));
  CHECK(contains(outcome.err, "note: input 'x': float64 is converted to float32\n"));
  CHECK(contains(outcome.err, "note: input 'n': int32 is converted to int64\n"));
  CHECK(run_relaxc({"run", module, "--input", "x=" + x, "--input", "n=" + n, "-q"}).err.empty());

  Tensor halves = counted_tensor({3}, kFloat32);
  halves.set_double(1, 0.5);
  write_npy(n, halves);
  CHECK(contains(run_relaxc({"run", module, "--input", "n=" + n}).err,
                 "input 'n': element 1 is 0.5, which is not a value of int64"));

  const std::string columns("\0\3\1\4\2\5", 6);
  folder.write("x.npy", npy_with_header("{'descr': '|i1', 'fortran_order': True, 'shape': (2, 3), }", columns));
  const Outcome fortran = run_relaxc({"run", module, "--input", "x=" + x, "--input", "n=[0, 0, 0]"});
  CHECK(contains(fortran.out, "[0, 1, 2, 3, 4, 5]"));
  CHECK(contains(fortran.err, "Fortran order is converted to C order"));
}

TEST_CASE("the only input needs no name", "[tools]") {
  test::Folder folder("nameless");
  const std::string one = folder.write("one.py", kOneInput), two = folder.write("two.py", kTwoInputs),
                    x = folder.at("x.npy");
  write_npy(x, counted_tensor({1, 3}, kFloat32));
  CHECK(contains(run_relaxc({"run", one, "--input", x}).out, "[-0, -1, -2]"));
  CHECK(contains(run_relaxc({"run", one, "--input", "float32[[1, 2, 3]]"}).out, "[-1, -2, -3]"));
  const std::string odd = folder.at("a=b.npy");
  write_npy(odd, counted_tensor({1, 3}, kFloat32));
  CHECK(contains(run_relaxc({"run", one, "--input", odd}).out, "[-0, -1, -2]"));
  const Outcome unclear = run_relaxc({"run", two, "--input", x});
  CHECK(unclear.exit_code == 1);
  CHECK(contains(unclear.err, "has no name, and there are 2 inputs: 'x', 'n'"));
}

TEST_CASE("a size of --dim that an input does not have is an error", "[tools]") {
  test::Folder folder("sizes");
  const std::string module = folder.write("one.py", kOneInput), artifact = folder.at("one.so"), x = folder.at("x.npy");
  write_npy(x, counted_tensor({2, 3}, kFloat32));
  REQUIRE(run_relaxc({"compile", module, "-o", artifact}).exit_code == 0);
  const std::string problem = "--dim n=4 contradicts an input that is given: dim 0 of input 'x' is 2";
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{RELAXC_TOOL, "run", module},
                                             {RELAXC_TOOL, "bench", module, "--runs", "1"},
                                             {RELAXC_TOOL, "debug", module, "-o", folder.at("debug")},
                                             {RELAXC_RUN, "run", artifact}}) {
    auto with = [&](const std::string& dim) {
      std::vector<std::string> words = command;
      words.insert(words.end(), {"--input", "x=" + x, "--dim", dim});
      return test::run_program(words, 120);
    };
    INFO(command[0] << " " << command[1]);
    const Outcome outcome = with("n=4");
    CHECK(outcome.exit_code == 1);
    CHECK(contains(outcome.err, problem));
    CHECK(with("n=2").exit_code == 0);
  }
}

TEST_CASE("a single result goes to standard output, and messages elsewhere", "[tools]") {
  test::Folder folder("results");
  const std::string one = folder.write("one.py", kOneInput), artifact = folder.at("one.so");
  REQUIRE(run_relaxc({"compile", one, "-o", artifact}).exit_code == 0);
  for (const char* tool : {RELAXC_TOOL, RELAXC_RUN}) {
    const std::string run = fmt::format("'{}' run '{}' --input '[[1, 2, 3]]' --output-dir - 2> '{}' > '{}'", tool,
                                        artifact, folder.at("messages"), folder.at("y.npy"));
    CHECK(test::run_program({"/bin/sh", "-c", run}, 60).exit_code == 0);
    CHECK(contains(folder.read("messages"), "[-1, -2, -3]"));
    CHECK(contains(run_relaxc({"run", one, "--input", folder.at("y.npy")}).out, "[1, 2, 3]"));
  }
  const std::string two = folder.write("two.py",
                                       "@R.function\ndef main(x: R.Tensor((2,), 'float32')):\n"
                                       "    return (R.exp(x), R.negative(x))\n");
  const Outcome refused = run_relaxc({"run", two, "--output-dir", "-"});
  CHECK(refused.exit_code == 2);
  CHECK(contains(refused.err, "standard output takes one tensor, and the results are output_0, output_1"));
}

TEST_CASE("an artifact is one under any name", "[tools]") {
  test::Folder folder("names");
  const std::string module = folder.write("one.py", kOneInput), artifact = folder.at("one.dat");
  REQUIRE(run_relaxc({"compile", module, "-o", artifact}).exit_code == 0);
  CHECK(contains(run_relaxc({"run", artifact, "--input", "x=[[1, 2, 3]]"}).out, "[-1, -2, -3]"));
  CHECK(run_relaxc({"bench", artifact, "--runs", "1"}).exit_code == 0);
  CHECK(contains(run_relaxc({"run", artifact, "--interpret"}).err, "is machine code"));
  CHECK(contains(run_relaxc({"compile", artifact, "-o", folder.at("two.so")}).err, "and relaxc.load of Python"));
}

TEST_CASE("members of an archive are inputs by their names", "[tools]") {
  test::Folder folder("archive");
  const std::string module = folder.write("two.py", kTwoInputs), archive = folder.at("all.npz");
  write_npy(folder.at("x.npy"), counted_tensor({2, 3}, kFloat32));
  write_npy(folder.at("n.npy"), counted_tensor({3}, kInt64));
  for (const char* method : {"ZIP_STORED", "ZIP_DEFLATED"}) {
    for (const char* names : {"xn", "01"}) {
      const std::string first = names[0] == 'x' ? "x" : "arr_0", second = names[0] == 'x' ? "n" : "arr_1";
      run_python(
          fmt::format("import zipfile\nz = zipfile.ZipFile('{0}', 'w', zipfile.{1})\n"
                      "z.write('{2}', '{3}.npy')\n"
                      "f = z.open('{4}.npy', 'w', force_zip64=True)\nf.write(open('{5}', 'rb').read())\n"
                      "f.close()\nz.close()",
                      archive, method, folder.at("x.npy"), first, second, folder.at("n.npy")));
      const Outcome outcome = run_relaxc({"run", module, "--input", archive});
      INFO(method << " " << names << ": " << outcome.err);
      CHECK(contains(outcome.out, "[0, 2, 4, 3, 5, 7]"));
    }
  }
  const std::string good = folder.read("all.npz");
  for (size_t size = 0; size < good.size(); size += 7) {
    folder.write("all.npz", good.substr(0, size));
    CHECK(run_relaxc({"run", module, "--input", archive}).exit_code == 1);
  }
  for (size_t place = 0; place < good.size(); place += 11) {
    std::string flipped = good;
    flipped[place] = static_cast<char>(flipped[place] ^ 0x10);
    folder.write("all.npz", flipped);
    const Outcome outcome = run_relaxc({"run", module, "--input", archive});
    INFO(place << ": " << outcome.err);
    CHECK((outcome.exit_code == 0 || outcome.exit_code == 1));
    CHECK_FALSE(contains(outcome.err, "bug"));
  }
  run_python(fmt::format("import zipfile\nz = zipfile.ZipFile('{}', 'w')\nz.write('{}', 'other.npy')\nz.close()",
                         archive, folder.at("x.npy")));
  CHECK(
      contains(run_relaxc({"run", module, "--input", archive}).err, "no input is called 'other'; there are 'x', 'n'"));
}

TEST_CASE("a member of an archive is read no further than its header says", "[tools]") {
  test::Folder folder("bomb");
  const std::string module = folder.write("one.py", kOneInput), archive = folder.at("bomb.npz");
  // Some MB of zeros behind the header of one float, and such a header of 4 GB; both pack to some KB.
  run_python(fmt::format(R"(
import zipfile
def member(path, shape, size):
    text = "{{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + "}}"
    header = b'\x93NUMPY\x01\x00' + (118).to_bytes(2, 'little') + text.ljust(117).encode() + b'\n'
    with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED) as z:
        z.writestr('x.npy', header + bytes(size))
member('{0}', '(1,)', 64 << 20)
member('{1}', '(1, 1073741824)', 64 << 20)
)",
                         archive, folder.at("claim.npz")));
  for (const std::string& path : {archive, folder.at("claim.npz")}) {
    const Outcome outcome = test::run_program(
        {"/bin/sh", "-c", "ulimit -v 600000; exec \"$0\" run \"$1\" --input \"$2\"", RELAXC_TOOL, module, path}, 60);
    INFO(outcome.err);
    CHECK(outcome.exit_code == 1);
    CHECK(contains(outcome.err, "'x.npy' has 67108992 bytes, and its header says "));
  }
}

TEST_CASE("images become tensors of the input's layout", "[tools]") {
  test::Folder folder("images");
  const std::string module = folder.write("image.py", kImageInput), image = folder.at("image.png");
  // Two pixels: red 255 and 0, green 51 both, blue 0 and 102.
  run_python(fmt::format(R"(
import struct, zlib
def chunk(kind, data): return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))
rows = b'\0' + bytes([255, 51, 0, 0, 51, 102])
open('{}', 'wb').write(b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', 2, 1, 8, 2, 0, 0, 0)) +
                       chunk(b'IDAT', zlib.compress(rows)) + chunk(b'IEND', b'')))",
                         image));
  const Outcome usual = run_relaxc({"run", module, "--input", image});
  INFO(usual.err);
  CHECK(contains(usual.out, "[0.5, 0.2, 0.2]"));
  CHECK(contains(run_relaxc({"run", module, "--input", "x=" + image, "--scale", "1"}).out, "[127.5, 51, 51]"));
  CHECK(contains(run_relaxc({"run", module, "--input", image, "--mean", "127.5,1,1", "--scale", "1,2,0.5"}).out,
                 "[0, 100, 25]"));
  const Outcome sized = run_relaxc({"run", module, "--input", image, "--dim", "h=4", "w=6"});
  CHECK(contains(sized.err, "2 x 1 pixels are scaled to 6 x 4"));
  CHECK(contains(sized.out, "[0.5, 0.2, 0.2]"));
  CHECK(contains(run_relaxc({"run", module, "--input", image, "--mean", "1,2"}).err, "--mean has 2 numbers"));
  for (const auto& [flag, value] :
       {std::pair("--mean", "2"), std::pair("--scale", "2"), std::pair("--layout", "nchw")}) {
    for (const char* command : {"run", "bench"}) {
      const Outcome unused = run_relaxc({command, module, "--dim", "h=2", "w=2", flag, value});
      CHECK(unused.exit_code == 2);
      CHECK(contains(unused.err, fmt::format("{0} is for inputs that are images, and none is: give one, --input "
                                             "NAME=FILE.png, or leave out {0}",
                                             flag)));
    }
  }

  // An element that the dtype does not have is an error; channels stand before the pixels unless --layout says else.
  auto of_type = [&](const std::string& dims, const std::string& dtype, std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"run",
                                 folder.write("typed.py", "@R.function\ndef main(x: R.Tensor((" + dims + "), '" +
                                                              dtype + "')):\n    return R.add(x, x)\n"),
                                 "--input", image});
    return run_relaxc(flags);
  };
  CHECK(contains(of_type("1, 3, 1, 2", "int8", {}).err,
                 "the red of 255 in row 0, column 0 becomes 255 by --mean and --scale, which is not a value of int8; "
                 "give --mean 128"));
  CHECK(contains(of_type("1, 3, 1, 2", "int16", {"--mean", "128"}).out, "[254, -256, -154, -154, -256, -52]"));
  CHECK(contains(of_type("1, 3, 1, 2", "float16", {"--scale", "1e6"}).err, "which is beyond the range of float16"));
  const Outcome first = of_type("1, 3, 1, 3", "float32", {}),
                behind = of_type("1, 3, 1, 3", "float32", {"--layout", "nhwc"});
  CHECK(contains(first.err, "2 x 1 pixels are scaled to 3 x 1"));
  CHECK(contains(first.err, "--layout nhwc reads 'x: float32[1, 3, 1, 3]' the other way"));
  CHECK(contains(behind.err, "2 x 1 pixels are scaled to 1 x 3"));

  std::string last = kImageInput;
  last.replace(last.find("(1, 3, \"h\", \"w\")"), 16, "(\"h\", \"w\", 3)    "),
      last.replace(last.find("[2, 3]"), 6, "[0, 1]");
  CHECK(contains(run_relaxc({"run", folder.write("last.py", last), "--input", image}).out, "[0.5, 0.2, 0.2]"));

  std::string fixed = kImageInput;
  fixed.replace(fixed.find("\"h\", \"w\""), 8, "4, 6    ");
  const Outcome scaled = run_relaxc({"run", folder.write("fixed.py", fixed), "--input", image});
  CHECK(contains(scaled.out, "[0.5, 0.2, 0.2]"));
  CHECK(contains(scaled.err, "2 x 1 pixels are scaled to 6 x 4"));

  CHECK(
      contains(run_relaxc({"run", folder.write("one.py", kOneInput), "--input", image}).err, "an image does not fit"));
  folder.write("image.png", "\x89PNG\r\n\x1a\nnonsense");
  CHECK(contains(run_relaxc({"run", module, "--input", image}).err, "not an image, or a damaged one"));
}

TEST_CASE("the largest elements are printed with their labels", "[tools]") {
  test::Folder folder("top");
  const std::string module = folder.write("one.py", kOneInput), labels = folder.write("labels.txt",
                                                                                      "\xef\xbb\xbf"
                                                                                      "cat\ndog\n");
  const std::vector<std::string> run = {"run", module, "--input", "x=[[3, 1, 2], [1, 2, 3]]"};
  std::vector<std::string> top = run, labelled = run;
  top.insert(top.end(), {"--top", "2"}), labelled.insert(labelled.end(), {"--labels", labels});
  CHECK(contains(run_relaxc(top).out, "       1            -1\n       2            -2\n\n       0            -1\n"));
  CHECK(contains(run_relaxc(labelled).out,
                 "       1            -1  dog\n       2            -2\n       0            -3  cat\n"));
}

TEST_CASE("bench says what it measured, and compares with another file", "[tools]") {
  test::Folder folder("figures");
  const std::string module = folder.write("one.py", kOneInput), artifact = folder.at("one.so");
  REQUIRE(run_relaxc({"compile", module, "-o", artifact}).exit_code == 0);
  const std::string json = run_relaxc({"bench", module, "--dim", "n=5", "--runs", "20", "--threads", "2", "--json", "-",
                                       "--compare", artifact})
                               .out;
  INFO(json);
  for (const char* name : {"p50_ms", "p90_ms", "cold_ms", "runs_per_s", "compile_s"})
    CHECK_FALSE(test::matches(json, fmt::format("\"{}\": [0-9.e+-]+[,}}]", name)).empty());
  CHECK(contains(json, "\"p99_ms\": null"));  // which so few runs do not tell
  CHECK(contains(json, "\"threads\": 2"));
  CHECK(contains(json, "\"dims\": {\"n\": 5}"));
  CHECK(contains(json, "\"version\": \"" + version_text() + "\""));
  CHECK_FALSE(test::matches(json, "\"target\": \"[a-z0-9-]+\"").empty());
  CHECK_FALSE(
      test::matches(json, "\"compared\": \\{\"median_ms\": [0-9.e+-]+, \"other_median_ms\": [0-9.e+-]+, ").empty());
  const std::string text = run_relaxc({"bench", artifact, "--runs", "20", "--compare", module}).out;
  CHECK(contains(text, " runs/s, "));
  CHECK(contains(text, ", p99 - ms, "));
  CHECK(contains(text, "one.so against "));
  const std::string longer = run_relaxc({"bench", artifact, "--seconds", "0.3", "--json", "-"}).out;
  INFO(longer);
  const auto runs = test::matches(longer, "\"runs\": (\\d+)");  // the time decides, not the number of runs
  REQUIRE(runs.size() == 1);
  CHECK(std::stoi(runs[0][1]) > 100);
  CHECK_FALSE(test::matches(longer, "\"p99_ms\": [0-9.e+-]+[,}]").empty());
  CHECK(contains(text, "ratio "));
  CHECK(contains(text, "greatest difference of the results 0\n"));
}

TEST_CASE("flags of the compiler belong to the model that is compared with an artifact", "[tools]") {
  test::Folder folder("settings");
  const std::string module = folder.write("one.py", kOneInput), artifact = folder.at("one.so");
  REQUIRE(run_relaxc({"compile", module, "-o", artifact}).exit_code == 0);
  const std::vector<std::string> flags = {"-O", "1", "--dim", "n=5", "--runs", "3", "--no-cache"};
  auto with_flags = [&](std::vector<std::string> command) {
    command.insert(command.end(), flags.begin(), flags.end());
    const Outcome outcome = run_relaxc(command);
    INFO(outcome.err);
    CHECK((outcome.exit_code == 0) == outcome.err.empty());
    return outcome;
  };
  CHECK(contains(with_flags({"bench", module, "--compare", artifact}).out, "greatest difference of the results 0\n"));
  CHECK(contains(with_flags({"bench", artifact, "--compare", module}).out, "greatest difference of the results 0\n"));
  CHECK(with_flags({"compare", artifact, module}).exit_code == 0);
  CHECK(contains(with_flags({"bench", artifact, "--compare", artifact}).err, "is compiled already; give -O"));
  const auto plain = [&](std::vector<std::string> command) {
    command.insert(command.end(), {"--dim", "n=2", "--runs", "2"});
    return run_relaxc(command);
  };
  CHECK(plain({"bench", artifact, "--compare", ""}).exit_code == 2);
  CHECK(
      contains(plain({"bench", artifact, "--compare", artifact, "--cold"}).out, " in turn with cold caches (medians"));
  CHECK(contains(plain({"compare", artifact, artifact, "--cold"}).out, "2 pairs of runs with cold caches"));
  CHECK(contains(plain({"bench", artifact, "--no-cache"}).err, "is compiled already: --no-cache changes nothing"));
  CHECK(plain({"bench", artifact, "--compare", module, "--no-cache"}).err.empty());
}

TEST_CASE("bench refuses two versions with different results", "[tools]") {
  test::Folder folder("versions");
  const std::string module = folder.write("one.py", kOneInput);
  std::string doubled = kOneInput;
  doubled.replace(doubled.find("R.negative(x)"), 13, "R.negative(R.add(x, x))");
  const std::vector<std::string> flags = {"bench", module, "--input", "x=[[1, 2, 3]]", "--runs", "3"};
  auto run = [&](std::vector<std::string> more) {
    more.insert(more.begin(), flags.begin(), flags.end());
    return run_relaxc(more);
  };
  const Outcome other = run({"--compare", folder.write("two.py", doubled)});
  INFO(other.out << other.err);
  CHECK(other.exit_code == 1);
  CHECK(contains(other.out, "greatest difference of the results 3\n"));
  CHECK(contains(other.err, "wrong result against "));
  CHECK(contains(other.err, "3 of 3 elements differ; worst at [0, 2]: got -3, expected -6, off by 3"));
  CHECK(run({"--compare", folder.at("two.py"), "--rtol", "0.6"}).exit_code == 0);
  const std::string kernels = folder.write("kernels.py", R"(@S.implements("negative")
@T.prim_func
def wrong(x: T.Buffer(("n", 3), "float32"), y: T.Buffer(("n", 3), "float32")):
    for i, j in T.grid(n, 3):
        y[i, j] = x[i, j] * T.float32(-1.5)
)");
  const Outcome with = run({"--kernels", kernels});
  INFO(with.out << with.err);
  CHECK(with.exit_code == 1);
  CHECK(contains(with.err, "wrong result against the model without --kernels "));
  CHECK(contains(run({"--kernels", kernels, "--json", "-"}).out, "\"greatest_difference\": 1.5"));
}
