// relaxc: the command line.
#include <algorithm>
#include <cstdio>

#include "support/diagnostic.h"
#include "tools/tool.h"
#include "vm/error.h"

namespace {

// For operators the last note names the command that lists what is supported.
void print_unsupported(const relaxc::CompileError& error) {
  fmt::print(stderr, "{}\n", error.what());
  bool about_operators =
      std::any_of(error.diagnostics().begin(), error.diagnostics().end(), [](const relaxc::Diagnostic& diagnostic) {
        bool of_model_node = diagnostic.span && !diagnostic.span.origin->op_type.empty();
        return of_model_node || diagnostic.message.find("operator") != std::string::npos;
      });
  if (about_operators) fmt::print(stderr, "  note: relaxc opt --list-ops shows what is supported\n");
}

}  // namespace

int main(int argc, char** argv) {
  using namespace relaxc::tools;
  CLI::App app{"relaxc compiles ONNX models and TVMScript modules to native code and runs them."};
  app.footer(
      "Example:\n"
      "  relaxc run model.onnx --dim batch=4\n"
      "  relaxc compile model.onnx -o model.so && relaxc run model.so\n"
      "Exit codes: 0 right, 1 wrong result or invalid input, 2 wrong usage, 3 unsupported.\n"
      "relaxc COMMAND --help says more.");
  app.require_subcommand(1);
  int exit_code = kRight;
  add_run(app, exit_code);
  add_compile(app, exit_code);
  add_opt(app, exit_code);
  add_bench(app, exit_code);
  add_text(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kRight : kUsage;
  } catch (const relaxc::CompileError& error) {
    if (error.kind() == relaxc::ErrorKind::kUnsupported) {
      print_unsupported(error);
      return kUnsupported;
    }
    fmt::print(stderr, "{}\n", error.what());
    return kWrong;
  } catch (const relaxc::RuntimeError& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return kWrong;
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "error: out of memory\n");
    return kWrong;
  } catch (const relaxc::InternalError& error) {
    fmt::print(stderr, "{}\n  note: this is a bug of relaxc; the command was:", error.what());
    for (int i = 0; i < argc; ++i) fmt::print(stderr, " {}", argv[i]);
    fmt::print(stderr, "\n");
    return kWrong;
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return kWrong;
  }
  return exit_code;
}
