// ONNX Runtime as another judge, where npm's onnxruntime-node is installed.
#pragma once
#include <string>
#include <vector>

namespace relaxc::test {

// Returns the package's folder: RELAXC_ORT, or the one below bench/ort (./dev graphs installs it); "" if there is none.
std::string find_onnx_runtime();

// Runs FOLDER/model.onnx on FOLDER/test_data_set_<k>/input_<i>.pb for each folder, many in one process. Its results
// become output_<i>.pb, a refusal FOLDER/ort_error.txt, and FOLDER/ort_done says that it was tried.
void run_onnx_runtime(std::vector<std::string> folders, const std::string& runtime, double limit_seconds);

}  // namespace relaxc::test
