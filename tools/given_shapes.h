// A run of an ONNX model for the shapes of the inputs that are given, where the model leaves open what has to be known.
#pragma once
#include <exception>
#include <optional>

#include "support/diagnostic.h"
#include "tools/tool.h"
#include "vm/error.h"

namespace relaxc::tools {

// Returns the settings with the shapes of the inputs that are given, as --input, --input-pb or in the folder, and the
// values of --dim; nullopt for a file that is not an ONNX model, and where none is given.
std::optional<CompileSettings> settings_for_inputs(const std::string& model, const CompileSettings& settings,
                                                   const InputOptions& inputs, const std::string& folder);
// Returns the settings with the types of the inputs that have a default in the model and are given by a flag. They stay
// inputs.
CompileSettings with_given_defaults(const std::string& model, const CompileSettings& settings,
                                    const InputOptions& inputs);
// Says that the run is for the shapes of its inputs, because of what the model leaves open.
void note_given_shapes(const std::string& why);

// Returns work(settings). Where it fails, as for an input of unknown rank, it is done again for the shapes of the
// inputs that are given: one run needs no more.
template <class Work>
auto for_given_shapes(const std::string& model, const CompileSettings& stated, const InputOptions& inputs,
                      const std::string& folder, Work&& work) {
  const CompileSettings settings = folder.empty() ? with_given_defaults(model, stated, inputs) : stated;
  std::exception_ptr failure;
  std::string why;
  bool is_unsupported = false;
  try {
    return work(settings);
  } catch (const Contradiction&) {
    throw;
  } catch (const CompileError& error) {
    failure = std::current_exception();
    why = error.diagnostics().empty() ? "" : to_string(error.diagnostics().front());
    is_unsupported = error.kind() == ErrorKind::kUnsupported;
  } catch (const RuntimeError& error) {
    failure = std::current_exception();
    why = error.what();
  }
  std::optional<CompileSettings> narrow;
  try {
    narrow = settings_for_inputs(model, settings, inputs, folder);
  } catch (const CompileError&) {  // the first failure says why, or these inputs were not read yet
  }
  if (!narrow) std::rethrow_exception(failure);
  try {
    auto result = work(*narrow);
    note_given_shapes(why);
    return result;
  } catch (const CompileError&) {
    if (is_unsupported) throw;  // it knows more of the types
  } catch (const RuntimeError&) {
    if (is_unsupported) throw;
  }
  std::rethrow_exception(failure);
}

}  // namespace relaxc::tools
