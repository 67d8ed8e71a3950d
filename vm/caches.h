// The caches of a decoder that a run extends in place: keys and values of the tokens so far. Such a cache is an input
// with room for more tokens than it has. The run writes the new ones behind them, and gives back the same memory as an
// output; a scalar input says how many tokens there are (codegen/grow_caches.h).
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "vm/executable.h"

namespace relaxc::vm {

struct CacheInfo {
  // Places among the function's inputs and outputs: the cache, its value after the run, and the number of tokens in it.
  // `length` is `input` where the number is stated by the run's other inputs, as for TensorScatter: the whole cache has
  // memory then, and the run writes rows of it.
  size_t input = 0, output = 0, length = 0;
  size_t axis = 0;  // of the tokens
};

// kCachesKey + NAME in the metadata has a line for each cache of the function NAME: "input output length axis".
inline constexpr std::string_view kCachesKey = "caches.";
std::string to_string(const CacheInfo& cache);
// Returns the caches of a function; none where it has no such inputs. Throws a CompileError where the text does not fit
// the function.
std::vector<CacheInfo> caches_of(const Executable& executable, const Function& function);

// Returns the name of the output that has the next value of a cache, by the names of exporters: present.0.key for
// past_key_values.0.key. nullopt where the name is not that of a past, or no output has the other name.
std::optional<std::string> name_of_present(const std::string& past, const std::vector<std::string>& outputs);

}  // namespace relaxc::vm
