// The form of programs that compute a convolution by Winograd's F(m x m, 3x3), in which a patch of (m + 2) x (m + 2)
// pixels is transformed to as many points and gives a tile of m x m pixels of the result: passes/winograd.cc builds
// them, and winograd.cc schedules them.
#pragma once

namespace relaxc::winograd {

// The operator, which is on the block of the products, and the names of the other blocks. The first two axes of
// kRows have the extents m and m + 2.
constexpr const char* kOp = "nn.conv2d_winograd";
constexpr const char *kPixels = "winograd_pixels", *kColumns = "winograd_columns", *kPatches = "winograd_patches",
                     *kRows = "winograd_rows", *kResult = "winograd_result",
                     *kWeights = "winograd_weights";  // where the program transforms these

}  // namespace relaxc::winograd
