// Rewrites a model for a newer opset, for a model that gets nodes which need it.
#pragma once
#include <onnx/onnx_pb.h>

namespace relaxc::onnx_import {

// Gives the model the opset of ai.onnx, if it has an older one, and the IR version that goes with it. Nodes whose form
// changed in between are rewritten. Throws a CompileError that names a node for which that is not possible.
void raise_opset(onnx::ModelProto& model, int64_t opset);

}  // namespace relaxc::onnx_import
