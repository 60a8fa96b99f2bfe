# The importable package: build/python/lissome/ (or <build tree>/python/lissome) holds the binding
# _lissome and the Python files; the binding finds the libraries by its run path.

get_property(python_sources GLOBAL PROPERTY LISSOME_PYTHON_SOURCES)
get_property(python_files GLOBAL PROPERTY LISSOME_PYTHON_FILES)
if(NOT LISSOME_TORCH OR NOT python_sources OR NOT TARGET lissome_torch_library)
  return()
endif()
if(NOT EXISTS "${LISSOME_PYTHON_INCLUDE}/Python.h")
  message(FATAL_ERROR "${LISSOME_PYTHON} has no ${LISSOME_PYTHON_INCLUDE}/Python.h; run tools/setup "
    "(Debian: apt-get install python3-dev).")
endif()

add_library(lissome_python MODULE ${python_sources})
set_target_properties(lissome_python PROPERTIES
  PREFIX "" OUTPUT_NAME _lissome SUFFIX "${LISSOME_PYTHON_SUFFIX}"
  LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/python/lissome"
  INSTALL_RPATH "$ORIGIN/lib;$ORIGIN/../torch/lib" INSTALL_RPATH_USE_LINK_PATH ON)
target_include_directories(lissome_python PRIVATE "${PROJECT_SOURCE_DIR}")
target_include_directories(lissome_python SYSTEM PRIVATE "${LISSOME_PYTHON_INCLUDE}")
target_link_libraries(lissome_python PRIVATE
  lissome_torch_library lissome_torch_full "${LISSOME_TORCH_LIBRARY_DIR}/libtorch_python.so")

set(copies)
foreach(file IN LISTS python_files)
  get_filename_component(name "${file}" NAME)
  set(copy "${PROJECT_BINARY_DIR}/python/lissome/${name}")
  add_custom_command(OUTPUT "${copy}"
    COMMAND ${CMAKE_COMMAND} -E copy "${file}" "${copy}" DEPENDS "${file}" VERBATIM)
  list(APPEND copies "${copy}")
endforeach()
add_custom_target(lissome_python_files ALL DEPENDS ${copies})
lissome_link_into_build(lissome_python "${PROJECT_BINARY_DIR}/python" python)
if(TARGET lissome_reference_library)
  add_dependencies(lissome_python lissome_reference_library)
endif()
add_dependencies(product lissome_python lissome_python_files)

if(LISSOME_WHEEL)
  install(TARGETS lissome_python LIBRARY DESTINATION lissome COMPONENT python)
  install(FILES ${python_files} DESTINATION lissome COMPONENT python)
  install(TARGETS lissome RUNTIME DESTINATION lissome/bin COMPONENT python)
  foreach(library IN ITEMS lissome_runtime lissome_torch lissome_reference)
    if(TARGET ${library}_library)
      install(TARGETS ${library}_library LIBRARY DESTINATION lissome/lib COMPONENT python)
    endif()
  endforeach()
endif()
