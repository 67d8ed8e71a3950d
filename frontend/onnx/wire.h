// Rewrites the protobuf wire format, as far as needed to keep a model's weights out of the parsed message.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace relaxc::onnx_import {

// Returns a ModelProto in which the large raw_data of graph initializers is replaced by a doc_string of marker + index
// into `raw_data`, whose elements point into `bytes`. `raw_data` stays empty when nothing was replaced or the bytes are
// malformed; the caller then parses `bytes`.
std::string without_weights(std::span<const std::byte> bytes, std::string_view marker,
                            std::vector<std::span<const std::byte>>& raw_data);

}  // namespace relaxc::onnx_import
