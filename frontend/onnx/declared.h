// The types that a model declares against those that the import infers, which hold.
#pragma once
#include "frontend/onnx/graph_importer.h"

namespace relaxc::onnx_import {

// Throws when the dtype is another; a warning for another shape.
void check_output(ModelContext& context, const onnx::ValueInfoProto& output, const Type& type, const Span& span);

// Warnings for the graph's value_info, whose nodes are imported.
void check_values(GraphImporter& importer, const onnx::GraphProto& graph);

}  // namespace relaxc::onnx_import
