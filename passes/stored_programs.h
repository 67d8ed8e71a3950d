// Programs in the store of the settings (PassSettings::store), by their text.
#pragma once
#include <optional>
#include <string>

#include "ir/module.h"
#include "ir/op.h"
#include "support/result_store.h"

namespace relaxc {

// Returns the key of a result that follows from the program and from these circumstances; nullopt where the text of the
// program does not say all, as it holds constants. The public name of the program does not count.
std::optional<std::string> key_in_store(const std::string& circumstances, const PrimFuncRef& program);

// Returns the program that was kept, without a public name.
std::optional<PrimFuncRef> find_program(ResultStore& store, const std::string& key, const OpTable& ops);
void keep_program(ResultStore& store, const std::string& key, const PrimFuncRef& program);

}  // namespace relaxc
