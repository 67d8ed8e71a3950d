// Compares the types that a model declares with those that the import infers. The inferred types hold.
#pragma once
#include "frontend/onnx/graph_importer.h"

namespace relaxc::onnx_import {

// Throws when the dtype differs, and warns when the shape differs.
void check_output(ModelContext& context, const onnx::ValueInfoProto& output, const Type& type, const Span& span);

// Warns about the graph's value_info. The graph's nodes must have been imported.
void check_values(GraphImporter& importer, const onnx::GraphProto& graph);

}  // namespace relaxc::onnx_import
