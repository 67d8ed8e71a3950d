// Kernels that somebody brings for operators: a tensor program, or a C function that has the signature of one. The
// importer calls them for nodes of a model, passes/apply_kernels.cc for operators and patterns of the graph.
//
//   @T.prim_func
//   def scaled(x: T.Buffer(("n", 64), "float32"), scale: T.float32, y: T.Buffer(("n", 64), "float32")): ...
//
// The buffers are the tensor arguments in order, then the results; one more is the tensor attribute of its name. A
// scalar param is an attribute of its name ("pads_1" is item 1 of the list or tensor `pads`), and its value becomes a
// constant of the program. Dims follow from the arguments; those that are numbers are conditions.
#pragma once
#include <fmt/format.h>

#include <memory>
#include <set>
#include <variant>

#include "ir/builder.h"

namespace relaxc {

// A condition on dims and attributes, by name.
using DimValues = std::map<std::string, AttrValue, std::less<>>;
struct DimCondition {
  std::vector<std::string> reads = {};  // the names
  // Returns why it does not hold; nullopt when it does.
  std::function<std::optional<std::string>(const DimValues& values)> failure = nullptr;

  explicit operator bool() const { return failure != nullptr; }
  std::optional<std::string> operator()(const DimValues& values) const { return failure(values); }
};

struct UserKernel {
  std::string name;
  PrimFuncRef program;      // has no body for a C function
  std::string symbol = {};  // of the C function; empty: `program` is the kernel
  // Of a C function that says so: how many of its last buffers are results, of which a call may leave out the last
  // ones.
  size_t results = 0;
  Attrs defaults = {};                                   // of attributes that a call leaves out
  std::map<std::string, Expr, std::less<>> layout = {};  // by param: the index map of a constant operand's own layout
  DimCondition where = {};
  // Computes the dims of a result at run time, from the same arguments; null: all dims follow from theirs.
  std::shared_ptr<const UserKernel> shape = nullptr;
};

// An attribute of the computation that whoever asks for the kernel neither names nor knows to be without effect.
struct OpenAttr {
  std::string name;
  AttrValue value;
  std::string op = {};  // the operator of a pattern that has it
};

// What a kernel is asked to compute.
struct KernelRequest {
  std::vector<Expr> tensors;
  Attrs attrs;
  size_t num_outputs = 1;
  std::vector<Type> outputs = {};   // types of the results; empty where the kernel says them
  std::vector<OpenAttr> open = {};  // the kernel must read them
  std::vector<Type> known = {};  // of results, where `outputs` is empty: dims that the kernel does not say are theirs
};

// Returns a call of the kernel, a tuple where it has several results (more than asked for, if the last ones are left
// out), with the kernel as a function of the module, or why it does not fit. Dims of which
// nothing is known do not fit where the results' types are given, and else are tested when the model runs.
std::variant<Expr, std::string> call_user_kernel(const UserKernel& kernel, const KernelRequest& request,
                                                 IRModule& module, Builder& builder);

// Returns whether a scalar param of the kernel, or its condition, reads the attribute or an item of it.
bool reads_attribute(const UserKernel& kernel, std::string_view name);

// Returns what to write for an attribute that a node leaves out, and that has no default.
std::string remedy_of_absent(std::string_view name);

// Returns a dim as messages print it: "(h + 1) // 2".
std::string text_of_dim(const Expr& dim);

// Returns "float32(n, 16)".
std::string text_of_tensor(const Type& type);
// Returns an attribute's value as messages print it: of a tensor its type.
std::string text_of_attribute(const AttrValue& value);

// Says who implements a node of the model or an operator of the graph, alone or as one of several, or why somebody who
// claims it does not.
struct Claim {
  Span node;              // of the model, or of the text
  std::string what;       // the operator: "nn.conv2d", "com.me::FancyGelu"
  std::string by;         // "kernel 'my_softmax'"
  std::string refused;    // the condition that failed; empty: it implements the node
  std::string note = {};  // what whoever reads of it should know
  std::string at = {};    // the node whose value `by` computes, of which this one is a part
};
using OnClaim = std::function<void(const Claim&)>;

// A kernel for nodes of a model: those of a type, "com.me::FancyGelu" ("ai.onnx" is ONNX's domain), or the one of a
// name. A node must have the attributes.
struct NodeKernel {
  std::string type = {}, node = {};
  Attrs attrs = {};
  UserKernel kernel;
  std::set<int64_t> absent = {};  // the positions of optional inputs that the node must leave out; it has all others
  Span span = {};                 // of the rule
};

// Notes where a rule of the user's was applied, or where it came closest, and why it was not.
struct RuleUse {
  bool is_used = false;
  std::string refused = {};
  int depth = -1;  // how much of the pattern fits where that is
  void refuse(const std::string& place, const std::string& why, int fits = 0) {
    if (why.empty() || fits <= depth) return;
    refused = place.empty() ? why : fmt::format("at '{}': {}", place, why);
    depth = fits;
  }
};
// Returns "file:1:2: note: message" with the line of the text.
std::string note_at(const Span& span, std::string_view message);

// Returns whether an attribute has the value that a condition asks for. Numbers are compared as float32 where the model
// stores them so; an axis may be counted from the end of `rank` axes.
bool attribute_is(std::string_view name, const AttrValue& value, const AttrValue& wanted, int64_t rank);

}  // namespace relaxc
