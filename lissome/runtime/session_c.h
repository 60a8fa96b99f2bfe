/* Sessions for C and for languages that call C: load a .lissome file, run it. Link lissome::runtime.
 *
 * Functions return a status; after any other than LISSOME_OK, lissome_last_error() tells what failed, what was seen and
 * what is allowed. Several threads may use one session: their runs take turns. Texts and sizes that are handed out
 * belong to the session or result they come from, and live as long. */
#ifndef LISSOME_RUNTIME_SESSION_C_H
#define LISSOME_RUNTIME_SESSION_C_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum lissome_status {
  LISSOME_OK = 0,
  LISSOME_USAGE,         /* a null pointer, a position out of range, a file that is not there */
  LISSOME_INVALID_INPUT, /* a broken file, or an input that does not fit; the session goes on */
  LISSOME_UNSUPPORTED,   /* a node that needs libtorch where there is none */
  LISSOME_OVER_BUDGET,   /* more memory than there is */
  LISSOME_IO,
  LISSOME_INTERNAL
} lissome_status;

typedef enum lissome_dtype {
  LISSOME_U8 = 0,
  LISSOME_I8,
  LISSOME_I16,
  LISSOME_I32,
  LISSOME_I64,
  LISSOME_F16,
  LISSOME_BF16,
  LISSOME_F32,
  LISSOME_F64,
  LISSOME_BOOL
} lissome_dtype;

/* Dense, in row order, the first element at `data`. */
typedef struct lissome_tensor {
  lissome_dtype dtype;
  size_t rank;
  const int64_t* sizes; /* `rank` of them; null for rank 0 */
  void* data;           /* inputs are only read */
} lissome_tensor;

/* What an input must be. A size of -1 is free, within what the model allows. */
typedef struct lissome_value {
  const char* name;
  lissome_dtype dtype;
  size_t rank;
  const int64_t* sizes;
} lissome_value;

/* What a limit on memory costs, for the sizes of the last run; all 0 before the first, and without a limit. */
typedef struct lissome_stream {
  int64_t weights;         /* bytes of all weights */
  int64_t streamed;        /* of these, what each run reads anew */
  double bytes_per_second; /* at which they come, measured; 0 when none do */
} lissome_stream;

typedef struct lissome_session lissome_session;
typedef struct lissome_result lissome_result;

/* `threads`: 0 for as many as the model was measured with. *session is null when this fails. */
lissome_status lissome_session_load(const char* path, int threads, lissome_session** session);
/* The same, with at most `memory` bytes for weights, state and intermediate values together: weights beyond it are read
 * from the file with every run. LISSOME_OVER_BUDGET, from here or from a run whose inputs are large, names the least
 * that is needed. */
lissome_status lissome_session_load_within(const char* path, int threads, int64_t memory, lissome_session** session);
/* Ops of the caller's own, for every model that is loaded afterwards: `path` is a library that defines some
 * (TORCH_LIBRARY), `name` the full name of one that models may call ("mylib::my_op", "mylib::my_op.overload"). Ops of
 * PyTorch's own namespaces cannot be allowed: LISSOME_USAGE. */
lissome_status lissome_load_op_library(const char* path);
lissome_status lissome_allow_op(const char* name);
void lissome_session_free(lissome_session* session); /* null is allowed */

size_t lissome_session_input_count(const lissome_session* session);
size_t lissome_session_output_count(const lissome_session* session);
lissome_status lissome_session_input(const lissome_session* session, size_t position, lissome_value* value);
/* Null when the position is out of range. */
const char* lissome_session_output_name(const lissome_session* session, size_t position);
lissome_status lissome_session_stream(const lissome_session* session, lissome_stream* stream);

/* All inputs, in the model's order. The result is the caller's, to be freed. */
lissome_status lissome_session_run(lissome_session* session, const lissome_tensor* inputs, size_t count,
                                   lissome_result** result);
/* The same into the caller's memory, one tensor per output, sizes as they will be. */
lissome_status lissome_session_run_into(lissome_session* session, const lissome_tensor* inputs, size_t count,
                                        const lissome_tensor* outputs, size_t output_count);

/* A null `data` is an output that is none. */
lissome_status lissome_result_output(const lissome_result* result, size_t position, lissome_tensor* output);
void lissome_result_free(lissome_result* result);

/* Of the last call of this thread that failed; empty before. */
const char* lissome_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
