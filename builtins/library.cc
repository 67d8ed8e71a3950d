// The table of the builtins that few programs call.
#include <array>

#include "builtins/containers.h"
#include "builtins/lowered_modules.h"
#include "builtins/printing.h"
#include "builtins/properties.h"
#include "builtins/strings.h"

namespace relaxc::vm {

static constexpr auto kRows = std::array{
    Builtin{"vm.builtin.view", properties::view, 4,
            "(tensor, shape, dtype name, offset in bytes) -> view of its memory"},
    Builtin{"vm.builtin.tensor_dtype_code", properties::dtype_code, 1, "(tensor) -> DLPack's code of its dtype"},
    Builtin{"vm.builtin.tensor_dtype_bits", properties::dtype_bits, 1, "(tensor) -> bits of an element"},
    Builtin{"vm.builtin.tensor_dtype_lanes", properties::dtype_lanes, 1, "(tensor) -> lanes of an element"},
    Builtin{"vm.builtin.tensor_shape_i", properties::tensor_dim, 2, "(tensor, axis) -> dim"},
    Builtin{"vm.builtin.tensor_stride_i", properties::tensor_stride, 2, "(tensor, axis) -> elements to the next index"},
    Builtin{"vm.builtin.tensor_byte_offset", properties::no_offset, 1, "(tensor) -> 0"},
    Builtin{"vm.builtin.tensor_elem_offset", properties::no_offset, 1, "(tensor) -> 0"},
    // Those of modules that TVM has lowered. They read the shape heap, so that none is pure.
    Builtin{"vm.builtin.alloc_shape_heap", lowered::alloc_shape_heap, kAnyNumber, "(size) -> int64 vector for dims",
            false},
    Builtin{"vm.builtin.match_shape", lowered::match_shape, kAnyNumber,
            "(value, heap, n, n times code and number, context): 0 equal to the number, 1 store, 2 nothing, 3 equal to "
            "the one stored",
            false},
    Builtin{"vm.builtin.make_shape", lowered::make_shape, kAnyNumber,
            "(heap, n, n times code and number) -> shape; 0 the number, 1 the one stored", false},
    Builtin{"vm.builtin.match_prim_value", lowered::match_prim_value, kAnyNumber, "(int, heap, code, number, context)",
            false},
    Builtin{"vm.builtin.make_prim_value", lowered::make_prim_value, kAnyNumber, "(heap, code, number) -> int", false},
    Builtin{"vm.builtin.check_tensor_info", lowered::check_tensor_info, kAnyNumber,
            "(value, ndim or -1, dtype, context)", false},
    Builtin{"vm.builtin.check_shape_info", lowered::check_shape_info, kAnyNumber, "(value, ndim or -1, context)",
            false},
    Builtin{"vm.builtin.check_prim_value_info", lowered::check_prim_value_info, kAnyNumber, "(value, dtype, context)",
            false},
    Builtin{"vm.builtin.check_tuple_info", lowered::check_tuple_info, kAnyNumber, "(value, number of items, context)",
            false},
    Builtin{"vm.builtin.check_func_info", lowered::check_func_info, kAnyNumber, "(value, context)", false},
    Builtin{"vm.builtin.tuple_getitem", lowered::tuple_getitem, kAnyNumber, "(tuple, index) -> item", false},
    Builtin{"vm.builtin.read_if_cond", lowered::read_if_cond, kAnyNumber, "(int or tensor) -> 0 or 1", false},
    Builtin{"vm.builtin.print", printing::print, kAnyNumber,
            "(values...) -> none; a line with the values, tensors abridged", false},
    Builtin{"vm.builtin.print_parts", printing::print_parts, kAnyNumber,
            "(values...) -> none; the same without spaces between them", false},
    Builtin{"vm.builtin.assert", printing::check, kAnyNumber,
            "(condition, values...) -> none; an error with the values where it is 0", false},
    // Those of sequences, optionals and maps.
    Builtin{"vm.builtin.check_form", containers::check_form, kAnyNumber,
            "(value, context, form, dims...) -> none, or an error", false},
    Builtin{"vm.builtin.sequence_make", containers::sequence_make, kAnyNumber, "(values...) -> sequence"},
    Builtin{"vm.builtin.sequence_length", containers::sequence_length, 1, "(sequence) -> number of items"},
    Builtin{"vm.builtin.sequence_at", containers::sequence_at, 2, "(sequence, position) -> item"},
    Builtin{"vm.builtin.sequence_insert", containers::sequence_insert, 3, "(sequence, item, position) -> sequence"},
    Builtin{"vm.builtin.sequence_erase", containers::sequence_erase, 2, "(sequence, position) -> sequence"},
    Builtin{"vm.builtin.sequence_concat", containers::sequence_concat, 3,
            "(sequence, axis, 1 for a new axis) -> tensor"},
    Builtin{"vm.builtin.sequence_split", containers::sequence_split, 4,
            "(tensor, length or vector of lengths, axis, 1 to keep it) -> sequence"},
    Builtin{"vm.builtin.optional_none", containers::optional_none, 0, "() -> none"},
    Builtin{"vm.builtin.optional_has", containers::optional_has, 1, "(value) -> 0 for none, else 1"},
    Builtin{"vm.builtin.optional_get", containers::optional_get, 1, "(value) -> the value, none is an error"},
    Builtin{"vm.builtin.map_make", containers::map_make, 2, "(keys, values) -> map"},
    Builtin{"vm.builtin.map_keys", containers::map_keys, 1, "(map) -> vector of keys"},
    Builtin{"vm.builtin.map_values", containers::map_values, 1, "(map) -> tensor, a row for each key"},
    Builtin{"vm.builtin.map_rows", containers::map_rows, 2, "(keys, matrix) -> sequence of a map for each row"},
    // Those of tensors of strings.
    Builtin{"vm.builtin.string_take", strings::take, 2, "(pool, positions) -> strings"},
    Builtin{"vm.builtin.string_join", strings::join, kAnyNumber, "(pools...) -> vector of their strings"},
    Builtin{"vm.builtin.string_sort", strings::sort, 1, "(pool) -> (different strings, sorted; places)"},
    Builtin{"vm.builtin.string_find", strings::find, 2, "(strings, keys) -> places among the keys, or -1"},
    Builtin{"vm.builtin.string_concat", strings::concat, 2, "(strings, strings) -> strings"},
    Builtin{"vm.builtin.string_split", strings::split, 3,
            "(strings, delimiter, most splits or -1) -> (parts, numbers)"},
    Builtin{"vm.builtin.string_full_match", strings::full_match, 2, "(strings, pattern) -> bools"},
    Builtin{"vm.builtin.string_hash", strings::hash, 2, "(strings, seed) -> uint32 hashes of their bytes"},
    Builtin{"vm.builtin.string_normalize", strings::normalize, 5,
            "(strings, action, 1 for the same case, stop words, locale) -> strings"},
    Builtin{"vm.builtin.string_tokenize", strings::tokenize, 6,
            "(strings, patterns, 1 if of tokens, least characters, 1 for marks, padding) -> strings"},
    Builtin{"vm.builtin.string_from_numbers", strings::from_numbers, 1, "(tensor) -> strings"},
    Builtin{"vm.builtin.string_to_numbers", strings::to_numbers, 2, "(strings, dtype name) -> tensor"},
};

constinit const std::span<const Builtin> relaxc_builtins = kRows;

}  // namespace relaxc::vm
