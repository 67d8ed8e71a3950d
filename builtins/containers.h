// The builtins of sequences, optionals and maps.
#pragma once
#include "vm/builtins.h"
#include "vm/error.h"

namespace relaxc::vm::containers {

using Arguments = std::span<const Value>;

// (value, context, form, dims...): throws where the value does not have the form (form_of_type in
// codegen/bytecode_scalars.cc): letters S (sequence of) and O (none, or), then "tensor DTYPE RANK", "map KEY DTYPE
// RANK" or "any". The dims, of which -1 is any, are those of the tensors.
Value check_form(BuiltinContext&, Arguments);

Value sequence_make(BuiltinContext&, Arguments);
Value sequence_length(BuiltinContext&, Arguments);
Value sequence_at(BuiltinContext&, Arguments);
Value sequence_insert(BuiltinContext&, Arguments);
Value sequence_erase(BuiltinContext&, Arguments);
Value sequence_concat(BuiltinContext&, Arguments);
Value sequence_split(BuiltinContext&, Arguments);
Value optional_none(BuiltinContext&, Arguments);
Value optional_has(BuiltinContext&, Arguments);
Value optional_get(BuiltinContext&, Arguments);
Value map_make(BuiltinContext&, Arguments);
Value map_keys(BuiltinContext&, Arguments);
Value map_values(BuiltinContext&, Arguments);
Value map_rows(BuiltinContext&, Arguments);

}  // namespace relaxc::vm::containers
