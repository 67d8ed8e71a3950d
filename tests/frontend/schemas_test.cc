// The converters against ONNX's own schemas, as far as the library has them: each operator has a row in each
// version from opset 7 on, and each row takes the inputs and attributes of the schema.
#include <onnx/defs/schema.h>

#include <algorithm>

#include "frontend/onnx/node.h"

#include "tests/catch.h"  // last

using namespace relaxc;

namespace {

std::string name_of(const onnx::OpSchema& schema) {
  return fmt::format("{}.{}-{}", schema.domain(), schema.Name(), schema.since_version());
}

// Returns whether a model of opset 7 or newer can have this form of the operator.
bool is_current(const onnx::OpSchema& schema, const std::vector<onnx::OpSchema>& all) {
  if (!schema.domain().empty() || schema.since_version() >= 7) return true;
  return std::ranges::none_of(all, [&](const onnx::OpSchema& other) {
    return other.domain() == schema.domain() && other.Name() == schema.Name() &&
           other.since_version() > schema.since_version() && other.since_version() <= 7;
  });
}

}  // namespace

TEST_CASE("each operator of ONNX's schemas has a row that takes its inputs and attributes", "[frontend]") {
  const std::vector<onnx::OpSchema> all = onnx::OpSchemaRegistry::get_all_schemas_with_history();
  int checked = 0;
  for (const onnx::OpSchema& schema : all) {
    if (schema.Deprecated() || !is_current(schema, all)) continue;
    INFO(name_of(schema));
    const int64_t opset = schema.domain().empty() ? std::max(schema.since_version(), 7) : schema.since_version();
    const onnx_import::ConverterRow* row = onnx_import::find_converter(schema.domain(), schema.Name(), opset);
    CHECK(row != nullptr);
    if (!row) continue;
    ++checked;
    if (*row->why_refused) continue;
    CHECK(row->least_inputs <= std::max(schema.min_input(), 1));
    CHECK(row->most_inputs >= std::min(schema.max_input(), onnx_import::kAny));
    for (const auto& [name, attribute] : schema.attributes()) {
      INFO("attribute " << name);
      CHECK(row->has_attribute(name));
    }
  }
  CHECK(checked > 300);
}
