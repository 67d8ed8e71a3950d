/* Between librelaxc.so and librelaxc_compiler.so, which are of one build: plain C, so that the two may have their own
 * copies of all else. */
#pragma once
#include "api/relaxc.h"

extern "C" {

/* What a compilation says. The strings are valid during the calls. */
struct relaxc_compiler_reply {
  void* user;
  void (*failed)(void* user, int32_t status, const char* message);
  void (*place)(void* user, const relaxc_error_place* place); /* after failed, for each error */
  void (*text)(void* user, const char* text, size_t length);  /* of a module */
  void (*cached)(void* user, const char* artifact); /* the file that has the artifact, instead of `artifact` */
};

struct relaxc_compiler_request {
  const char* path = nullptr;
  const void* bytes = nullptr; /* null: the file */
  size_t num_bytes = 0;
  const char* artifact = nullptr;      /* the file to write; null: the module as text is wanted */
  int32_t may_be_cached = 0;           /* 1: the artifact may be another file, of the cache */
  relaxc_compile_options options = {}; /* complete */
};

/* The only symbol of librelaxc_compiler.so. Returns 0 or the status that it told. */
typedef int32_t (*relaxc_compiler_entry_type)(const relaxc_compiler_request* request,
                                              const relaxc_compiler_reply* reply);
}
