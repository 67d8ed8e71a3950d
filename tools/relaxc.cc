// relaxc: the command line.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>

#include "codegen/target.h"
#include "frontend/onnx/import.h"
#include "support/diagnostic.h"
#include "support/joined.h"
#include "support/version.h"
#include "tools/help.h"
#include "tools/manual.h"
#include "tools/progress_line.h"
#include "tools/tool.h"
#include "vm/program.h"

namespace {

using namespace relaxc::tools;

// For operators the last note names the command that lists the supported ones.
void print_unsupported(const relaxc::CompileError& error) {
  print_error("{}\n", error.what());
  auto is_of_node = [](const relaxc::Diagnostic& diagnostic) {
    return diagnostic.span && !diagnostic.span.origin->op_type.empty();
  };
  auto is_about_operator = [](const relaxc::Diagnostic& diagnostic) {
    return diagnostic.message.find("operator") != std::string::npos;
  };
  if (std::string_view(error.what()).find("the list of passes stops") != std::string::npos)
    print_error("  note: --passes, --stop-after and --bisect-limit choose the passes that run\n");
  else if (std::ranges::any_of(error.diagnostics(), is_of_node))
    print_error("  note: relaxc opt --list-onnx-ops shows what is supported\n");
  else if (std::ranges::any_of(error.diagnostics(), is_about_operator))
    print_error("  note: relaxc opt --list-ops shows what is supported\n");
}

void print_bug(const std::string& text, int argc, char** argv) {
  bool has_plugins = std::any_of(argv, argv + argc, [](std::string_view arg) { return arg.starts_with("--plugin"); });
  print_error("{}\n  note: this is a bug of relaxc{}; the command was:", text, has_plugins ? " or of a plug-in" : "");
  for (int i = 0; i < argc; ++i) print_error(" {}", argv[i]);
  print_error("\n");
}

// Keeps a closed standard stream's number from being reused, so that a file opened later does not become standard
// output. Writing to the closed stream still fails.
void reserve_standard_streams() {
  for (int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(descriptor, F_GETFD) < 0) open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

// Handles a mapped file that another program truncates while its pages are read (vm/file_memory.h).
extern "C" void on_bus_error(int) {
  constexpr char kText[] =
      "error: a file in use (a model, its weights, or an artifact) was cut off by another program; replace such files "
      "by renaming a new one\n";
  wipe_progress_line();
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, kText, sizeof kText - 1);
  _exit(kWrong);
}

// A sanitizer reports more, and has a handler of its own.
#ifndef __SANITIZE_ADDRESS__
extern "C" void on_segmentation_fault(int) {
  constexpr char kText[] =
      "error: segmentation fault: memory was used that the program does not have\n"
      "  note: if the model runs kernels that you wrote, an index in them may be out of range; --check-bounds names "
      "the "
      "kernel and the line\n"
      "  note: otherwise this is a bug of relaxc\n";
  wipe_progress_line();
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, kText, sizeof kText - 1);
  _exit(kWrong);
}
void handle_segmentation_faults() {
  static char stack[size_t{1} << 16];  // the handler's, as the thread's may be used up
  stack_t alternative{};
  alternative.ss_sp = stack;
  alternative.ss_size = sizeof stack;
  sigaltstack(&alternative, nullptr);
  struct sigaction action{};
  action.sa_handler = on_segmentation_fault;
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGSEGV, &action, nullptr);
}
#else
void handle_segmentation_faults() {}
#endif

// Returns what --version prints.
std::string version_report() {
  std::string opsets;
  for (const auto& [domain, newest] : relaxc::newest_onnx_opsets())
    opsets += fmt::format("  {} 1 to {}\n", domain.empty() ? "ai.onnx" : domain, newest);
  return fmt::format("relaxc {}\nLLVM {}\nONNX opsets:\n{}targets: {}", relaxc::version_text(),
                     relaxc::codegen::llvm_version(), opsets, relaxc::joined(relaxc::codegen::architectures()));
}

int run(int argc, char** argv) {
  CLI::App app{"relaxc compiles ONNX models and TVMScript modules to native code and runs them.", "relaxc"};
  lay_out_help(app);
  app.set_help_flag("-h,--help", "print this help");
  app.footer(
      "Example:\n"
      "  relaxc run model.onnx --dim batch=4\n"
      "  relaxc compile model.onnx -o model.so && relaxc run model.so\n"
      "Exit codes: 0 right, 1 wrong result or invalid input, 2 wrong usage, 3 unsupported.\n"
      "relaxc COMMAND --help says more.");
  std::string target = "host";
  bool print_target = false, print_version = false;
  app.require_subcommand(0, 1);  // a file may have the name of a command
  // Not CLI11's own flag, which ends the parser before it has seen what else is wrong.
  CLI::Option* version =
      app.add_flag("--version", print_version, "print the versions of relaxc, LLVM and ONNX opsets, and the targets");
  app.add_option("--target", target, "the target that --print-target describes (docs/targets.md)")
      ->capture_default_str();
  app.add_flag("--print-target", print_target,
               "print the figures of the target, and where each is from, as a target file");
  int exit_code = kRight;
  add_run(app, exit_code);
  add_compile(app, exit_code);
  add_opt(app, exit_code);
  add_bench(app, exit_code);
  add_generate(app, exit_code);
  add_explain(app, exit_code);
  add_inspect(app, exit_code);
  add_reduce(app, exit_code);
  add_debug(app, exit_code);
  add_doctor(app, exit_code);
  add_text(app, exit_code);
  add_view(app, exit_code);
  add_compare(app, exit_code);
  add_quantize(app, exit_code);
  add_cache(app, exit_code);
  add_help(app);
  add_manual(app);
  add_console_flags(app);
  for (CLI::App* command : app.get_subcommands(nullptr)) {
    add_console_flags(*command);
    command->excludes(version);
  }
  const ProgressScope progress;
  try {
    app.parse(arguments_of(argc, argv));
    if (print_version) {
      print_text(version_report() + "\n");
    } else if (print_target) {
      print_text(relaxc::print_target(relaxc::codegen::parse_target(target)));
    } else if (app.get_subcommands().empty()) {
      exit_code = exit_without_command(app, argc);
    }
  } catch (const CLI::ParseError& error) {
    exit_code = exit_of_parser(app, error);
  }
  relaxc::vm::flush(stdout);
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  reserve_standard_streams();
  std::signal(SIGBUS, on_bus_error);
  handle_segmentation_faults();
  handle_ending_signals();
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond the limit of file sizes is an error
  relaxc::name_kinds_of_files();
  return exit_code_of(
      [&] { return run(argc, argv); },
      {.bug = [&](const std::string& text) { print_bug(text, argc, argv); }, .unsupported = print_unsupported});
}
