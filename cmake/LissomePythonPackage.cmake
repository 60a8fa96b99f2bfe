# The importable package: build/python/lissome/ (or <build tree>/python/lissome) holds two extension modules, _runtime
# (without torch) and _lissome, the Python files, and the program. In a wheel the same lies in two distributions:
# lissome-runtime (component python_runtime) and lissome (component python_lissome).

if(NOT TARGET lissome_runtime_library OR NOT EXISTS "${LISSOME_PYTHON}")
  return()
endif()
execute_process(COMMAND "${LISSOME_PYTHON}" -B "${PROJECT_SOURCE_DIR}/cmake/find_pybind11.py"
  OUTPUT_VARIABLE found_python OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
list(GET found_python 0 LISSOME_PYTHON_INCLUDE)
list(GET found_python 1 LISSOME_PYTHON_SUFFIX)
list(GET found_python 2 LISSOME_PYBIND11)
if(LISSOME_TORCH)
  set(LISSOME_PYBIND11 "${LISSOME_TORCH_ROOT}/include")
endif()
if(NOT LISSOME_TORCH AND (NOT LISSOME_PYBIND11 OR NOT EXISTS "${LISSOME_PYTHON_INCLUDE}/Python.h"))
  message(STATUS "No Python package: ${LISSOME_PYTHON} lacks pybind11 or its headers.")
  return()
endif()
if(NOT EXISTS "${LISSOME_PYTHON_INCLUDE}/Python.h")
  message(FATAL_ERROR "${LISSOME_PYTHON} has no ${LISSOME_PYTHON_INCLUDE}/Python.h; run tools/setup "
    "(Debian: apt-get install python3-dev).")
endif()

# pybind11 alone: torch's folder holds much else.
file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/pybind11")
file(CREATE_LINK "${LISSOME_PYBIND11}/pybind11" "${PROJECT_BINARY_DIR}/pybind11/pybind11" SYMBOLIC)
set(package "${PROJECT_BINARY_DIR}/python/lissome")

# One distribution: its extension module, and copies of its Python files.
function(lissome_add_python_module name output)
  get_property(sources GLOBAL PROPERTY LISSOME_PYTHON_SOURCES_${name})
  get_property(files GLOBAL PROPERTY LISSOME_PYTHON_FILES_${name})
  set(target lissome_python_${name})
  add_library(${target} MODULE ${sources})
  set_target_properties(${target} PROPERTIES
    PREFIX "" OUTPUT_NAME ${output} SUFFIX "${LISSOME_PYTHON_SUFFIX}" LIBRARY_OUTPUT_DIRECTORY "${package}"
    INSTALL_RPATH "$ORIGIN/lib")
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_include_directories(${target} SYSTEM PRIVATE "${LISSOME_PYTHON_INCLUDE}")
  set(copies)
  foreach(file IN LISTS files)
    get_filename_component(base "${file}" NAME)
    add_custom_command(OUTPUT "${package}/${base}"
      COMMAND ${CMAKE_COMMAND} -E copy "${file}" "${package}/${base}" DEPENDS "${file}" VERBATIM)
    list(APPEND copies "${package}/${base}")
  endforeach()
  add_custom_target(${target}_files ALL DEPENDS ${copies})
  add_dependencies(product ${target} ${target}_files)
  install(TARGETS ${target} LIBRARY DESTINATION lissome COMPONENT python_${name} EXCLUDE_FROM_ALL)
  install(FILES ${files} DESTINATION lissome COMPONENT python_${name} EXCLUDE_FROM_ALL)
endfunction()

lissome_add_python_module(runtime _runtime)
target_include_directories(lissome_python_runtime SYSTEM PRIVATE "${PROJECT_BINARY_DIR}/pybind11")
target_compile_options(lissome_python_runtime PRIVATE -fvisibility=hidden)  # pybind11 asks for it
target_link_libraries(lissome_python_runtime PRIVATE lissome_runtime_library)
lissome_link_into_build(lissome_python_runtime "${PROJECT_BINARY_DIR}/python" python)
add_custom_command(TARGET lissome_python_runtime POST_BUILD
  COMMAND ${CMAKE_COMMAND} -E make_directory "${package}/bin"
  COMMAND ${CMAKE_COMMAND} -E create_symlink "${PROJECT_BINARY_DIR}/bin/lissome" "${package}/bin/lissome" VERBATIM)
install(TARGETS lissome RUNTIME DESTINATION lissome/bin COMPONENT python_runtime EXCLUDE_FROM_ALL)
install(TARGETS lissome_runtime_library lissome_images_library
  LIBRARY DESTINATION lissome/lib COMPONENT python_runtime EXCLUDE_FROM_ALL)
add_dependencies(lissome_python_runtime lissome lissome_images_library)

if(LISSOME_TORCH)
  lissome_add_python_module(lissome _lissome)
  set_property(TARGET lissome_python_lissome APPEND PROPERTY INSTALL_RPATH "$ORIGIN/../torch/lib")
  target_link_libraries(lissome_python_lissome PRIVATE
    lissome_torch_library lissome_torch_full "${LISSOME_TORCH_LIBRARY_DIR}/libtorch_python.so")
  add_dependencies(lissome_python_lissome lissome_reference_library)
  install(TARGETS lissome_torch_library lissome_reference_library
    LIBRARY DESTINATION lissome/lib COMPONENT python_lissome EXCLUDE_FROM_ALL)
  # In site-packages torch is the neighbour, wherever those lie: no path of this machine goes into a wheel.
  foreach(library IN ITEMS torch reference)
    install(CODE "file(RPATH_SET FILE \"\${CMAKE_INSTALL_PREFIX}/lissome/lib/liblissome_${library}.so\"
      NEW_RPATH \"\$ORIGIN:\$ORIGIN/../../torch/lib\")" COMPONENT python_lissome EXCLUDE_FROM_ALL)
  endforeach()
endif()
