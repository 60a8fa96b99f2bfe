// No exception leaves these functions, and none is swallowed: each becomes a status and the text of the last error.
#include "lissome/runtime/session_c.h"

#include <memory>
#include <new>

#include "lissome/allow_op.h"
#include "lissome/op_library.h"
#include "lissome/runtime/session/session.h"

using namespace lissome;

struct lissome_session {
  explicit lissome_session(Session loaded) : session(std::move(loaded)) {}
  Session session;
  std::vector<Sizes> input_sizes;
};

struct lissome_result {
  std::vector<Array> outputs;
};

namespace {

static_assert(static_cast<int>(LISSOME_U8) == static_cast<int>(Dtype::u8));
static_assert(static_cast<int>(LISSOME_I64) == static_cast<int>(Dtype::i64));
static_assert(static_cast<int>(LISSOME_BF16) == static_cast<int>(Dtype::bf16));
static_assert(static_cast<int>(LISSOME_F64) == static_cast<int>(Dtype::f64));
static_assert(static_cast<int>(LISSOME_BOOL) == static_cast<int>(Dtype::boolean));

thread_local std::string last_error;

lissome_status status_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::usage: return LISSOME_USAGE;
    case ErrorKind::invalid_input: return LISSOME_INVALID_INPUT;
    case ErrorKind::unsupported: return LISSOME_UNSUPPORTED;
    case ErrorKind::over_budget: return LISSOME_OVER_BUDGET;
    case ErrorKind::io: return LISSOME_IO;
    case ErrorKind::internal: break;
  }
  return LISSOME_INTERNAL;
}

template <typename Function>
lissome_status guard(const Function& function) {
  try {
    function();
    return LISSOME_OK;
  } catch (const Error& error) {
    last_error = error.message();
    return status_of(error.kind());
  } catch (const std::bad_alloc&) {
    last_error = "the system has no memory left";
    return LISSOME_OVER_BUDGET;
  } catch (const std::exception& error) {
    last_error = error.what();
    return LISSOME_INTERNAL;
  }
}

void require(bool given, const char* what) {
  if (!given) throw_error(ErrorKind::usage, what);
}

lissome_dtype give_dtype(Dtype dtype, const std::string& name) {
  if (dtype > Dtype::boolean) {
    throw_error(ErrorKind::unsupported, "value ", quote(name), " is ", dtype_name(dtype),
                ", which has no name in C; run the model from C++");
  }
  return static_cast<lissome_dtype>(dtype);
}

TensorView view_tensor(const lissome_tensor& tensor) {
  require(tensor.rank == 0 || tensor.sizes, "the sizes of a tensor are null");
  require(tensor.dtype >= LISSOME_U8 && tensor.dtype <= LISSOME_BOOL, "the dtype of a tensor is none of lissome_dtype");
  TensorView view{static_cast<Dtype>(tensor.dtype), {tensor.sizes, tensor.sizes + tensor.rank}, {}, tensor.data};
  view.strides = dense_strides(view.sizes, Format::row_major);
  require(tensor.data || view.elements() == 0, "the data of a tensor is null");
  return view;
}

std::vector<TensorView> view_tensors(const lissome_tensor* tensors, size_t count) {
  require(tensors || count == 0, "the tensors are null");
  std::vector<TensorView> views;
  for (size_t i = 0; i < count; ++i) views.push_back(view_tensor(tensors[i]));
  return views;
}

lissome_session* load_session(const char* path, const SessionOptions& options) {
  auto loaded = std::make_unique<lissome_session>(Session::load(path, options));
  const Plan& plan = loaded->session.plan();
  for (const PlanInput& input : plan.inputs) {
    Sizes& sizes = loaded->input_sizes.emplace_back();
    for (const SizeExpression& size : plan.value(input.value).sizes) sizes.push_back(size.constant().value_or(-1));
  }
  return loaded.release();
}

}  // namespace

lissome_status lissome_session_load(const char* path, int threads, lissome_session** session) {
  return guard([&] {
    require(path && session, "lissome_session_load needs a path and a place for the session");
    *session = nullptr;
    *session = load_session(path, {.threads = threads});
  });
}

lissome_status lissome_session_load_within(const char* path, int threads, int64_t memory, lissome_session** session) {
  return guard([&] {
    require(path && session, "lissome_session_load_within needs a path and a place for the session");
    *session = nullptr;
    require(memory > 0, "lissome_session_load_within needs a limit on memory above 0 bytes");
    *session = load_session(path, {.threads = threads, .memory = memory});
  });
}

lissome_status lissome_load_op_library(const char* path) {
  return guard([&] {
    require(path, "lissome_load_op_library needs a path");
    load_op_library(path);
  });
}

lissome_status lissome_allow_op(const char* name) {
  return guard([&] {
    require(name, "lissome_allow_op needs a name");
    allow_op(name);
  });
}

void lissome_session_free(lissome_session* session) { delete session; }

size_t lissome_session_input_count(const lissome_session* session) {
  return session ? session->session.plan().inputs.size() : 0;
}

size_t lissome_session_output_count(const lissome_session* session) {
  return session ? session->session.plan().outputs.size() : 0;
}

lissome_status lissome_session_input(const lissome_session* session, size_t position, lissome_value* value) {
  return guard([&] {
    require(session && value, "lissome_session_input needs a session and a place for the answer");
    const Plan& plan = session->session.plan();
    if (position >= plan.inputs.size()) {
      throw_error(ErrorKind::usage, "there is no input ", position, ": the model has ", plan.inputs.size());
    }
    const PlanInput& input = plan.inputs[position];
    const Sizes& sizes = session->input_sizes[position];
    const Dtype dtype = plan.value(input.value).dtype;
    *value = {input.name.c_str(), give_dtype(dtype, input.name), sizes.size(), sizes.data()};
  });
}

const char* lissome_session_output_name(const lissome_session* session, size_t position) {
  if (position >= lissome_session_output_count(session)) return nullptr;
  return session->session.plan().outputs[position].name.c_str();
}

lissome_status lissome_session_stream(const lissome_session* session, lissome_stream* stream) {
  return guard([&] {
    require(session && stream, "lissome_session_stream needs a session and a place for the answer");
    const StreamFacts facts = session->session.stream();
    *stream = {facts.weights, facts.streamed, facts.bytes_per_second};
  });
}

lissome_status lissome_session_run(lissome_session* session, const lissome_tensor* inputs, size_t count,
                                   lissome_result** result) {
  return guard([&] {
    require(session && result, "lissome_session_run needs a session and a place for the result");
    *result = nullptr;
    auto made = std::make_unique<lissome_result>();
    made->outputs = session->session.run(view_tensors(inputs, count));
    *result = made.release();
  });
}

lissome_status lissome_session_run_into(lissome_session* session, const lissome_tensor* inputs, size_t count,
                                        const lissome_tensor* outputs, size_t output_count) {
  return guard([&] {
    require(session, "lissome_session_run_into needs a session");
    session->session.run_into(view_tensors(inputs, count), view_tensors(outputs, output_count));
  });
}

lissome_status lissome_result_output(const lissome_result* result, size_t position, lissome_tensor* output) {
  return guard([&] {
    require(result && output, "lissome_result_output needs a result and a place for the answer");
    if (position >= result->outputs.size()) {
      throw_error(ErrorKind::usage, "there is no output ", position, ": the model has ", result->outputs.size());
    }
    const Array& array = result->outputs[position];
    *output = {give_dtype(array.dtype, std::to_string(position)), array.sizes.size(), array.sizes.data(),
               array.storage.get()};
  });
}

void lissome_result_free(lissome_result* result) { delete result; }

const char* lissome_last_error() { return last_error.c_str(); }
