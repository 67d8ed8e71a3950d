// Speed of the text format: parse and print of canonical text, in MB/s on one thread, at growing sizes.
//
// The text of size S is a module that holds a network's graph functions and scheduled kernels as often as S asks for.
// Parsing is timed from bytes to nodes (parse_module), printing from nodes to bytes (print_module); what prints must be
// the text itself. Each figure is the median of some rounds.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <functional>
#include <sstream>

#include "codegen/compile.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "ir/visit.h"

namespace {

using namespace relaxc;  // NOLINT: a program

// Of processor time: other programs on the machine do not count.
double seconds(const std::function<void()>& work) {
  std::clock_t start = std::clock();
  work();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

std::string read_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

IRModule read_text(const std::string& text, const std::string& name) {
  Diagnostics diagnostics;
  IRModule module = parse_module(text, name, op_table(), diagnostics);
  if (diagnostics.has_errors()) throw CompileError(diagnostics.all());
  return module;
}

// The module's functions, each with its calls going to its own copy, until the text has about `bytes`.
std::string grow(const IRModule& module, size_t bytes) {
  size_t one = print_module(module).size();
  IRModule grown = module;
  for (size_t copy = 1; copy * one < bytes; ++copy) {
    for (const auto& [name, function] : module.functions) {
      Expr renamed = rewrite(function, [&](const Ref<GlobalVar>& callee) -> std::optional<Expr> {
        return global_var(fmt::format("{}_{}", callee->name, copy), callee.type());
      });
      grown.functions.emplace(fmt::format("{}_{}", name, copy), renamed);
    }
  }
  return print_module(grown);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: text_bench MODULE.py [MAX_MB=100]\n");
    return 2;
  }
  try {
    CompileSettings settings;
    settings.passes = "legalize,fuse,schedule";
    IRModule module = run_pipeline(read_text(read_file(argv[1]), argv[1]), settings);
    size_t largest = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 100;
    fmt::print("{:>9}  {:>12}  {:>12}\n", "text MB", "parse MB/s", "print MB/s");
    for (size_t mb = 1; mb <= largest; mb *= 10) {
      std::string text = grow(module, mb << 20), printed;
      double size = static_cast<double>(text.size()) / 1e6;
      std::vector<double> parse_times, print_times;
      for (int round = 0; round < (mb >= 100 ? 1 : mb >= 10 ? 3 : 7); ++round) {
        IRModule again;  // an empty one, so that freeing the last round's is not timed
        parse_times.push_back(seconds([&] { again = read_text(text, "bench.py"); }));
        print_times.push_back(seconds([&] { printed = print_module(again); }));
        if (printed != text) {
          fmt::print(stderr, "error: the text does not print as itself\n");
          return 1;
        }
      }
      auto median = [](std::vector<double>& times) {
        std::sort(times.begin(), times.end());
        return times[times.size() / 2];
      };
      fmt::print("{:9.1f}  {:12.1f}  {:12.1f}\n", size, size / median(parse_times), size / median(print_times));
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
