// relaxc opt --list-onnx-ops: the ONNX operators that can be imported, as the tables and the compiler itself tell it;
// docs/operators.md is this text. An operator's example is imported and lowered for each dtype.
#include <algorithm>
#include <set>

#include "frontend/onnx/examples.h"
#include "ir/visit.h"
#include "ops/common.h"
#include "support/diagnostic.h"
#include "support/joined.h"
#include "tools/tool.h"

namespace relaxc::tools {

namespace {

constexpr const char* kHead = R"(# ONNX operators

`relaxc opt --list-onnx-ops` prints this page from the tables of the importer and of the operators; a test compares the
two, and `./dev update onnx_operators` writes it anew. All operators of these tables can be imported, but for those of
the section "Refused by name".

- **opsets**: the first opset of each row that the table has of the operator. A row applies up to the next one, the last
  one to every later opset. A function body of ONNX is not needed: operators that ONNX defines by one are composed here.
- **example**: a call that relaxc lowers. Sizes stand for any, constant or symbolic, that fit together. T, U and V are
  dtypes; `-` is an operand that is left out; braces hold constants, or the graph of an attribute.
- **dtypes**: those that the example can have in the place of T, U and V, found by lowering it with each of them, where
  the others are those that are named first in brackets. Families:
  `floats` are float16, bfloat16, float32, float64; `ints` int8, int16, int32, int64; `uints` the same unsigned;
  `small floats` float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz, float8_e8m0fnu, float4_e2m1fn;
  `small ints` int2, uint2, int4, uint4; `numbers` are all of these. `complex` are complex64 and complex128, whose
  numbers operators move and do not compute with.
- **lowered**: the operators of the graph that the example becomes. One without a mark is a tensor program: it is fused
  with its neighbours, vectorized and run in parallel. Marks: `composed`: written with other operators before it is
  lowered; `bytecode`: an instruction of the virtual machine, which computes no element; `runtime`: a function of the
  runtime library, for the reason in the section "Functions of the runtime".
)";

// Where the text of ONNX leaves a choice, or its parts disagree.
constexpr const char* kChoices = R"(
## Where ONNX leaves a choice

Differences from ONNX Runtime that remain stand in `tests/onnx_operators/explained.txt`, each with its reason.

- **GridSample**: cubic samples with `padding_mode` `border` repeat the pixels of the border under their taps, as in torch
  and ONNX Runtime (ONNX's reference moves the coordinate itself onto the outermost pixel).
  Halfway between two pixels `nearest` goes to the even one in planes and away from 0 in volumes, as ONNX's test data do.
- **Cast** and **CastLike**: NaN becomes -0 in float4_e2m1fn, which has no NaN, as in ONNX's test data and in ml_dtypes
  (ONNX's table says 6). A bool becomes the text `True` or `False`, as in ONNX's reference (ONNX Runtime: `1` or `0`). A whole
  float becomes `2.0` (ONNX Runtime: `2`). Floats become integers of 4 and 2 bits by truncation, as for all other integers.
- **NonZero** of a scalar is [0, N], as the text says (NumPy and ONNX Runtime: [1, N]).
- **Slice** with a negative step: a start before the first element is the first element, as in ONNX Runtime.
- **ReduceMean** of integers is computed in float64 and truncated; other sums of integers wrap around.
- **QLinearAdd** and the like of com.microsoft round before they add the zero point, as QuantizeLinear does.
  **QLinearAveragePool** adds it first, and **QLinearGlobalAveragePool** multiplies a sum of integers by one factor, as
  ONNX Runtime does: averages often lie halfway between two steps.
- **DynamicQuantizeLSTM** quantizes the inputs of all steps at once, and the hidden states of all sequences of the batch
  in each step, as DynamicQuantizeLinear does.
- **TreeEnsembleClassifier** with positive weights for one of two classes and no transform: the other class has what is
  left of 1, as in ONNX's reference. With weights for both classes the larger score wins, which is what a model that was
  trained with a softmax predicts (ONNX Runtime: the second class, where its score is above 0).
- **post_transform** of ai.onnx.ml changes a single score of a row only where it is `PROBIT`, as in ONNX Runtime.
- **RegexFullMatch** has all of RE2's syntax, with the classes of Unicode 15. A byte that is not UTF-8 matches `\C` only.
- **StringNormalizer** maps cases as Unicode does, in the locales `C` and `POSIX` those of ASCII, and in Turkish and
  Azerbaijani ones an i with its dot; no locale need be installed (ONNX Runtime: fails without those of the machine).
- **StringSplit** splits as Python does: without a delimiter at white space of Unicode (ONNX Runtime: at spaces), and
  with one an empty string is one part (ONNX Runtime: none).
- **Resize** of opset 10, which has no `nearest_mode`, rounds down, as torch does.
)";

struct Family {
  const char* name;
  std::vector<std::string> dtypes;
  bool are_real = true;
};
const std::vector<Family>& families() {
  static const std::vector<Family> kFamilies = {
      {"floats", {"float16", "bfloat16", "float32", "float64"}},
      {"ints", {"int8", "int16", "int32", "int64"}},
      {"uints", {"uint8", "uint16", "uint32", "uint64"}},
      {"small floats",
       {"float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn"}},
      {"small ints", {"int2", "uint2", "int4", "uint4"}},
      {"complex", {"complex64", "complex128"}, false},
  };
  return kFamilies;
}
const std::vector<DType>& all_dtypes() {
  static const std::vector<DType> kAll = [] {
    std::vector<DType> result;
    for (const Family& family : families()) {
      for (const std::string& name : family.dtypes) result.push_back(parse_dtype(name).value());
    }
    result.push_back(kBool);
    result.push_back(DType::string());
    return result;
  }();
  return kAll;
}
// Returns "floats, int32, bool" for these dtypes.
std::string text_of(const std::vector<DType>& dtypes) {
  std::set<std::string> left;
  for (DType dtype : dtypes) left.insert(to_string(dtype));
  std::vector<std::string> parts;
  auto has_all = [&](const Family& family) {
    return std::ranges::all_of(family.dtypes, [&](const std::string& name) { return left.contains(name); });
  };
  const bool has_all_numbers =
      std::ranges::all_of(families(), [&](const Family& family) { return !family.are_real || has_all(family); });
  if (has_all_numbers) parts.emplace_back("numbers");
  for (const Family& family : families()) {
    const bool is_whole = has_all(family);
    if (is_whole && !(family.are_real && has_all_numbers)) parts.emplace_back(family.name);
    for (const std::string& name : family.dtypes) {
      if (left.erase(name) != 0 && !is_whole) parts.push_back(name);
    }
  }
  std::ranges::copy(left, std::back_inserter(parts));
  return joined(parts);
}

using Dtypes = std::map<char, DType>;

class Describer {
 public:
  explicit Describer(const CompileSettings& settings) : settings_(settings) {
    settings_.jobs = 1;
    settings_.passes = "lambda_lift,inline_calls,spread_tuples,decompose,decompose_rest,legalize";
    settings_.reuse = false;
  }

  // Returns the columns behind the opsets; nullopt when no example can be lowered with any dtypes.
  std::optional<std::string> columns(const OnnxForms& op) const {
    std::string shown, lowered;
    std::map<char, std::vector<DType>> accepted;
    std::map<char, std::string> first;
    for (const auto& [example, common] : op.examples) {
      const bool is_plain = op.examples.size() > 1 && example.find('=') == std::string::npos;
      if (!shown.empty() && is_plain) break;  // one of the plain ones is enough
      std::optional<Dtypes> found = common.empty() ? first_dtypes(op, example) : common;
      if (!common.empty() && !module_of(op, example, common)) found.reset();
      if (!found) continue;
      if (shown.empty()) shown = example, lowered = lowering(op, example, *found);
      for (const auto& [variable, dtype] : *found) {
        if (accepted[variable].empty()) first[variable] = to_string(dtype);
        Dtypes dtypes = *found;
        for (DType tried : all_dtypes()) {
          dtypes[variable] = tried;
          if (!contains(accepted[variable], tried) && module_of(op, example, dtypes))
            accepted[variable].push_back(tried);
        }
      }
    }
    if (shown.empty()) return std::nullopt;
    auto text = [&](const auto& entry) {
      std::string of = accepted.size() == 1 ? "" : fmt::format("{} ({}): ", entry.first, first[entry.first]);
      return of + text_of(entry.second);
    };
    const size_t arrow = shown.ends_with('}') ? shown.npos : shown.rfind(" -> ");
    const std::string call = fmt::format("{}({}){}", op.name, shown.substr(0, arrow),
                                         arrow == shown.npos ? "" : shown.substr(arrow) + " outputs");
    return fmt::format("`{}` | {} | {}", call, accepted.empty() ? "" : joined(accepted, text, "; "), lowered);
  }

 private:
  std::optional<IRModule> module_of(const OnnxForms& op, const std::string& example, const Dtypes& dtypes) const {
    try {
      IRModule module = import_onnx_example(op, example, dtypes, op_table());
      run_pipeline(module, settings_);
      return module;
    } catch (const CompileError&) {
      return std::nullopt;
    }
  }
  // Returns dtypes for the example's variables that can be lowered.
  std::optional<Dtypes> first_dtypes(const OnnxForms& op, const std::string& example) const {
    static const std::vector<DType> kTried = {kFloat32, kInt64,          kInt32,         DType::uint(8),
                                              kBool,    DType::string(), DType::int_(8), DType::int_(4)};
    std::string variables;
    for (size_t i = 0; i < example.size(); ++i) {
      bool is_word = i > 0 && (std::isalnum(static_cast<unsigned char>(example[i - 1])) != 0 || example[i - 1] == '"');
      bool ends = i + 1 == example.size() || example[i + 1] == '[' || example[i + 1] == ',' || example[i + 1] == ' ';
      bool is_variable = !is_word && ends && example[i] >= 'T' && example[i] <= 'V';
      if (is_variable && variables.find(example[i]) == std::string::npos) variables += example[i];
    }
    size_t combinations = 1;
    for (size_t i = 0; i < variables.size(); ++i) combinations *= kTried.size();
    for (size_t k = 0; k < combinations; ++k) {
      Dtypes dtypes;
      size_t rest = k;
      for (char variable : variables) {
        dtypes[variable] = kTried[rest % kTried.size()];
        rest /= kTried.size();
      }
      if (module_of(op, example, dtypes)) return dtypes;
    }
    return std::nullopt;
  }
  // Names the operators of the graph that the example becomes.
  std::string lowering(const OnnxForms& op, const std::string& example, const Dtypes& dtypes) const {
    std::vector<std::string> names;
    auto add = [&](const std::string& name, const char* mark) {
      std::string text = fmt::format("`{}`{}", name, mark);
      if (!contains(names, text)) names.push_back(text);
    };
    const std::optional<IRModule> module = module_of(op, example, dtypes);
    for (const auto& [_, function] : module->functions) {
      walk(
          function, [&](const If&) { add("if", " bytecode"); },
          [&](const Call& call) {
            const OpRef* callee = call.callee.as<OpRef>();
            const OpRow* row = callee ? op_table().find(callee->name) : nullptr;
            if (row) add(row->name.substr(6), mark_of(*row));
          });
    }
    return names.empty() ? "no kernel: the result is an operand or a constant" : joined(names);
  }
  static const char* mark_of(const OpRow& row) {
    return !row.why_runtime.empty() ? " runtime" : row.legalize ? "" : row.decompose ? " composed" : " bytecode";
  }

  CompileSettings settings_;
};

// Returns the rows of the table of one domain; the lines of refused operators go to `refused`.
std::string rows_of_domain(const std::vector<OnnxForms>& forms, const std::string& domain, const Describer& describer,
                           std::string& refused) {
  std::string result;
  for (const OnnxForms& op : forms) {
    if (op.domain != domain) continue;
    if (!op.why_refused.empty()) {
      refused += fmt::format("- **{}** ({}): {}.\n", op.name, domain.empty() ? "ai.onnx" : domain, op.why_refused);
      continue;
    }
    result += fmt::format("| {} | {} | {} |\n", op.name, joined(op.since),
                          describer.columns(op).value_or("(no example) | | "));
  }
  return result;
}

}  // namespace

std::string describe_onnx_operators(const CompileSettings& settings) {
  const std::vector<OnnxForms> forms = onnx_forms();
  const Describer describer(settings);
  std::vector<std::string> domains;
  for (const OnnxForms& op : forms) {
    if (!contains(domains, op.domain)) domains.push_back(op.domain);
  }
  std::string result = kHead, refused;
  for (const std::string& domain : domains) {
    result += fmt::format("\n## {}\n\n| operator | opsets | example | dtypes | lowered |\n|---|---|---|---|---|\n",
                          domain.empty() ? "ai.onnx" : domain);
    result += rows_of_domain(forms, domain, describer, refused);
  }
  result += kChoices;
  result += "\n## Refused by name\n\nA kernel can be given for a node of these (`docs/own-kernels.md`).\n\n" + refused;
  result +=
      "\n## Functions of the runtime\n\n| operator | what it is | why it is not a tensor program |\n|---|---|---|\n";
  for (const OpRow& row : op_table().rows()) {
    if (!row.why_runtime.empty())
      result += fmt::format("| `R.{}` | {} | {} |\n", row.name.substr(6), row.doc, row.why_runtime);
  }
  return result;
}

}  // namespace relaxc::tools
