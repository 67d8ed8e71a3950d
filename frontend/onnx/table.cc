// Collects all converters, and finds the one that applies to a node.
#include <algorithm>
#include <map>
#include <unordered_map>

#include "frontend/onnx/import.h"
#include "frontend/onnx/node.h"
#include "ops/ops.h"
#include "support/printable.h"

namespace relaxc::onnx_import {

std::vector<ConverterRow> in_domain(const char* domain, std::vector<ConverterRow> rows) {
  for (ConverterRow& row : rows) row.domain = domain;
  return rows;
}

std::string kernel_remedy(const std::string& domain, const std::string& op_type) {
  return fmt::format("give a kernel for it: --kernels FILE with @S.implements(\"{}::{}\")",
                     domain.empty() ? "ai.onnx" : printable(domain), printable(op_type));
}
[[noreturn]] static Outputs refuse(Node& n) {
  n.unsupported("{} {}; or {}", n.op_type(), n.row().why_refused, kernel_remedy(n.row().domain, n.op_type()));
}
ConverterRow refused_row(std::string_view op_type, int64_t since, const char* why) {
  return {op_type, since, 0, kAny, refuse, "", "", 0, why};
}

std::vector<ConverterRow> all_converters() {
  // These ONNX operators are relax operators of the same meaning and do not need a converter.
  static const std::vector<OpRow> kElementwise = elementwise_ops();
  std::vector<ConverterRow> rows;
  for (const OpRow& row : kElementwise) {
    if (row.onnx.empty()) continue;
    const int inputs = static_cast<int>(row.inputs.size());
    const char* old_attributes = inputs == 1 ? "consumed_inputs" : "axis broadcast consumed_inputs";
    ConverterRow direct{row.onnx, 1, inputs, inputs, {convert_directly, row.name.c_str()}, old_attributes};
    rows.push_back(direct);
    if (inputs == 1) continue;
    direct.since = 7;  // operands broadcast by themselves
    direct.attributes = "";
    rows.push_back(direct);
  }
#define RELAXC_ROW(group) group##_converters,
  for (auto* group : {RELAXC_CONVERTER_GROUPS(RELAXC_ROW)}) std::ranges::copy(group(), std::back_inserter(rows));
#undef RELAXC_ROW
  return rows;
}

static const std::map<std::string, int64_t>& newest_opsets() {
  static const std::map<std::string, int64_t> kNewest = [] {
    std::map<std::string, int64_t> newest;
    for (const ConverterRow& row : all_converters()) newest[row.domain] = std::max(newest[row.domain], row.since);
    return newest;
  }();
  return kNewest;
}
int64_t newest_opset() { return newest_opsets().at(""); }

const ConverterRow* find_converter(const std::string& domain, const std::string& op_type, int64_t opset) {
  static const auto kTable = [] {
    std::unordered_map<std::string, std::vector<ConverterRow>> table;
    for (const ConverterRow& row : all_converters()) {
      std::vector<ConverterRow>& rows = table[fmt::format("{}.{}", row.domain, row.op_type)];
      RELAXC_CHECK(!std::ranges::count(rows, row.since, &ConverterRow::since),
                   "'{}' has two converters from opset {} on", row.op_type, row.since);
      rows.push_back(row);
    }
    return table;
  }();
  auto it = kTable.find(domain + "." + op_type);
  if (it == kTable.end()) return nullptr;
  const ConverterRow* best = nullptr;
  for (const ConverterRow& row : it->second) {
    if (row.since <= opset && (!best || row.since > best->since)) best = &row;
  }
  return best;
}

}  // namespace relaxc::onnx_import

namespace relaxc {

std::map<std::string, int64_t> newest_onnx_opsets() { return onnx_import::newest_opsets(); }

std::vector<OnnxOperator> onnx_operators() {
  std::map<std::pair<std::string, std::string>, onnx_import::ConverterRow> latest;
  for (const onnx_import::ConverterRow& row : onnx_import::all_converters()) {
    auto [entry, is_new] = latest.try_emplace({row.domain, std::string(row.op_type)}, row);
    if (!is_new && row.since > entry->second.since) entry->second = row;
  }
  std::vector<OnnxOperator> result;
  for (const auto& [name, row] : latest) result.push_back({name.first, name.second, row.least_inputs, row.most_inputs});
  return result;
}

}  // namespace relaxc
