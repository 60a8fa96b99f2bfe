# libtorch as it lies in the wheel of the project's Python. Our own imported targets instead of
# find_package(Torch): that one asks for a CUDA toolkit when the wheel is a CUDA build, and
# gives every user all include folders.
#   lissome_torch_narrow  include/ only: ATen/core, ATen/ops, c10
#   lissome_torch_full    torch/csrc/api/include too: torch/torch.h, torch/nn
# The wheel's include folder also holds protobuf, fmt and dnnl, which shadow the system's: a
# target that needs those must not link these.

if(NOT LISSOME_TORCH)
  return()
endif()

# Read without importing torch, which would take seconds. A second time with -E: pip's isolated
# builds put folders on PYTHONPATH that hide the environment's own packages.
foreach(flag IN ITEMS -B -BE)
  execute_process(
    COMMAND "${LISSOME_PYTHON}" ${flag} "${PROJECT_SOURCE_DIR}/cmake/find_torch.py"
    OUTPUT_VARIABLE found_torch ERROR_VARIABLE torch_error RESULT_VARIABLE torch_result
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_STRIP_TRAILING_WHITESPACE)
  if(torch_result EQUAL 0)
    break()
  endif()
endforeach()
if(NOT torch_result EQUAL 0)
  message(FATAL_ERROR
    "${LISSOME_PYTHON} has no torch: ${torch_error}\n"
    "Run tools/setup, which makes .venv with a fitting one, give -DLISSOME_PYTHON=/path/to/python, "
    "or build the runtime alone with -DLISSOME_TORCH=OFF.")
endif()
list(GET found_torch 0 LISSOME_TORCH_ROOT)
list(GET found_torch 1 LISSOME_TORCH_VERSION)

if(LISSOME_TORCH_VERSION VERSION_LESS 2.11)
  message(FATAL_ERROR
    "torch ${LISSOME_TORCH_VERSION} at ${LISSOME_TORCH_ROOT} is too old: 2.11 to 2.13 are supported. "
    "Run tools/setup, or give -DLISSOME_PYTHON= of a Python with a newer one.")
elseif(LISSOME_TORCH_VERSION VERSION_GREATER_EQUAL 2.14)
  message(WARNING "torch ${LISSOME_TORCH_VERSION} is newer than 2.13, the last one tested; trying it.")
endif()
message(STATUS "torch ${LISSOME_TORCH_VERSION}: ${LISSOME_TORCH_ROOT}")

set(LISSOME_TORCH_LIBRARY_DIR "${LISSOME_TORCH_ROOT}/lib")
foreach(library IN ITEMS libtorch.so libtorch_cpu.so libc10.so)
  if(NOT EXISTS "${LISSOME_TORCH_LIBRARY_DIR}/${library}")
    message(FATAL_ERROR "${LISSOME_TORCH_LIBRARY_DIR} has no ${library}; install torch anew.")
  endif()
endforeach()

# A libtorch with CUDA, and the headers of its toolkit: among the packages that torch itself installs, or the system's.
set(LISSOME_TORCH_CUDA OFF)
if(EXISTS "${LISSOME_TORCH_LIBRARY_DIR}/libtorch_cuda.so")
  file(GLOB cuda_folders "${LISSOME_TORCH_ROOT}/../nvidia/*/include" "${LISSOME_TORCH_ROOT}/../nvidia/*")
  find_path(LISSOME_CUDA_INCLUDE cuda_runtime_api.h
    HINTS ${cuda_folders} ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES include)
  if(LISSOME_CUDA_INCLUDE)
    set(LISSOME_TORCH_CUDA ON)
  else()
    message(WARNING "torch has CUDA, but there is no cuda_runtime_api.h: set CUDA_HOME. "
      "Models run on the processor only.")
  endif()
endif()

add_library(lissome_torch_narrow INTERFACE)
target_include_directories(lissome_torch_narrow SYSTEM INTERFACE "${LISSOME_TORCH_ROOT}/include")
# A CUDA build needs CUDA's libraries from other folders: its own concern at load time, not ours
# when linking.
# libtorch.so has no symbol of its own; it is what brings libtorch_cuda.so, where there is one.
target_link_libraries(lissome_torch_narrow INTERFACE
  "-Wl,--push-state,--no-as-needed,${LISSOME_TORCH_LIBRARY_DIR}/libtorch.so,--pop-state"
  "${LISSOME_TORCH_LIBRARY_DIR}/libtorch_cpu.so" "${LISSOME_TORCH_LIBRARY_DIR}/libc10.so")
target_link_options(lissome_torch_narrow INTERFACE -Wl,--allow-shlib-undefined)
# What sees torch makes models: its time goes into libtorch and our kernels, which are optimized in full; a sixth of the
# build time is saved.
target_compile_options(lissome_torch_narrow INTERFACE $<$<CONFIG:Release>:-O1>)
add_library(lissome_torch_full INTERFACE)
target_link_libraries(lissome_torch_full INTERFACE lissome_torch_narrow)
target_include_directories(lissome_torch_full SYSTEM INTERFACE
  "${LISSOME_TORCH_ROOT}/include/torch/csrc/api/include")
