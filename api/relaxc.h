/* <relaxc/relaxc.h>: relaxc from C, and from every language that calls C. For C++ there is <relaxc/relaxc.hpp>.
 *
 *   relaxc_program* program = NULL;
 *   relaxc_session* session = NULL;
 *   if (relaxc_load("model.so", NULL, &program) || relaxc_session_new(program, NULL, &session))
 *     fprintf(stderr, "%s\n", relaxc_error_message());
 *   relaxc_run_into(session, NULL, inputs, 1, outputs, 1);
 *
 * The library librelaxc.so holds the runtime and needs neither LLVM nor protobuf. relaxc_compile() opens the compiler,
 * librelaxc_compiler.so, beside it when it is first called; where that is not installed, it says so.
 *
 * Ownership: what a function of the name ..._new, relaxc_load..., relaxc_compile... or relaxc_any_... gives belongs to
 * the caller until the ..._release of its type, which takes NULL too. Strings that a function returns live as long as
 * the object that they describe. Programs may be shared by threads; sessions and values belong to one thread at a time.
 *
 * Errors: functions return a relaxc_status, and relaxc_error_message() tells the calling thread what went wrong in the
 * last call that failed. No exception and no type of C++ crosses this interface.
 *
 * Structs of options begin with their size, so that a host that was built with this header runs with later libraries:
 * set `size`, and fill the rest with zeros. Members that are zero have the default. A size that no version of the
 * struct has, and a member that is not zero and that the library does not know, are RELAXC_USAGE. The other structs
 * never change.
 *
 * Callbacks must not throw exceptions, nor run the session whose run calls them. After fork() a child may load programs
 * and make sessions of its own, and compile; where a thread of the parent was compiling at that moment, to compile is
 * an error. Sessions of its parent that have run with several threads are for the parent only, which alone may release
 * them. A host that includes a dlpack.h of its own does so before this. */
#ifndef RELAXC_RELAXC_H_
#define RELAXC_RELAXC_H_
#include <stddef.h>
#include <stdint.h>

#ifndef DLPACK_DLPACK_H_
#include "vm/dlpack.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define RELAXC_API __attribute__((visibility("default")))
/* The version of this interface: it grows when functions or members are added, which never changes older ones. */
#define RELAXC_API_VERSION 2

/* ---- Status and errors */

typedef enum relaxc_status { /* 0 to 3 are the exit codes of the command line */
                             RELAXC_OK = 0,
                             RELAXC_INVALID = 1, /* a model, text, artifact or file that is wrong */
                             /* A call that is wrong: a null pointer, a wrong count, and each name that does not exist,
                                of a target, a pass, a function, a dim, an input, a precision. */
                             RELAXC_USAGE = 2,
                             RELAXC_UNSUPPORTED = 3, /* the model may be right, but relaxc cannot compile it yet */
                             RELAXC_RUN_FAILED =
                                 4, /* an input does not fit, a dim or an index is wrong, a kernel failed */
                             RELAXC_CANCELLED = 5,     /* relaxc_session_cancel, or `cancelled` of a compilation */
                             RELAXC_OUT_OF_MEMORY = 6, /* of tensors: the allocator, memory_limit, or the system */
                             RELAXC_INTERNAL = 7,      /* a bug of relaxc */
                             RELAXC_WRITE_FAILED = 8   /* a file cannot be written: no such folder, a full disk; what
                                                          was there before is unchanged. Since version 2 */
} relaxc_status;

/* Returns the message of the last call on this thread that failed: lines without a final newline; "" before any. It
 * lives until the next call on this thread that fails. */
RELAXC_API const char* relaxc_error_message(void);
/* One of the errors that the message is made of. Members are NULL or 0 where they are not known. */
typedef struct relaxc_error_place {
  const char* message;  /* without place */
  const char* file;     /* of the model or text */
  const char* node;     /* name of the ONNX node */
  const char* op_type;  /* its operator */
  int32_t line, column; /* of a text, from 1 */
} relaxc_error_place;
RELAXC_API int32_t relaxc_error_count(void);
/* Returns 0 where there is no error of that index. */
RELAXC_API int32_t relaxc_error_at(int32_t index, relaxc_error_place* place);

/* Returns "0.1.0". */
RELAXC_API const char* relaxc_version(void);
/* Returns the RELAXC_API_VERSION of the library. */
RELAXC_API int32_t relaxc_api_version(void);

/* ---- Programs */

typedef struct relaxc_program relaxc_program;

typedef struct relaxc_load_options {
  size_t size;            /* sizeof(relaxc_load_options) */
  int32_t trust_contents; /* 1: nothing is compared with its hash */
} relaxc_load_options;

/* Loads an artifact of relaxc_compile_to_file or `relaxc compile`. Code and tables are compared with their hash here;
 * weights are mapped, not copied, and compared with theirs by the first run. Load
 * artifacts of trusted origin only: they contain machine code. */
RELAXC_API relaxc_status relaxc_load(const char* path, const relaxc_load_options* options, relaxc_program** program);
/* Loads an artifact from memory: downloaded, or linked into the program. The bytes are copied once. */
RELAXC_API relaxc_status relaxc_load_memory(const void* bytes, size_t num_bytes, const relaxc_load_options* options,
                                            relaxc_program** program);
/* Another owner of the program, which costs nothing. */
RELAXC_API relaxc_program* relaxc_program_retain(relaxc_program* program);
RELAXC_API void relaxc_program_release(relaxc_program* program);
/* Writes the artifact of the program, loaded or compiled, to a file. */
RELAXC_API relaxc_status relaxc_program_save(const relaxc_program* program, const char* path);

typedef enum relaxc_kind {
  RELAXC_NONE = 0, /* no value: that of an optional, or in a declaration a value of any kind */
  RELAXC_TENSOR = 1,
  RELAXC_SHAPE = 2, /* int64 numbers */
  RELAXC_INT = 3,
  RELAXC_DOUBLE = 4,
  RELAXC_STRING = 5,
  RELAXC_TUPLE = 6,
  RELAXC_SEQUENCE = 9,
  RELAXC_MAP = 10 /* two items: keys and values, both tensors */
} relaxc_kind;

/* The dtype of tensors of strings, which DLPack does not have: {RELAXC_STRING_CODE, 64, 1}. */
#define RELAXC_STRING_CODE 200

typedef struct relaxc_dim {
  int64_t value;    /* -1: symbolic */
  const char* text; /* "batch" or "4 * n" of a symbolic dim, "?" of one without a name, else "" */
  int64_t least;    /* of a symbolic dim, the sizes that a run may have: 0 and INT64_MAX where nothing is stated, as for
                       "4 * n" */
  int64_t most;
} relaxc_dim;

/* The declaration of an input or output; it lives as long as its program. */
typedef struct relaxc_value_info {
  const char* name;
  const char* type;       /* the whole type as text: "float32[batch, 3, 224, 224]" */
  int32_t kind;           /* a relaxc_kind */
  int32_t optional;       /* 1: the value may be RELAXC_NONE instead */
  int32_t has_dtype;      /* 0: any */
  DLDataType dtype;       /* of a tensor */
  const char* dtype_name; /* "float32"; "" for any */
  int32_t rank;           /* of a tensor, or the count of a shape; -1: any */
  const relaxc_dim* dims;
  int32_t num_fields; /* of a tuple; 1 of a sequence (its item); 2 of a map (key and value) */
  const struct relaxc_value_info* fields;
} relaxc_value_info;

/* A NULL name of a function stands for "main", or for the only public function. */
RELAXC_API int32_t relaxc_num_functions(const relaxc_program* program);
RELAXC_API const char* relaxc_function_name(const relaxc_program* program, int32_t index);
/* Give -1 and NULL for an unknown function or index; those that take a function's name set the message. A tuple result
 * counts as its items. */
RELAXC_API int32_t relaxc_num_inputs(const relaxc_program* program, const char* function);
RELAXC_API int32_t relaxc_num_outputs(const relaxc_program* program, const char* function);
RELAXC_API const relaxc_value_info* relaxc_input(const relaxc_program* program, const char* function, int32_t index);
RELAXC_API const relaxc_value_info* relaxc_output(const relaxc_program* program, const char* function, int32_t index);
/* A cache of a decoder that runs extend in place (`in_place` of relaxc_compile_options): the run writes to the memory
 * of an input, and gives it back as an output. Places among inputs and outputs. */
typedef struct relaxc_cache_info {
  int32_t input, output;
  int32_t length; /* the input, an int, that says how many tokens are in the cache; -1: other inputs of the model say
                     where it writes */
  int32_t axis;   /* of the tokens, whose dim is the room for them */
} relaxc_cache_info;
/* The number is 0 where there are none, and -1 for an unknown function. */
RELAXC_API int32_t relaxc_num_caches(const relaxc_program* program, const char* function);
RELAXC_API relaxc_status relaxc_cache(const relaxc_program* program, const char* function, int32_t index,
                                      relaxc_cache_info* info);
/* Returns what the artifact notes under a key, such as "cpu_features"; NULL where it notes nothing. */
RELAXC_API const char* relaxc_program_note(const relaxc_program* program, const char* key);
/* Returns the key of a note by its index, from 0, in alphabetical order; NULL behind the last one. */
RELAXC_API const char* relaxc_program_note_key(const relaxc_program* program, int32_t index);

/* ---- Messages that are no errors; the text is valid during the call */

typedef enum relaxc_log_level { RELAXC_LOG_NOTE = 0, RELAXC_LOG_WARNING = 1 } relaxc_log_level;
typedef void (*relaxc_logger)(void* user, relaxc_log_level level, const char* message);

/* ---- Sessions: the state of one caller */

typedef struct relaxc_session relaxc_session;

/* Memory of tensors and scratch. `allocate` returns NULL when memory is short; blocks may outlive the session and be
 * freed on any thread, so both functions work as long as any tensor of the session lives. */
typedef struct relaxc_allocator {
  void* (*allocate)(void* user, size_t bytes, size_t alignment);
  void (*free)(void* user, void* memory, size_t bytes);
  void* user;
} relaxc_allocator;

/* The host's threads. `run` calls task(closure, 0) on the calling thread and task(closure, w) for any of w in
 * [1, workers) on others, and returns when all of these have returned. */
typedef void (*relaxc_task)(void* closure, int worker);
typedef struct relaxc_thread_pool {
  int (*num_workers)(void* user);
  void (*run)(void* user, relaxc_task task, void* closure, int workers);
  void* user;
} relaxc_thread_pool;

typedef struct relaxc_session_options {
  size_t size;                           /* sizeof(relaxc_session_options) */
  int32_t num_threads;                   /* up to 1024; 0: all cores of the process. Unused with thread_pool */
  int64_t memory_limit;                  /* bytes at once of tensors and of kernels' scratch memory, without weights and
                                            the host's own tensors; 0: twice the machine's memory */
  const relaxc_allocator* allocator;     /* copied; NULL: the C library's */
  const relaxc_thread_pool* thread_pool; /* copied; NULL: threads of the session's own */
  /* Since version 2 */
  relaxc_logger log; /* is warned in relaxc_session_new where the system refuses some of its threads; NULL: nobody is */
  void* user;        /* of log */
} relaxc_session_options;

/* The session keeps the program alive. */
RELAXC_API relaxc_status relaxc_session_new(relaxc_program* program, const relaxc_session_options* options,
                                            relaxc_session** session);
RELAXC_API void relaxc_session_release(relaxc_session* session);
/* Ends the run that is in progress after the kernel that it is in; callable from any thread. A later run is not
 * concerned. */
RELAXC_API void relaxc_session_cancel(relaxc_session* session);
/* Returns idle memory, of tensors and of kernels' scratch, to the system. */
RELAXC_API void relaxc_session_trim(relaxc_session* session);

typedef struct relaxc_memory_stats {
  int64_t live_bytes;  /* in use now: results that the host holds */
  int64_t idle_bytes;  /* kept for later runs */
  int64_t peak_bytes;  /* the most ever in use */
  int64_t allocations; /* requests for tensors that went to the system or the host's allocator */
} relaxc_memory_stats;
/* Memory of tensors; kernels' scratch memory, which memory_limit counts, is not in it. */
RELAXC_API void relaxc_session_memory(const relaxc_session* session, relaxc_memory_stats* stats);

/* One call of a kernel. What a callback is given is valid during the callback. */
typedef struct relaxc_kernel_record {
  size_t size;                   /* of this struct in the library */
  const char* kernel;            /* "fused_conv2d_relu" */
  const char* node;              /* where it comes from: "/conv1/Conv, /relu/Relu"; "" if that is not known */
  const char* rule;              /* how it was scheduled */
  int64_t start_ns, duration_ns; /* start: of the steady clock */
  double operations;             /* arithmetic operations; negative: not known */
  int64_t bytes;                 /* of its tensors, each counted once */
} relaxc_kernel_record;
typedef void (*relaxc_profiler)(void* user, const relaxc_kernel_record* record);
/* Calls back after each kernel of later runs, on the thread that runs; NULL ends that. The run waits for the callback:
 * where the time between kernels matters, keep records instead. */
RELAXC_API void relaxc_session_profile(relaxc_session* session, relaxc_profiler profiler, void* user);
/* Since version 2. Makes later runs keep records of their kernels, in place of callbacks: that takes the run less than
 * half a microsecond a kernel. `keep` 0 ends it. */
RELAXC_API relaxc_status relaxc_session_keep_records(relaxc_session* session, int32_t keep);
/* Gives the records of the last run, in order. They are valid until the next run or keep_records. */
RELAXC_API relaxc_status relaxc_session_records(relaxc_session* session, const relaxc_kernel_record** records,
                                                int32_t* count);

/* ---- Runs on tensors
 *
 * Inputs are the host's memory, lent for the call, and are not copied where they are dense and row-major; strided ones
 * (`strides` in elements; zero and negative ones are taken, too) are copied. Dims may change from run to run. */

/* Writes the results to the host's tensors, whose shapes and dtypes must be those of the results. Kernels write there
 * directly where the tensor is dense. */
RELAXC_API relaxc_status relaxc_run_into(relaxc_session* session, const char* function, const DLTensor* inputs,
                                         int32_t num_inputs, const DLTensor* outputs, int32_t num_outputs);
/* Gives new tensors; the host calls the deleter of each when it is done. They may outlive the session. */
RELAXC_API relaxc_status relaxc_run(relaxc_session* session, const char* function, const DLTensor* inputs,
                                    int32_t num_inputs, DLManagedTensor** outputs, int32_t num_outputs);

/* ---- Runs on values of all kinds */

typedef struct relaxc_any relaxc_any;

RELAXC_API relaxc_status relaxc_run_values(relaxc_session* session, const char* function,
                                           const relaxc_any* const* inputs, int32_t num_inputs, relaxc_any** outputs,
                                           int32_t num_outputs);
RELAXC_API void relaxc_any_release(relaxc_any* value);
/* Make values. Tensors are copied; relaxc_any_dlpack takes the tensor over instead, and its deleter is called in any
 * case, after an error too. */
RELAXC_API relaxc_status relaxc_any_none(relaxc_any** value);
RELAXC_API relaxc_status relaxc_any_tensor(const DLTensor* tensor, relaxc_any** value);
RELAXC_API relaxc_status relaxc_any_dlpack(DLManagedTensor* tensor, relaxc_any** value);
/* A tensor of strings: `lengths` in bytes, NULL for strings that end in a zero. */
RELAXC_API relaxc_status relaxc_any_strings(const char* const* strings, const size_t* lengths, const int64_t* shape,
                                            int32_t rank, relaxc_any** value);
RELAXC_API relaxc_status relaxc_any_int(int64_t number, relaxc_any** value);
RELAXC_API relaxc_status relaxc_any_double(double number, relaxc_any** value);
RELAXC_API relaxc_status relaxc_any_shape(const int64_t* dims, int32_t num_dims, relaxc_any** value);
RELAXC_API relaxc_status relaxc_any_string(const char* text, size_t length, relaxc_any** value);
/* A tuple, a sequence, or a map of two items; the items stay the caller's. */
RELAXC_API relaxc_status relaxc_any_of(relaxc_kind kind, const relaxc_any* const* items, int32_t num_items,
                                       relaxc_any** value);
/* Read values. A value of another kind is RELAXC_USAGE. */
RELAXC_API relaxc_kind relaxc_any_kind(const relaxc_any* value);
/* A text such as "float32[2, 3]"; it lives as long as the value. */
RELAXC_API const char* relaxc_any_describe(relaxc_any* value);
/* Gives a tensor that shares its memory with the value, to be read only: it may be a constant. Not for strings. */
RELAXC_API relaxc_status relaxc_any_get_tensor(const relaxc_any* value, DLManagedTensor** tensor);
/* dtype and shape of a tensor, of strings too; the shape lives as long as the value. */
RELAXC_API relaxc_status relaxc_any_get_shape(const relaxc_any* value, const int64_t** dims, int32_t* num_dims,
                                              DLDataType* dtype);
/* A string, or string `index` of a tensor of strings in row-major order; it does not end in a zero. */
RELAXC_API relaxc_status relaxc_any_get_string(const relaxc_any* value, int64_t index, const char** text,
                                               size_t* length);
RELAXC_API relaxc_status relaxc_any_get_int(const relaxc_any* value, int64_t* number);
RELAXC_API relaxc_status relaxc_any_get_double(const relaxc_any* value, double* number);
/* The items of a tuple or sequence, the keys and the values of a map. */
RELAXC_API relaxc_status relaxc_any_num_items(const relaxc_any* value, int32_t* count);
RELAXC_API relaxc_status relaxc_any_item(const relaxc_any* value, int32_t index, relaxc_any** item);

/* ---- The compiler */

/* What a compilation is doing; the strings are valid during the callback. */
typedef struct relaxc_progress_info {
  size_t size;         /* of this struct in the library */
  const char* stage;   /* "import", "passes", "programs" or "kernels" */
  const char* at_work; /* the piece that is at work the longest; at the end of a stage the one that took longest */
  int64_t done, total; /* pieces of the stage, which has ended when they are equal. Neither becomes less in one
                          compilation; the total of "programs" becomes more where passes make more programs of one */
  double seconds;      /* how long the piece has been at work */
} relaxc_progress_info;
/* Comes from one thread at a time, which may be another than the caller's; it must return soon. */
typedef void (*relaxc_progress)(void* user, const relaxc_progress_info* info);

typedef struct relaxc_compile_options {
  size_t size;                  /* sizeof(relaxc_compile_options) */
  const char* target;           /* "host", "x86-64-v3", ...: docs/targets.md; NULL: host */
  const char* passes;           /* NULL: "default" */
  const char* function;         /* the one to be run; NULL: every public one */
  const char* const* dim_names; /* symbolic dims of the inputs that get a fixed value */
  const int64_t* dim_values;
  int32_t num_dims;
  const char* const* kernels; /* files of kernels and of schedules, libraries of C kernels (docs/own-kernels.md) */
  int32_t num_kernels;
  int32_t num_threads;   /* that compile; 0: all cores */
  int32_t opt_level;     /* 1 to 3, of machine code; 0: the default, 2; -1: level 0 */
  double winograd_error; /* the most error of Winograd's algorithm, as a multiple of that of direct sums: 0 is the
                            default, 2.5; negative: all convolutions are direct */
  const char* cache;     /* of relaxc_compile: the folder that keeps compiled models; NULL: that of the command line
                            (RELAXC_CACHE, else relaxc/artifacts in the user's cache folder); "": none */
  relaxc_logger log;     /* NULL: warnings are dropped */
  relaxc_progress progress;
  void* user;                        /* of both callbacks */
  const volatile int32_t* cancelled; /* the host makes it 1, on any thread, to end the compilation with
                                        RELAXC_CANCELLED when its next piece of work begins; NULL: it never does */
  const char* const* range_names;    /* symbolic dims whose sizes every run tests: least <= size <= most */
  const int64_t* range_least;        /* from 0 */
  const int64_t* range_most;         /* INT64_MAX: any */
  int32_t num_ranges;
  const char* precision; /* of what products read: "fp32", "bf16", "fp16" or "mixed" (docs/precision.md); NULL: fp32 */
  int64_t in_place;      /* 1: runs of a decoder extend its caches in place, where they have the names of exporters
                            (docs/relaxc.md); an error where there is none. 64 bits, so that no padding ends the struct */
  /* Since version 2 */
  const char* const* type_names; /* inputs of which the model or text says less, and their types: "float32[n, 4]" */
  const char* const* types;      /* (`--type` in docs/relaxc.md); names of dims are those of the model, or new ones */
  const char* const* linked;     /* object files and archives (.o, .a) with C kernels, which become part of the program
                                    (docs/own-kernels.md) */
  const char* const* host_symbols; /* functions that these call and that the program has which will load the artifact;
                                      "GOMP_*" stands for all that begin so */
  int32_t num_types, num_linked, num_host_symbols;
  int64_t inline_elements; /* of relaxc_module_text: constants of at most so many elements stand in the text; 0: 16;
                              -1: none */
  const char* constants;   /* of relaxc_module_text: the file for larger ones (safetensors), which the text names, so
                              that it can be read back beside the file; NULL: they are left out of the text */
  const char* const* bound_names; /* params of the function that become constants, such as weights, and their values, */
  const DLTensor* bound;          /* which are copied */
  int32_t num_bound;
  int32_t clamp_indices; /* 1: a gather takes the element nearest to an index out of range; 0: that is an error of the
                            run */
  int32_t strict;        /* 1: contradictions in a model are errors; 0: they are warnings */
  int32_t check_bounds;  /* 1: machine code tests every index that is not proven to be in range; 0: it trusts kernels */
  int32_t fast_int8;     /* 1: sums of two products of bytes may be clamped to 16 bits where that is faster */
} relaxc_compile_options;

/* Compiles a model (.onnx) or module (TVMScript: .py) for this process. */
RELAXC_API relaxc_status relaxc_compile(const char* path, const relaxc_compile_options* options,
                                        relaxc_program** program);
/* Compiles a model or text in memory. `name` stands for the file in messages; its ending tells the form: ".onnx" or
 * ".py". A model with weights in other files is refused: it is compiled from its file. */
RELAXC_API relaxc_status relaxc_compile_memory(const void* bytes, size_t num_bytes, const char* name,
                                               const relaxc_compile_options* options, relaxc_program** program);
/* Writes the artifact, for the target of the options, to a file. */
RELAXC_API relaxc_status relaxc_compile_to_file(const char* path, const relaxc_compile_options* options,
                                                const char* artifact);
/* Gives the module as text (TVMScript) after options->passes; "" are none. The name is as in relaxc_compile_memory;
 * NULL `bytes`: it is a file to read. The text is freed by relaxc_string_release. */
RELAXC_API relaxc_status relaxc_module_text(const void* bytes, size_t num_bytes, const char* name,
                                            const relaxc_compile_options* options, char** text);
RELAXC_API void relaxc_string_release(char* text);

#ifdef __cplusplus
}
#endif
#endif
