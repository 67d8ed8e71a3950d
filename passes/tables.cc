#include "passes/tables.h"

#include "ops/ops.h"
#include "passes/graph_decisions.h"
#include "passes/kernel_rules.h"
#include "support/diagnostic.h"
#include "support/joined.h"
#include "support/lists.h"
#include "support/nearest.h"
#include "tir/rules/builtin_rules.h"
#include "tir/schedule/script.h"

namespace relaxc {

Tables::Tables()
    : ops_(std::make_unique<OpTable>(make_op_table())),
      passes_(relaxc::passes().begin(), relaxc::passes().end()),
      pipelines_(relaxc::pipelines()) {}

const Tables& builtin_tables() {
  static const Tables kTables;
  return kTables;
}

const Tables& tables_of(const PassSettings& settings) { return settings.tables ? *settings.tables : builtin_tables(); }

const Pass* find_pass(std::string_view name) { return builtin_tables().find_pass(name); }

const Pass* Tables::find_pass(std::string_view name) const { return find_item(passes_, name, &Pass::name); }

const Pipeline* Tables::find_pipeline(std::string_view name) const {
  return find_item(pipelines_, name, &Pipeline::name);
}

std::string Tables::origin(Kind kind, std::string_view name) const {
  const std::string* found = find_value(origins_, std::pair(kind, std::string(name)));
  return found ? (found->empty() ? "this program" : *found) : "";
}

std::string Tables::flags() const {
  return joined(plugins_, [](const std::string& path) { return " --plugin " + path; }, "");
}

std::optional<std::string> Tables::identity() const { return has_host_rows_ ? std::nullopt : std::optional(identity_); }

// ---- Adding rows

static const char* kind_name(Tables::Kind kind) {
  constexpr const char* kNames[] = {"operator", "pass", "pipeline", "rule", "intrinsic", "converter", "compiler"};
  return kNames[static_cast<size_t>(kind)];
}

// Notes where the row is from. `exists`: a row of that name, or of another kind that shares the names, is there.
void Tables::claim(Kind kind, const std::string& name, bool exists) {
  if (name.empty()) fail({}, "a {} has no name", kind_name(kind));
  if (exists) {
    std::string first = origin(kind, name);
    fail({}, "{} '{}' exists already ({}); give this one another name", kind_name(kind), name,
         first.empty() ? "built in" : "from " + first);
  }
  origins_.emplace(std::pair(kind, name), plugin_);
  if (plugin_.empty()) has_host_rows_ = true;
}

void Tables::add(OpRow row) {
  if (!row.name.starts_with("relax.")) fail({}, "operator '{}': the name begins with \"relax.\"", row.name);
  claim(Kind::kOperator, row.name, ops_->find(row.name));
  if (!row.infer) fail({}, "operator '{}' has no infer, which returns the type of a call", row.name);
  if (!row.onnx.empty()) add(direct_converter(row, row.onnx));
  std::vector<OpRow> rows = ops_->rows();
  rows.push_back(std::move(row));
  ops_ = std::make_unique<OpTable>(std::move(rows));
}

void Tables::add(Pass pass, const std::vector<PassPlace>& places) {
  claim(Kind::kPass, pass.name, find_pass(pass.name) || find_pipeline(pass.name));
  if (!pass.on_module == !pass.on_program)
    fail({}, "pass '{}' sets {} of on_module and on_program; set one", pass.name, pass.on_module ? "both" : "neither");
  passes_.push_back(std::move(pass));
  for (const PassPlace& at : places) place(passes_.back().name, at);
}

void Tables::place(const std::string& pass, const PassPlace& at) {
  Pipeline* pipeline = find_item(pipelines_, at.pipeline, &Pipeline::name);
  if (!pipeline)
    fail({}, "pass '{}': there is no pipeline '{}'; there are: {}", pass, at.pipeline,
         joined(pipelines_, &Pipeline::name));
  if (!at.before.empty() && !at.after.empty())
    fail({}, "pass '{}': its place in '{}' is before '{}' and after '{}'; give one of them", pass, at.pipeline,
         at.before, at.after);
  std::vector<std::string>& list = pipeline->passes;
  const std::string& other = at.before.empty() ? at.after : at.before;
  auto position = list.end();
  if (!other.empty()) {
    position = std::ranges::find(list, other);
    if (position == list.end())
      fail({}, "pass '{}': pipeline '{}' has no pass '{}'; it has: {}", pass, at.pipeline, other, joined(list));
    if (at.before.empty()) position = std::find(list.rbegin(), list.rend(), other).base();
  }
  list.insert(position, pass);
}

bool Tables::reaches(const std::vector<std::string>& passes, const std::string& pipeline) const {
  return std::ranges::any_of(passes, [&](const std::string& name) {
    const Pipeline* inner = find_pipeline(name);
    return name == pipeline || (inner && reaches(inner->passes, pipeline));
  });
}

void Tables::check_list(const std::string& pipeline, const std::vector<std::string>& passes) const {
  for (const std::string& name : passes) {
    if (!find_pass(name) && !find_pipeline(name) && name != pipeline)
      fail({}, "pipeline '{}' names '{}', which is neither a pass nor a pipeline", pipeline, name);
  }
  if (reaches(passes, pipeline)) fail({}, "pipeline '{}' would contain itself", pipeline);
}

void Tables::add(Pipeline pipeline) {
  claim(Kind::kPipeline, pipeline.name, find_pass(pipeline.name) || find_pipeline(pipeline.name));
  check_list(pipeline.name, pipeline.passes);
  pipelines_.push_back(std::move(pipeline));
}

void Tables::replace(const std::string& pipeline, std::vector<std::string> passes) {
  Pipeline* known = find_item(pipelines_, pipeline, &Pipeline::name);
  if (!known) fail({}, "there is no pipeline '{}'; there are: {}", pipeline, joined(pipelines_, &Pipeline::name));
  check_list(pipeline, passes);
  known->passes = std::move(passes);
  origins_.insert_or_assign({Kind::kPipeline, pipeline}, plugin_);
  if (plugin_.empty()) has_host_rows_ = true;
}

void Tables::add(ScheduleRule rule) {
  if (!rule.uses.empty())
    fail(rule.span, "S.use(\"{}\") chooses for one compile; tables hold rules for operators", rule.uses);
  auto is_graph_rule = [&](const GraphRule& known) { return known.name == rule.name; };
  bool exists = find_rule(rule.name, rules_.rules) || std::ranges::any_of(graph_rules(), is_graph_rule);
  claim(Kind::kRule, rule.name, exists);
  if (!rule.function.empty() || rule.op.empty())
    fail(rule.span, "rule '{}' is for {}; tables hold rules for operators, @S.rule(\"matmul\")", rule.name,
         rule.function.empty() ? "no operator" : fmt::format("the program '{}'", rule.function));
  if (!rule.apply) fail(rule.span, "rule '{}' has nothing to apply", rule.name);
  rules_.rules.push_back(std::move(rule));
}

void Tables::add(TensorIntrin intrin) {
  auto all = std::make_shared<TensorIntrins>(intrins());
  claim(Kind::kIntrinsic, intrin.name, all->find(intrin.name));
  all->add(std::move(intrin));
  rules_.intrins = std::move(all);
}

void Tables::add(OnnxConverter converter) {
  auto is_same = [&](const OnnxConverter& known) {
    return known.name == converter.name && known.since == converter.since;
  };
  claim(Kind::kConverter, converter.name, std::ranges::any_of(converters_, is_same));
  if (!converter.convert) fail({}, "converter '{}' has no function convert", converter.name);
  converters_.push_back(std::move(converter));
}

void Tables::keep_narrow_weights() {
  if (std::exchange(keeps_weights_, true)) return;
  place("expand_quantization", {.pipeline = "simplify", .before = "fold_parameters"});
}

void Tables::add(ExternalCompiler compiler) {
  claim(Kind::kExternal, compiler.name, find_item(external_compilers_, compiler.name, &ExternalCompiler::name));
  if (compiler.patterns.empty() || !compiler.compile || compiler.function.empty())
    fail({}, "compiler '{}' has no {}", compiler.name,
         compiler.patterns.empty() ? "patterns"
         : !compiler.compile       ? "compile"
                                   : "function");
  keep_narrow_weights();
  add(claim_pass(compiler, *ops_), {{.pipeline = "simplify", .before = "integer_regions"}});
  add(call_pass(compiler), {{.pipeline = "lower_kernels", .after = "simplify_program"}});
  external_compilers_.push_back(std::move(compiler));
}

void Tables::add_schedules(std::string_view text, const std::string& filename) {
  TensorIntrins intrins = read_tensor_intrins(text, filename);
  for (const std::string& name : intrins.names()) add(*intrins.find(name));
  for (ScheduleRule& rule : read_schedule_rules(text, filename)) add(std::move(rule));
}

void Tables::add_library(const std::string& path) {
  if (std::ranges::count(libraries_, path) == 0) libraries_.push_back(path);
  if (plugin_.empty()) has_host_rows_ = true;
}

std::shared_ptr<const Tables> Tables::operators_only() const {
  auto result = std::make_shared<Tables>();
  std::vector<OpRow> rows = ops_->rows();
  result->ops_ = std::make_unique<OpTable>(std::move(rows));
  result->libraries_ = libraries_;
  result->plugins_ = plugins_;
  result->identity_ = identity_;
  result->has_host_rows_ = has_host_rows_;
  return result;
}

// ---- Naming passes

namespace {

// What TVM's passes and pipelines are here, for those who type their names.
constexpr std::pair<std::string_view, std::string_view> kNamesInTvm[] = {
    {"zero", "the pipelines simplify,kernels"},
    {"default_build", "the pipeline default"},
    {"static_shape_tuning", "the pipeline default with --schedules FOLDER, the records of a tuner"},
    {"LegalizeOps", "the pass legalize"},
    {"AnnotateTIROpPattern", "a part of the pass fuse"},
    {"FuseOps", "the pass fuse"},
    {"FuseTIR", "the pass fuse"},
    {"FoldConstant", "the pass fold_constants"},
    {"CanonicalizeBindings", "the pass canonicalize"},
    {"EliminateCommonSubexpr", "the pass merge_common_subexpressions"},
    {"DeadCodeElimination", "the pass remove_dead_code"},
    {"DecomposeOpsForInference", "the passes decompose,fold_batch_norm"},
    {"FoldBatchnormToConv2D", "the pass fold_batch_norm"},
    {"ConvertLayout", "the pass choose_layouts, which chooses them itself"},
    {"AlterOpImpl", "a kernel with @S.implements(..., layout=...) in a file for --kernels"},
    {"BindParams", "no pass: --bind NAME=FILE"},
    {"BindSymbolicVars", "no pass: --dim NAME=NUMBER"},
    {"SimplifyInference", "the passes decompose,fold_batch_norm"},
    {"Normalize", "no pass: a graph is normalized when it is read"},
    {"ToNonDataflow", "a part of the pass destination_passing"},
    {"KillAfterLastUse", "a part of the pass plan_memory"},
    {"VMShapeLower", "no pass: the writer of bytecode does it (--emit=bytecode)"},
    {"AttachGlobalSymbol", "no pass: kernels are named by fuse and lower_kernels"},
    {"StorageRewrite", "the pass share_storage"},
    {"LowerOpaqueBlock", "the pass lower_blocks"},
    {"UnrollLoop", "no pass: sch.unroll, or the annotation pragma_unroll"},
    {"ToMixedPrecision", "not there: export the model in float16"},
    {"Gradient", "the pass gradient, for functions with the attribute require_grads"},
    {"LiftTransformParams", "the pass pack_weights"},
    {"LambdaLift", "the pass lambda_lift"},
    {"CallTIRRewrite", "the pass destination_passing"},
    {"StaticPlanBlockMemory", "the pass plan_memory"},
    {"ApplyDefaultSchedule", "the pipeline schedule"},
    {"MetaScheduleApplyDatabase", "the pipeline schedule with --schedules FOLDER, the records of a tuner"},
    {"MetaScheduleTuneTIR", "no pass: rules choose schedules by formulas (--list-rules), and nothing is tuned"},
    {"MetaScheduleTuneIRMod", "no pass: rules choose schedules by formulas (--list-rules), and nothing is tuned"},
    {"FuseOpsByPattern", "no pass: a @S.pattern in a file for --kernels, or a --backend"},
    {"MergeCompositeFunctions", "a part of what --backend FILE.so does"},
    {"RunCodegen", "a part of what --backend FILE.so does"},
};

// Returns the user's rules that --passes may name.
std::vector<const KernelRule*> named_rules(const PassSettings& settings) {
  std::vector<const KernelRule*> result;
  if (!settings.kernels) return result;
  for (const KernelRule& rule : *settings.kernels) {
    if (rule.pass) result.push_back(&rule);
  }
  return result;
}

[[noreturn]] void fail_unknown(std::string_view name, const PassSettings& settings) {
  std::string_view last = name.substr(name.rfind('.') + 1);  // relax.transform.LegalizeOps()
  last = last.substr(0, last.find('('));
  for (const auto& [theirs, ours] : kNamesInTvm)
    if (last == theirs) fail_usage({}, "unknown pass '{}'; what TVM calls so is here {}", name, ours);
  for (const KernelRule* rule : named_rules(settings)) {
    if (rule->pattern_name == name)
      fail_usage({}, "'{}' is a pattern, and no pass: the pass that applies it has the name of its kernel, '{}'", name,
                 rule->name);
  }
  const Tables& tables = tables_of(settings);
  std::vector<std::string> names = map_each(tables.pipelines(), &Pipeline::name);
  for (const Pass& pass : tables.passes()) names.push_back(pass.name);
  for (const KernelRule* rule : named_rules(settings)) names.push_back(rule->name);
  std::string near = nearest(name, names);
  fail_usage({}, "unknown pass '{}'; {}", name,
             near.empty() ? "relaxc opt --list-passes lists them" : fmt::format("did you mean '{}'?", near));
}

// A pass that is named is taken; one that a pipeline holds, where its setting is on.
void add_passes(const Pipeline& pipeline, const PassSettings& settings, std::string_view lowering,
                std::vector<const Pass*>& result) {
  const Tables& tables = tables_of(settings);
  for (std::string_view name : pipeline.passes) {
    const Pass* pass = tables.find_pass(name);
    if (!pass) {
      add_passes(*tables.find_pipeline(name == kLowerKernels ? lowering : name), settings, lowering, result);
    } else if (!pass->setting || settings.*pass->setting) {
      result.push_back(pass);
    }
  }
}

}  // namespace

std::vector<const Pass*> parse_passes(std::string_view text, const PassSettings& settings, std::string_view lowering) {
  const Tables& tables = tables_of(settings);
  std::vector<const Pass*> result;
  const std::vector<const KernelRule*> rules = named_rules(settings);
  for (std::string_view name : parts_of(text, ',')) {
    auto rule = std::ranges::find(rules, name, &KernelRule::name);
    const Pass* pass = tables.find_pass(name);
    const Pipeline* pipeline = tables.find_pipeline(name);
    if (rule != rules.end() && (pass || pipeline))
      fail((*rule)->span, "'{}' is a rule of --kernels and a {}; give the rule another name", name,
           pass ? "pass" : "pipeline");
    if (rule != rules.end()) {
      result.push_back((*rule)->pass.get());
    } else if (pass) {
      result.push_back(pass);
    } else if (pipeline) {
      add_passes(*pipeline, settings, lowering, result);
    } else {
      fail_unknown(name, settings);
    }
  }
  return result;
}

}  // namespace relaxc
