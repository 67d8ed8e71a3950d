// The form of programs that compute a convolution by Winograd's F(4x4, 3x3): passes/winograd.cc builds them, and
// winograd.cc schedules them.
#pragma once
#include <cstdint>

namespace relaxc::winograd {

// A patch of 6 x 6 pixels is transformed to as many points, and gives a tile of 4 x 4 pixels of the result.
constexpr int64_t kTile = 4, kPatch = 6;

// The operator, which is on the block of the products, and the names of the other blocks.
constexpr const char* kOp = "nn.conv2d_winograd";
constexpr const char *kPixels = "winograd_pixels", *kColumns = "winograd_columns", *kPatches = "winograd_patches",
                     *kRows = "winograd_rows", *kResult = "winograd_result";

}  // namespace relaxc::winograd
