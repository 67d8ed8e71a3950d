// <relaxc/kernels.h>: kernels for operators of a network that is imported, each with what it implements.
//
//   @S.implements("nn.softmax", axis=-1)             # an operator, with attributes that it must have
//   @T.prim_func
//   def my_softmax(x: T.Buffer(("n", "m"), "float32"), y: T.Buffer(("n", "m"), "float32")): ...
//
//   @S.pattern                                        # several operators, as the graph that they form
//   def conv_relu(x, w: S.constant):
//       return R.nn.relu(R.nn.conv2d(x, w, padding=[1, 1, 1, 1]))
//   @S.implements(conv_relu)
//   @S.extern("my_conv_relu")                         # a C function; its signature is that of a tensor program
//   def my_conv_relu(x: ..., w: ..., y: ...): ...
//
// docs/own-kernels.md has all of it. passes/apply_kernels.cc applies the rules.
#pragma once
#include "ops/user_kernel.h"
#include "passes/pass.h"
#include "passes/pattern.h"
#include "tir/schedule/script.h"

namespace relaxc {

// Does one of three things with what it implements: calls a kernel, replaces it by a function's body (a rewriter), or,
// with neither, makes one tensor program of it under the pattern's name, for a schedule.
struct KernelRule {
  std::string name;
  Span span;
  std::optional<Pattern> pattern = {};  // what it implements in the graph; without one: nodes of the model
  std::string pattern_name = {};        // of the @S.pattern that a kernel implements
  std::string node = {};                // only the node of this name
  std::string node_type = {};           // "com.me::FancyGelu"
  Attrs attrs = {};                     // that the node must have
  std::optional<UserKernel> kernel = {};
  std::optional<FunctionRef> replacement = {};
  IRModule functions = {};        // that the replacement calls
  DimCondition where = {};        // of the pattern; a kernel has its own
  std::set<int64_t> absent = {};  // inputs that the node must leave out (NodeKernel)
  // Applies the rules of this name alone, where --passes names it; null for kernels of nodes.
  std::shared_ptr<const Pass> pass = nullptr;
};

// Reads the kernels of a file, which may hold schedules as well (read_schedule_rules). Throws a CompileError with all
// errors in them. `notes` gets a line for each tensor program that implements nothing, `warnings` what is said of
// others.
std::vector<KernelRule> read_kernel_rules(std::string_view text, const std::string& filename, const OpTable& ops,
                                          std::vector<std::string>* notes = nullptr, Diagnostics* warnings = nullptr);

// Returns the tensor programs of the rules.
IRModule programs_of_rules(const std::vector<KernelRule>& rules);

// Throws a CompileError where rules of two files have one name: schedules and --passes find them by it.
void check_names(const std::vector<KernelRule>& rules);

// Returns the pass that applies the rules of the name, out of those of its context.
Pass pass_of_rules(const std::string& name);
// Returns why the condition on the dims and attributes of the rule's pattern does not hold; nullopt where it does.
std::optional<std::string> unmet_condition(const KernelRule& rule, const PatternMatch& match);

// Returns those of them that implement nodes of a model, for the importer.
std::vector<NodeKernel> node_kernels(const std::vector<KernelRule>& rules);

}  // namespace relaxc
