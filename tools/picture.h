// Pictures as inputs of models: files of images become tensors of the input's type.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "vm/executable.h"

namespace relaxc::tools {

// An element is (pixel - mean) * scale, for pixels from 0 to 255. Each list has a number for each channel, or one for
// all. Without a scale, elements of floats are from 0 to 1.
struct PictureOptions {
  std::vector<double> mean = {}, scale = {};
  std::string layout = {};  // "nchw" or "nhwc", for dims of which both could be meant; "": by the dims
};

// Returns the image as a tensor of the input's dtype (float32 where it has none). The layout follows from the input's
// dims: of 4 or 3 dims, the channels are the one before height and width where that is 1 or 3, else the last one. An
// image is scaled to a height and width that are numbers, by bilinear interpolation over the area of each new pixel,
// and `notes` gets a line. Throws a CompileError that names the file where it is not an image, where the type has no
// place for one, and where an element is out of the dtype's range.
Tensor read_picture(const std::string& path, const vm::ValueInfo& info, const PictureOptions& options,
                    std::vector<std::string>& notes);

}  // namespace relaxc::tools
