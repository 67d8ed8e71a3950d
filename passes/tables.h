// <relaxc/plugin.h>: what a compiler is made of, as a value: operators, passes, pipelines, rules, tensor intrinsics,
// ONNX converters, and libraries whose C functions kernels call. A plug-in is a shared object that adds rows:
//
//   #include <relaxc/plugin.h>
//   RELAXC_PLUGIN(tables) { tables.add(relaxc::Pass{.name = "my_pass", .doc = "...", .on_module = my_pass}); }
//
// `relaxc ... --plugin libmine.so` and CompileSettings::tables compile with them (docs/plugins.md).
#pragma once
#include <deque>

#include "ir/arith.h"  // for plug-ins: index arithmetic
#include "ops/onnx_converter.h"
#include "passes/external.h"
#include "tir/rules/choose.h"

namespace relaxc {

// Where a pass stands in a pipeline: before the first occurrence of another one, or after its last one; at the end
// where both are empty.
struct PassPlace {
  std::string pipeline;
  std::string before = {}, after = {};
};

class Tables {
 public:
  Tables();  // with the built-in rows
  Tables(const Tables&) = delete;
  Tables& operator=(const Tables&) = delete;

  // These add rows. A name that exists already, and a row that lacks a part, are a CompileError.
  //
  // The operator's name begins with "relax.". One with `onnx` is also what nodes of that name ("com.me::FancyGelu") are
  // imported to.
  void add(OpRow row);
  // A pass must be right for any module at its places, and depend on its arguments only.
  void add(Pass pass, const std::vector<PassPlace>& places = {});
  void add(Pipeline pipeline);
  // Replaces the list of a pipeline that exists.
  void replace(const std::string& pipeline, std::vector<std::string> passes);
  // A rule for an operator, tried before the built-in ones and after the user's.
  void add(ScheduleRule rule);
  void add(TensorIntrin intrin);
  void add(OnnxConverter converter);
  // Writes quantize and dequantize as the arithmetic that they stand for, for passes that are placed before
  // integer_regions in the pipeline simplify: an accelerator computes with the weights in 8 bits, which stay as the
  // model holds them up to there.
  void keep_narrow_weights();
  // Adds the passes of another compiler for parts of the graph, and keeps narrow weights for them.
  void add(ExternalCompiler compiler);
  // Adds the rules and intrinsics of a file of schedules (docs/schedules.md).
  void add_schedules(std::string_view text, const std::string& filename);
  // Kernels call the C functions of this shared object (T.call_extern). Artifacts need it at run time; a path without
  // a folder is searched as dlopen does.
  void add_library(const std::string& path);
  // Loads a shared object and lets it add its rows. Throws a CompileError that names it where it cannot be loaded, is
  // made for another version of relaxc, or fails.
  void load_plugin(const std::string& path);
  // Returns the absolute path of the plug-in whose entry runs, for add_library where it holds the functions itself.
  std::string plugin() const;

  const OpTable& ops() const { return *ops_; }
  const std::deque<Pass>& passes() const { return passes_; }
  const std::vector<Pipeline>& pipelines() const { return pipelines_; }
  const MoreRules& rules() const { return rules_; }
  const TensorIntrins& intrins() const { return rules_.intrins ? *rules_.intrins : builtin_tensor_intrins(); }
  const std::vector<OnnxConverter>& converters() const { return converters_; }
  const std::vector<ExternalCompiler>& external_compilers() const { return external_compilers_; }
  const std::vector<std::string>& libraries() const { return libraries_; }
  const Pass* find_pass(std::string_view name) const;
  const Pipeline* find_pipeline(std::string_view name) const;

  // Returns the plug-in that the row comes from; "" for a built-in one, "this program" for one that the host added.
  enum class Kind : uint8_t { kOperator, kPass, kPipeline, kRule, kIntrinsic, kConverter, kExternal };
  std::string origin(Kind kind, std::string_view name) const;
  // Returns " --plugin libmine.so" for each plug-in, for a command that reproduces something.
  std::string flags() const;
  // Returns what keys of reuse have to contain: the same text for the same rows, in any process; nullopt where a host
  // program added rows, of which nothing can be known.
  std::optional<std::string> identity() const;
  // Returns tables with these operators and libraries, and otherwise the built-in rows: for constant folding.
  std::shared_ptr<const Tables> operators_only() const;

 private:
  void claim(Kind kind, const std::string& name, bool exists);
  void place(const std::string& pass, const PassPlace& at);
  void check_list(const std::string& pipeline, const std::vector<std::string>& passes) const;
  bool reaches(const std::vector<std::string>& passes, const std::string& pipeline) const;

  std::unique_ptr<const OpTable> ops_;
  std::deque<Pass> passes_;  // parse_passes() returns pointers to them
  std::vector<Pipeline> pipelines_;
  MoreRules rules_;
  std::vector<OnnxConverter> converters_;
  std::vector<ExternalCompiler> external_compilers_;
  std::vector<std::string> libraries_;
  std::map<std::pair<Kind, std::string>, std::string> origins_;  // of the rows that are not built in
  std::string plugin_;                                           // whose entry runs
  std::vector<std::string> plugins_;
  std::string identity_;  // of them
  bool has_host_rows_ = false, keeps_weights_ = false;
};

const Tables& builtin_tables();
// Returns the settings' tables, or the built-in ones.
const Tables& tables_of(const PassSettings& settings);
// Returns the built-in rows and those of the plug-ins; null where there are no plug-ins.
std::shared_ptr<Tables> load_plugins(const std::vector<std::string>& paths);

// The interface between relaxc and a plug-in are these headers. Both sides state what they were compiled with, and the
// loader compares it.
struct PluginVersion {
  uint32_t interface;  // rises with each change of meaning
  uint32_t compiler;   // the ABI of C++
  uint64_t layout;     // of the structs that both sides read
};
// clang-format off
inline constexpr PluginVersion kPluginVersion = [] {
  uint64_t layout = 0xcbf29ce484222325;  // FNV-1a
  for (size_t size : {sizeof(Tables), sizeof(OpRow), sizeof(Pass), sizeof(Pipeline), sizeof(PassContext),
                      sizeof(PassSettings), sizeof(Target), sizeof(ScheduleRule), sizeof(OnnxConverter),
                      sizeof(TensorIntrin), sizeof(IRModule), sizeof(Function), sizeof(PrimFunc), sizeof(Call),
                      sizeof(Var), sizeof(For), sizeof(Block), sizeof(BufferStore), sizeof(BufferLoad),
                      sizeof(BufferType), sizeof(TensorType), sizeof(Attrs), sizeof(AttrValue), sizeof(Tensor),
                      sizeof(ExternalCompiler), sizeof(ExternalPart), sizeof(PatternMatch)})
    layout = (layout ^ size) * 0x100000001b3;
  return PluginVersion{2, __GXX_ABI_VERSION, layout};
}();
// clang-format on

}  // namespace relaxc

// Defines the entry of a plug-in, which adds rows to `tables`.
#define RELAXC_PLUGIN(tables)                                                                          \
  extern "C" __attribute__((visibility("default"))) const relaxc::PluginVersion relaxc_plugin_version; \
  extern "C" constinit const relaxc::PluginVersion relaxc_plugin_version = relaxc::kPluginVersion;     \
  extern "C" __attribute__((visibility("default"))) void relaxc_plugin(relaxc::Tables& tables);        \
  void relaxc_plugin(relaxc::Tables& tables)
