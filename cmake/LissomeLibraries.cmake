# Objects of the modules -> shared libraries, the program `lissome`, and links where people look:
# build/lissome. Libraries find each other beside themselves, the program finds them in ../lib, so
# a build tree and an installed tree run alike.

# build/NAME -> the file or folder of the release preset, where people and scripts look for it.
function(lissome_link_into_build target path name)
  if(PROJECT_BINARY_DIR STREQUAL "${PROJECT_SOURCE_DIR}/build/release")
    add_custom_command(TARGET ${target} POST_BUILD
      COMMAND ${CMAKE_COMMAND} -E create_symlink "${path}" "${PROJECT_SOURCE_DIR}/build/${name}"
      VERBATIM)
  endif()
endfunction()

function(lissome_shared_library name)
  cmake_parse_arguments(PARSE_ARGV 1 library "" "" "MODULES;LINKS")
  set(objects)
  foreach(module IN LISTS library_MODULES)
    get_target_property(type lissome_${module} TYPE)
    if(type STREQUAL "OBJECT_LIBRARY")
      list(APPEND objects lissome_${module})
    endif()
  endforeach()
  if(NOT objects)
    return()
  endif()
  # Named ..._library: the module `runtime` has the target name lissome_runtime already.
  add_library(${name}_library SHARED)
  set_target_properties(${name}_library PROPERTIES
    OUTPUT_NAME ${name} LINKER_LANGUAGE CXX
    BUILD_RPATH "$ORIGIN" INSTALL_RPATH "$ORIGIN" INSTALL_RPATH_USE_LINK_PATH ON)
  if(LISSOME_TORCH_ROOT AND NOT name STREQUAL "lissome_runtime")
    # An installed library is loaded by programs that know nothing of torch's place.
    set_property(TARGET ${name}_library APPEND PROPERTY INSTALL_RPATH "${LISSOME_TORCH_ROOT}/lib")
  endif()
  target_link_libraries(${name}_library PRIVATE ${objects} Threads::Threads ${CMAKE_DL_LIBS})
  foreach(link IN LISTS library_LINKS)
    if(TARGET ${link}_library)
      target_link_libraries(${name}_library PUBLIC ${link}_library)
    endif()
  endforeach()
  # Calls inside of a library are bound when it is linked, not looked up by name in every process that loads it.
  target_link_options(${name}_library PRIVATE -Wl,-Bsymbolic-functions)
  target_include_directories(${name}_library INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  if(NOT LISSOME_SANITIZE)
    target_link_options(${name}_library PRIVATE -Wl,-z,defs)
  endif()
endfunction()

lissome_shared_library(lissome_runtime MODULES base measure kernel runtime data report)
lissome_shared_library(lissome_images MODULES images LINKS lissome_runtime)
if(LISSOME_TORCH)
  lissome_shared_library(lissome_torch
    MODULES syntax program pass export lower compress compare distributed train tune flags cli
    LINKS lissome_runtime)
  lissome_shared_library(lissome_reference
    MODULES reference
    LINKS lissome_torch lissome_runtime)
endif()

get_property(main_sources GLOBAL PROPERTY LISSOME_MAIN_SOURCES)
if(main_sources AND TARGET lissome_runtime_library)
  add_executable(lissome ${main_sources})
  set_target_properties(lissome PROPERTIES
    BUILD_RPATH "$ORIGIN/../lib" INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
  target_link_libraries(lissome PRIVATE lissome_flags lissome_runtime_library)
  foreach(library IN ITEMS lissome_images lissome_torch lissome_reference)
    if(TARGET ${library}_library)
      add_dependencies(lissome ${library}_library)
    endif()
  endforeach()
  lissome_link_into_build(lissome "${PROJECT_BINARY_DIR}/bin/lissome" lissome)
endif()

# Tests that need the product as it is shipped.
get_property(shared_tests GLOBAL PROPERTY LISSOME_SHARED_TESTS)
foreach(name IN LISTS shared_tests)
  foreach(library IN ITEMS lissome_runtime lissome_torch)
    if(TARGET ${library}_library)
      target_link_libraries(test_${name} PRIVATE ${library}_library)
    endif()
  endforeach()
  if(TARGET lissome_reference_library)
    add_dependencies(test_${name} lissome_reference_library)
  endif()
endforeach()

# What `make build` makes: all but tests and examples.
add_custom_target(product)
foreach(part IN ITEMS lissome lissome_runtime_library lissome_torch_library lissome_reference_library)
  if(TARGET ${part})
    add_dependencies(product ${part})
  endif()
endforeach()
