// Cases of Debian's libonnx-testdata whose data contradict ONNX or their own model. The data are mended where a proof
// shows what is wrong with them; then the case is held to the mended data as any other case is to its own.
#pragma once

#include <string>
#include <vector>

#include "vm/executable.h"
#include "vm/value.h"

namespace relaxc::test {

struct CaseData {
  std::vector<vm::Value> inputs, expected;
};

// Mends the data of the case `name` ("test_adam_multiple") if they are known to be wrong; `declared` are the inputs of
// its model. Returns which proof fails, so that data which somebody else has mended are not changed; empty otherwise.
std::string mend_wrong_data(const std::string& name, const std::vector<vm::ValueInfo>& declared, CaseData& data);

}  // namespace relaxc::test
