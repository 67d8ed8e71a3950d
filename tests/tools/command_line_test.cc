// What all commands of relaxc have in common: versions, help, wrong usage, colours, quiet and detailed output,
// progress.
#include <fcntl.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <set>
#include <thread>

#include "support/version.h"
#include "tests/folder.h"
#include "tests/frontend/onnx_model.h"
#include "tests/patterns.h"
#include "tests/relaxc_command.h"
#include "vm/npy.h"

#include "tests/catch.h"  // last

using namespace relaxc;
using test::contains;
using test::Outcome;
using test::run_relaxc;

namespace {

constexpr const char* kExpAndSum = R"(
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32")):
        y = R.exp(x)
        z = R.sum(y, axis=[1])
        return z
)";

// Runs the program on a terminal, and returns all that appears there. Presses Ctrl-C once `until` has appeared, unless
// it is "". `signal`, unless it is null, gets the signal that ended the program.
std::string on_terminal_of(std::vector<std::string> arguments, const std::string& until, int* signal = nullptr) {
  constexpr const char* kControlC = "\x03";
  bool is_pressed = until.empty();
  int terminal = -1;
  winsize size{.ws_row = 24, .ws_col = 60, .ws_xpixel = 0, .ws_ypixel = 0};
  const pid_t child = forkpty(&terminal, nullptr, nullptr, &size);
  if (child == 0) {
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    setenv("TERM", "xterm", 1);
    execv(argv[0], argv.data());
    _exit(127);
  }
  std::string text;
  std::array<char, 4096> part{};
  for (ssize_t size_read = 0; (size_read = read(terminal, part.data(), part.size())) > 0;) {
    text.append(part.data(), static_cast<size_t>(size_read));
    if (!is_pressed && contains(text, until)) is_pressed = write(terminal, kControlC, 1) == 1;
  }
  close(terminal);
  int status = 0;
  waitpid(child, &status, 0);
  if (signal) *signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return text;
}
std::string on_terminal(std::vector<std::string> arguments, const std::string& until = "", int* signal = nullptr) {
  arguments.insert(arguments.begin(), RELAXC_TOOL);
  return on_terminal_of(std::move(arguments), until, signal);
}

}  // namespace

TEST_CASE("--version names relaxc, LLVM, opsets and targets", "[tools]") {
  const Outcome outcome = run_relaxc({"--version"});
  CHECK(outcome.exit_code == 0);
  CHECK(contains(outcome.out, "relaxc " + version_text() + "\n"));
  CHECK(contains(outcome.out, "LLVM " RELAXC_LLVM_VERSION "."));
  CHECK(contains(outcome.out, "  ai.onnx 1 to "));
  CHECK(contains(outcome.out, "aarch64"));
  CHECK(contains(outcome.out, "riscv64"));
}

TEST_CASE("--version does not hide what else is wrong", "[tools]") {
  for (const char* tool : {RELAXC_TOOL, RELAXC_RUN}) {
    CHECK(test::run_program({tool, "--version"}, 60).exit_code == 0);
    const Outcome flag = test::run_program({tool, "--version", "--foo"}, 60);
    CHECK(flag.exit_code == 2);
    CHECK(contains(flag.err, "has no flag '--foo'"));
    CHECK(flag.out.empty());
    CHECK(test::run_program({tool, "--version", "run", "model.so"}, 60).exit_code == 2);
  }
}

TEST_CASE("wrong usage names the program, and what is missing or unknown", "[tools]") {
  for (const char* tool : {RELAXC_TOOL, RELAXC_RUN}) {
    const std::string name = std::filesystem::path(tool).filename().string();
    auto message = [&](std::vector<std::string> words) {
      words.insert(words.begin(), tool);
      const Outcome outcome = test::run_program(words, 60);
      CHECK(outcome.exit_code == 2);
      return outcome.err;
    };
    const std::string where =
        fmt::format("  note: {} --help lists the commands{}\n", name,
                    tool == std::string(RELAXC_RUN) ? "; relaxc, which has the compiler, has more" : "");
    CHECK(message({"bnech", "x", "-o", "y"}) ==
          fmt::format("error: {} has no command 'bnech'; did you mean 'bench'?\n{}", name, where));
    CHECK(message({"help", "nothing"}) == fmt::format("error: {} has no command 'nothing'\n{}", name, where));
    CHECK(contains(message({}), "\n  inspect "));  // the commands
    CHECK(message({"run", "x.so", "-x"}) == fmt::format("error: {0} run has no flag '-x'\n"
                                                        "  note: {0} run --help lists its flags\n",
                                                        name));
    CHECK(message({"run", "x.so", "--output-dir"}).starts_with("error: --output-dir needs a value\n"));
    CHECK(message({"run", "x.so", "--color", "red"})
              .starts_with("error: --color: 'red': expected auto or always or never\n"));
    CHECK(message({"run"}).starts_with("error: "));
    CHECK(message({"run", "--help-me"}).starts_with(fmt::format("error: {} run has no flag '--help-me'", name)));
  }
}

TEST_CASE("bench looks for the other file before it measures", "[tools]") {
  test::Folder folder("other");
  const std::string module = folder.write("module.py", kExpAndSum);
  const Outcome missing = run_relaxc({"bench", module, "--compare", folder.at("nofile.so")});
  CHECK(missing.exit_code == 1);
  CHECK(missing.out.empty());
  CHECK(contains(missing.err, "--compare: there is no file '"));
  const Outcome damaged = run_relaxc({"bench", module, "--compare", folder.write("damaged.so", "no artifact")});
  CHECK(damaged.exit_code == 1);
  CHECK(damaged.out.empty());
  const std::string other = folder.write("other.py", R"(
@R.function
def main(x: R.Tensor((2, 3, 5), "float32")):
    return R.exp(x)
)");
  const Outcome unlike = run_relaxc({"bench", module, "--compare", other});
  CHECK(unlike.exit_code == 1);
  CHECK(unlike.out.empty());
  CHECK(contains(unlike.err, "--compare '" + other + "' does not take the inputs of the model: "));
  // Inputs in another order, and results of another number, dtype or shape.
  auto function = [&](const std::string& name, const std::string& params, const std::string& result) {
    return folder.write(name, fmt::format("@R.function\ndef main({}):\n    return {}\n", params, result));
  };
  const std::string x = "x: R.Tensor((2, 3), \"float32\")", y = "y: R.Tensor((2, 3), \"float32\")", x_y = x + ", " + y;
  const std::string first = function("first.py", x_y, "R.subtract(x, y)");
  for (const auto& [params, result, problem] :
       {std::tuple(y + ", " + x, "R.subtract(x, y)", "takes the inputs of the model in another order: y, x, and"),
        std::tuple(x_y, "(R.subtract(x, y), x)", "has 2 results, and the model 1"),
        std::tuple(x_y, "R.matmul(x, R.permute_dims(y))", "that is float32[2, 2], and that of the model"),
        std::tuple(x_y, "R.greater(x, y)", "that is bool[2, 3], and that of the model"),
        std::tuple(x_y, "R.shape([2, 3])", "that is shape, and that of the model")}) {
    const Outcome differs = run_relaxc({"bench", first, "--compare", function("second.py", params, result)});
    INFO(differs.err);
    CHECK(differs.exit_code == 1);
    CHECK(differs.out.empty());
    CHECK(contains(differs.err, problem));
  }
}

TEST_CASE("bench looks for the folders of its outputs before it measures", "[tools]") {
  test::Folder folder("outputs");
  const std::string module = folder.write("module.py", kExpAndSum);
  for (const char* flag : {"--html", "--json", "--trace"}) {
    const Outcome outcome = run_relaxc({"bench", module, flag, folder.at("none/file")});
    CHECK(outcome.exit_code == 1);
    CHECK(outcome.out.empty());
    CHECK(contains(outcome.err, "/none/file': the folder '"));
  }
}

TEST_CASE("help describes a command as its --help does", "[tools]") {
  for (const std::vector<std::string>& command : {std::vector<std::string>{"bench"}, {"cache", "clear"}, {}}) {
    std::vector<std::string> help = command, flag = command;
    help.insert(help.begin(), "help"), flag.emplace_back("--help");
    const std::string described = run_relaxc(help).out, expected = run_relaxc(flag).out;
    CHECK(described.substr(described.find('\n', described.find("Usage"))) ==
          expected.substr(expected.find('\n', expected.find("Usage"))));
  }
  const Outcome unknown = run_relaxc({"help", "bnech"});
  CHECK(unknown.exit_code == 2);
  CHECK(contains(unknown.err, "relaxc has no command 'bnech'; did you mean 'bench'?"));
}

TEST_CASE("an unknown command or flag gets a suggestion", "[tools]") {
  struct Case {
    std::vector<std::string> arguments;
    const char* message;
  };
  const Case cases[] = {
      {{"complie", "model.onnx"}, "error: relaxc has no command 'complie'; did you mean 'compile'?"},
      {{"model.onnx"}, "error: relaxc has no command 'model.onnx'\n"},
      {{"run", "model.onnx", "--thread", "1"}, "error: relaxc run has no flag '--thread'; did you mean '--threads'?"},
      {{"bench", "model.onnx", "--jsno=x"}, "error: relaxc bench has no flag '--jsno'; did you mean '--json'?"},
      {{"cache", "claer"}, "error: relaxc cache has no command 'claer'; did you mean 'clear'?"},
      {{"run", "a.onnx", "b.onnx"}, "error: relaxc run does not take 'b.onnx' as well"},
      {{"--emit=tir", "compile", "model.onnx"},
       "error: relaxc has no flag '--emit'; it is one of relaxc compile: give it behind the command\n"},
      {{"bench", "model.onnx", "--seconds", "1", "--seconds", "2"}, "error: --seconds is given more than once\n"},
      {{"bench", "model.onnx", "-q", "-v"}, "excludes"},
  };
  for (const Case& tried : cases) {
    const Outcome outcome = run_relaxc(tried.arguments);
    INFO(outcome.err);
    CHECK(outcome.exit_code == 2);
    CHECK(contains(outcome.err, tried.message));
  }
}

TEST_CASE("a file may have the name of a command", "[tools]") {
  const Outcome outcome = run_relaxc({"run", "bench"});
  CHECK(outcome.exit_code == 1);  // it cannot be read
  CHECK(contains(outcome.err, "'bench'"));
}

TEST_CASE("senseless numbers are wrong usage", "[tools]") {
  struct Case {
    const char *command, *flag, *number;
  };
  const Case cases[] = {
      {"run", "--threads", "-3"},
      {"run", "--threads", "2.5"},
      {"run", "--threads", "9999999"},
      {"run", "--rtol", "-1"},
      {"run", "--atol", "nan"},
      {"run", "--seed", "-1"},
      {"run", "--jobs", "-1"},
      {"bench", "--runs", "0"},
      {"bench", "--runs", "-5"},
      {"bench", "--runs", "many"},
      {"bench", "--warmup", "-1"},
      {"bench", "--seconds", "-0.5"},
      {"bench", "--threads", ""},
      {"compile", "--jobs", "-2"},
      {"opt", "--bisect-limit", "-1"},
      {"opt", "--rtol", "inf"},
      {"reduce", "--limit", "0"},
      {"fmt", "--inline", "-1"},
      {"compile", "-O", "4"},
      {"bench", "--seconds", "always"},
      {"bench", "--threads", "99999999999999999999"},
      {"run", "--mean", "inf"},
      {"run", "--scale", "nan"},
      {"run", "--scale", "1,-inf,2"},
      {"quantize", "--percentile", "nan"},
      {"quantize", "--percentile", "49"},
      {"run", "--scale", "0"},
      {"run", "--memory-limit", "-1"},
      {"debug", "--rtol", "nan"},
      {"run", "--winograd-error", "nan"},
      {"compile", "--winograd-error", "-1"},
  };
  for (const Case& tried : cases) {
    const Outcome outcome = run_relaxc({tried.command, "model.onnx", fmt::format("{}={}", tried.flag, tried.number)});
    INFO(tried.command << " " << tried.flag << " " << tried.number << ": " << outcome.err);
    const bool is_short = std::string_view(tried.flag) == "-O";  // -O=4 is another thing
    if (!is_short) CHECK(outcome.exit_code == 2);
    if (!is_short) CHECK(contains(outcome.err, tried.flag));
  }
  CHECK(run_relaxc({"compile", "model.onnx", "-O", "4"}).exit_code == 2);
}

TEST_CASE("messages are coloured where that is wanted, and not in pipes", "[tools]") {
  const std::vector<std::string> wrong = {"run", "missing.onnx"};
  CHECK_FALSE(contains(run_relaxc(wrong).err, "\x1b"));
  std::vector<std::string> always = wrong, never = wrong;
  always.emplace_back("--color=always"), never.emplace_back("--color=never");
  CHECK(contains(run_relaxc(always).err, "\x1b[1;31merror:\x1b[0m"));
  CHECK(contains(on_terminal(wrong), "\x1b[1;31merror:\x1b[0m"));
  CHECK_FALSE(contains(on_terminal(never), "\x1b"));
  setenv("NO_COLOR", "1", 1);
  CHECK_FALSE(contains(on_terminal(wrong), "\x1b"));
  CHECK(contains(on_terminal(always), "\x1b[1;31m"));
  unsetenv("NO_COLOR");
}

TEST_CASE("-q leaves out notes, and -v says what was done", "[tools]") {
  test::Folder folder("quiet");
  const std::string module = folder.write("module.py", kExpAndSum), artifact = folder.at("module.so");
  const Outcome usual = run_relaxc({"compile", module, "-o", artifact}),
                quiet = run_relaxc({"compile", module, "-o", artifact, "-q"});
  CHECK(contains(usual.out, " kernels for "));
  CHECK(usual.err.empty());
  CHECK(quiet.out.empty());
  const Outcome verbose = run_relaxc({"compile", module, "-o", artifact, "--verbose"});
  CHECK(contains(verbose.err, " kernels compiled and 0 reused in "));
  CHECK(contains(verbose.err, " passes in "));
  const Outcome interpreted = run_relaxc({"run", module, "--dim", "n=2", "--interpret", "-v", "--profile"});
  CHECK(contains(interpreted.err, "\n2 kernels run in the interpreter in "));
  CHECK(contains(interpreted.err, "exp"));  // the profile
}

TEST_CASE("one run emits several levels and the artifact", "[tools]") {
  test::Folder folder("levels");
  const std::string module = folder.write("module.py", kExpAndSum), artifact = folder.at("module.so");
  auto compile = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"compile", module});
    return run_relaxc(flags);
  };
  const Outcome all = compile({"-o", artifact, "--emit", "graph", "--emit", "tir=" + folder.at("tir.py"),
                               "--emit=asm=" + folder.at("code.s"), "--emit", "bytecode=" + folder.at("code.txt")});
  INFO(all.out << all.err);
  CHECK(all.exit_code == 0);
  CHECK(contains(all.out, "R.exp"));
  CHECK(contains(folder.read("tir.py"), "T.exp"));
  CHECK(contains(folder.read("code.s"), ".text"));
  CHECK(contains(folder.read("code.txt"), "match_shape"));
  CHECK(run_relaxc({"run", artifact, "--dim", "n=3"}).exit_code == 0);
  CHECK(folder.read("tir.py") == compile({"--emit", "tir"}).out);
  CHECK(compile({"--emit", "tir", "-o", folder.at("other.py")}).exit_code == 0);
  CHECK(folder.read("other.py") == folder.read("tir.py"));
  CHECK(contains(compile({"--emit", "tir", "--emit", "graph"}).err, "two outputs go to 'standard output'"));
  CHECK(contains(compile({"-o", artifact, "--emit", "tir=" + artifact}).err, "two outputs go to '" + artifact));
  CHECK(contains(compile({"--emit", "tir="}).err, "a file is missing"));
  CHECK(contains(compile({"--emit", "ir=x"}).err, "'ir' is not a level"));
  CHECK(contains(compile({"--emit", "tir=" + module}).err, "is the input and would be replaced"));
}

TEST_CASE("no output replaces a file that is read, or another output", "[tools]") {
  test::Folder folder("outputs");
  const std::string module = folder.write("module.py", kExpAndSum), rules = folder.write("rules.py", "# none\n"),
                    input = folder.at("x.json"), artifact = folder.at("module.so");
  auto refused = [&](const std::vector<std::string>& words, const std::string& why) {
    const Outcome outcome = run_relaxc(words);
    INFO(outcome.out << outcome.err);
    CHECK(outcome.exit_code == 2);
    CHECK(contains(outcome.err, why));
  };
  refused({"compile", module, "--kernels", rules, "-o", rules}, "is the input and would be replaced");
  refused({"compile", module, "--kernels", rules, "--emit", "tir=" + rules}, "is the input and would be replaced");
  refused({"compile", module, "-o", artifact, "--emit", "tir=" + folder.at("./module.so")}, "two outputs go to");
  folder.write("x.json", "");
  refused({"bench", module, "--input", "x=" + input, "--json", input}, "is the input and would be replaced");
  refused({"bench", module, "--json", folder.at("a"), "--trace", folder.at("./a")}, "two outputs go to");
  const std::string old = folder.write("output_0.npy", "");
  refused({"run", module, "--input", "x=" + old, "--output-dir", folder.path.string()}, "may be replaced by a result");
  CHECK(contains(run_relaxc({"compile", folder.write("none.py", "garbage\n"), "-o", artifact}).err, "none.py"));
  CHECK_FALSE(std::filesystem::exists(artifact));
  CHECK(contains(run_relaxc({"compile", module, "-o", artifact, "--dim-range", "n=1:2", "--dim-range", "n=1:3"}).err,
                 "has a range already"));
  CHECK(contains(run_relaxc({"compile", module, "-o", artifact, "--dim", "n=3", "--dim-range", "n=1:3"}).err,
                 "has a size and a range"));
  CHECK(contains(run_relaxc({"run", module, "--dim-range", "n=3:5"}).out, "float32[3]"));
}

TEST_CASE("--dim is the size of a dim, and --fix-dims compiles for it", "[tools]") {
  test::Folder folder("dims");
  const std::string module = folder.write("module.py", kExpAndSum), artifact = folder.at("module.so");
  CHECK(contains(run_relaxc({"run", module, "--dim", "n=3"}).out, "float32[3]"));
  CHECK(contains(run_relaxc({"run", module, "--dim", "n=3", "--fix-dims"}).out, "float32[3]"));
  CHECK(contains(run_relaxc({"opt", module, "--passes=canonicalize", "--dim", "n=3"}).out, "R.Tensor((3, 4)"));
  CHECK(contains(run_relaxc({"compile", module, "--emit=graph", "--dim", "n=3"}).out, "R.Tensor((3, 4)"));
  CHECK(contains(run_relaxc({"inspect", module, "--dim", "n=3"}).out, "R.Tensor((3, 4)"));
  CHECK(run_relaxc({"explain", module, "--dim", "n=3"}).exit_code == 0);
  REQUIRE(run_relaxc({"compile", module, "-o", artifact, "--dim", "n=3"}).exit_code == 0);
  CHECK(run_relaxc({"run", artifact}).exit_code == 0);
  CHECK(contains(run_relaxc({"run", artifact, "--dim", "n=3", "--fix-dims"}).err, "is compiled already"));
  for (const auto& [first, second] : {std::pair(artifact, module), {module, artifact}}) {
    const auto outcome = run_relaxc({"bench", first, "--compare", second, "--fix-dims", "--dim", "n=3", "--runs", "2"});
    INFO(outcome.err);
    CHECK(outcome.exit_code == 0);
  }
  CHECK(contains(run_relaxc({"run", module, "--fix-dims"}).err, "--fix-dims needs the sizes"));
}

TEST_CASE("a compilation reports its stages", "[tools]") {
  test::OnnxModel model;
  model.input("x", kFloat32, "n,4").output("y");
  model.node("Softmax", "x", "a"), model.node("Transpose", "a", "b"), model.node("Softmax", "b", "y");
  std::vector<std::pair<CompileStage, Progress>> calls;
  CompileSettings settings;
  settings.reuse = false;
  settings.progress = [&](const Progress& progress) { calls.emplace_back(progress.stage, progress); };
  test::Folder folder("stages");
  const CompiledModule compiled = compile_file(folder.write("model.onnx", model.proto().SerializeAsString()), settings);
  std::map<CompileStage, Progress> last;
  for (const auto& [stage, progress] : calls) {
    CHECK(progress.done <= progress.total);
    CHECK(progress.seconds >= 0);
    CHECK(progress.done >= last[stage].done);
    CHECK(progress.total - progress.added >= last[stage].total - last[stage].added);
    CHECK(progress.added >= last[stage].added);
    last[stage] = progress;
  }
  REQUIRE(last.size() == 4);
  for (const auto& [stage, progress] : last) {
    INFO(name_of(stage));
    CHECK(progress.done == progress.total);
    CHECK(progress.total > 0);
  }
  CHECK(last[CompileStage::kKernels].total == compiled.kernels().size());
}

TEST_CASE("work of more than a second shows its progress on a terminal", "[tools]") {
  test::Folder folder("progress");
  const std::string module = folder.write("module.py", kExpAndSum);
  const std::vector<std::string> bench = {"bench", module, "--seconds", "2", "--runs", "1000000000"};
  const std::string shown = on_terminal(bench);
  INFO(shown);
  CHECK(contains(shown, "\r\x1b[K"));
  CHECK(contains(shown, " runs"));
  CHECK(contains(shown, "median "));
  std::vector<std::string> quiet = bench;
  quiet.emplace_back("-q");
  CHECK_FALSE(contains(on_terminal(quiet), "\x1b[K"));
  const Outcome piped = run_relaxc(bench);
  CHECK(piped.err.empty());
  CHECK(contains(piped.out, "median "));
}

TEST_CASE("a run in the interpreter counts kernels on a terminal, and says which is at work", "[tools]") {
  test::Folder folder("interpreted");
  auto shown = [&](const std::string& text) {  // of runs that take more than a second
    return on_terminal({"run", folder.write("module.py", text), "--dim", "n=2000000", "--interpret"});
  };
  const std::string straight = shown(kExpAndSum);
  INFO(straight);
  CHECK(contains(straight, "of 2 kernels run in the interpreter: "));
  const std::string branches = shown(R"(
@R.function
def main(x: R.Tensor(("n", 4), "float32"), c: R.Tensor((), "bool")):
    if c:
        y = R.exp(R.exp(x))
    else:
        y = R.exp(R.sin(x))
    return y
)");
  INFO(branches);
  CHECK(contains(branches, " kernels run in the interpreter"));
  CHECK(test::matches(branches, "of [0-9]+ kernels run").empty());  // only the run can tell how many
}

TEST_CASE("Ctrl-C ends what lasts, and wipes the line of progress", "[tools]") {
  test::Folder folder("wiped");
  const std::string module = folder.write("module.py", kExpAndSum);
  struct Case {
    std::vector<std::string> arguments;
    const char* shown;
  };
  const Case cases[] = {
      {{"bench", module, "--warmup", "1000000000"}, " of 1000000000 runs before the timed ones"},
      {{"bench", module, "--seconds", "1000", "--runs", "1000000000"}, " of at most 1000000000 runs"},
      {{"run", module, "--dim", "n=3000000", "--interpret"}, "of 2 kernels run in the interpreter: "},
      {{"compare", module, module, "--seconds", "1000", "--runs", "1000000000"},
       " of at most 1000000000 pairs of runs"},
  };
  for (const auto& [arguments, until] : cases) {
    int signal = 0;
    const std::string shown = on_terminal(arguments, until, &signal);
    INFO(shown);
    CHECK(signal == SIGINT);
    CHECK(contains(shown, until));
    CHECK(shown.ends_with("\r\x1b[K"));
  }
}

TEST_CASE("generate counts tokens on a terminal where they go to a file", "[tools]") {
  test::Folder folder("tokens");
  const std::string artifact = folder.at("decoder.so");
  REQUIRE(run_relaxc({"compile", RELAXC_SOURCE_DIR "/examples/decoder/decoder.onnx", "-o", artifact}).exit_code == 0);
  const std::string shown = " of 100000 tokens";  // until it is interrupted
  const std::string text =
      on_terminal_of({"/bin/sh", "-c",
                      fmt::format("exec '{}' generate '{}' --tokens 24,33,50 --count 100000 > '{}'", RELAXC_TOOL,
                                  artifact, folder.at("tokens.txt"))},
                     shown);
  CHECK(contains(text, shown));
  CHECK(text.ends_with("\r\x1b[K"));
  CHECK(folder.read("tokens.txt").size() > 100);
}

TEST_CASE("a search for a wrong pass shows the kernels of its runs on a terminal", "[tools]") {
  test::Folder folder("search");
  const std::string module = folder.write("module.py", kExpAndSum);
  const std::string shown = "kernels of run 1 in search of the pass: ";
  CHECK(contains(on_terminal({"opt", module, "--dim", "n=3000000", "--bisect"}, shown), shown));
}

TEST_CASE("a compilation that is interrupted leaves no files behind", "[tools]") {
  test::Folder folder("interrupted");
  test::OnnxModel model;
  model.input("x", kFloat32, "n,2048").output("y");
  model.constant("w", test::numbers({2048, 4096}));
  model.node("MatMul", "x w", "y");
  const std::string file = folder.write("model.onnx", model.proto().SerializeAsString());
  std::set<int> endings;
  for (int milliseconds : {5, 40, 80, 120, 160, 200, 240, 280, 320, 400, 600}) {
    std::filesystem::remove(folder.at("model.so"));
    // On a busy machine the signal comes before exec, where the child must not run the test program's handler.
    sigset_t interrupt, before;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    pthread_sigmask(SIG_BLOCK, &interrupt, &before);
    const pid_t child = fork();
    if (child == 0) std::signal(SIGINT, SIG_DFL);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (child == 0) {
      const int nowhere = open("/dev/null", O_WRONLY);
      dup2(nowhere, STDOUT_FILENO), dup2(nowhere, STDERR_FILENO);
      execl(RELAXC_TOOL, RELAXC_TOOL, "compile", file.c_str(), "-o", folder.at("model.so").c_str(), nullptr);
      _exit(127);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    kill(child, SIGINT);
    int status = 0;
    waitpid(child, &status, 0);
    const bool is_there = std::filesystem::exists(folder.at("model.so"));
    CHECK(folder.count() == (is_there ? 2 : 1));
    if (is_there) CHECK(run_relaxc({"run", folder.at("model.so")}).exit_code == 0);
    endings.insert(WIFSIGNALED(status) ? WTERMSIG(status) : 0);
  }
  CHECK(endings.contains(SIGINT));
}
