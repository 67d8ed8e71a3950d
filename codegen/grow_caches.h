// Lets the runs of a decoder extend its caches in place, where the model gives back each past with more tokens:
//
//   main(ids, past_k: [b, h, past, d])             main(ids, past_k: [b, h, capacity, d], past: int64)
//     k = concat((past_k, new_k), axis=2)    ->      cache = append_to_cache(past_k, new_k), in place
//     ... attention(q, k) ...                        k = the rows of cache, as many as there are tokens now
//     return logits, k                               ... attention(q, k) ...
//                                                    return logits, cache
//
// A run then writes the new tokens into the memory of the input, behind the `past` tokens that are there, and attention
// reads the cache where it lies (passes/fuse_attention.cc): no token is copied from run to run. The output has the
// memory of the input. The host gives caches with room for all tokens to come; a run without room is an error.
// vm/caches.h describes what the program then says of its inputs.
#pragma once
#include <map>
#include <string>

#include "ir/module.h"

namespace relaxc {

struct CacheNames {
  std::map<std::string, std::string> named = {};  // inputs and the outputs with their next values
  bool by_name = false;                           // also those of exporters' names (vm/caches.h)
  bool may_be_missing = false;                    // a model without such caches stays as it is
  bool is_given() const { return by_name || !named.empty(); }
};

// Changes the function of that name ("" is "main", or the only public one) and the one that runs in its place for other
// sizes. Throws a CompileError where a named cache is not extended in this form, or there is none at all.
IRModule with_growing_caches(IRModule module, const std::string& function, const CacheNames& caches);

}  // namespace relaxc
