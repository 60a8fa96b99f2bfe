# lissome_module(): one module of the tree = one object library + one test program.
#
#   lissome_module(
#     NAME pass                 target lissome_pass, tests test_pass
#     TORCH none|narrow|full    which torch headers it may see
#     LINKS base measure        the modules whose faces it may include (the table in docs/design.md)
#     SOURCES a.cpp b.cpp       listed one by one
#     FULL_TORCH_SOURCES c.cpp  of a narrow module: files that include torch/*.h all the same
#     ALONE d.cpp               sources that are compiled with flags of their own, and so not with others
#     TESTS a_test.cpp          doctest files, one program for all of them
#     TESTS_ALONE b_test.cpp    of them, those that are compiled with flags of their own, or share names with others
#     TEST_LINKS rapidcheck     modules or libraries that only the tests need
#     TEST_SHARED               tests link the shared libraries instead of objects: needed where
#                               a test loads liblissome_torch or liblissome_reference itself
#     TEST_MEASURES             tests measure time: they run beside no others
#     TEST_MEASURES_SUITE       those of the suite "measured" do
#     TEST_SECONDS 90           about how long the tests run: the longest begin first
#     LIBRARIES deflate)        libraries from outside
#
# A module without sources is an empty interface library, so that others can name it.

# Headers that many files include are parsed once, here.
set(precompiled_headers standard)
if(LISSOME_TORCH)
  list(APPEND precompiled_headers tensor dispatcher)
endif()
foreach(header IN LISTS precompiled_headers)
  add_library(lissome_${header}_precompiled OBJECT "${PROJECT_SOURCE_DIR}/cmake/precompiled/empty.cpp")
  target_precompile_headers(lissome_${header}_precompiled PRIVATE
    "${PROJECT_SOURCE_DIR}/cmake/precompiled/${header}.h")
  if(NOT header STREQUAL "standard")
    target_link_libraries(lissome_${header}_precompiled PRIVATE lissome_torch_narrow)
  endif()
endforeach()

# Files that call ops include one of these, and take the larger precompiled header.
set(lissome_dispatcher_include "#include <(ATen/core/(ivalue|jit_type|function_schema|dispatch)|ATen/ops|torch)")

# What a file includes takes about as long to compile as what it says, with torch longer: files of a kind are compiled
# eight at a time. `result` becomes the files to compile in place of these sources of `name`, which see `torch`.
function(lissome_join_sources result name torch)
  if(NOT LISSOME_UNITY)
    set(sources ${ARGN})
    list(TRANSFORM sources PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/")
    set(${result} ${sources} PARENT_SCOPE)
    return()
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ARGN})  # what they include says their kind
  set(joined)
  set(sources_standard)
  set(sources_dispatcher)
  foreach(source IN LISTS ARGN)
    file(STRINGS "${source}" found REGEX "${lissome_dispatcher_include}" LIMIT_COUNT 1)
    if(found AND NOT torch STREQUAL "none")
      list(APPEND sources_dispatcher "${source}")
    else()
      list(APPEND sources_standard "${source}")
    endif()
  endforeach()
  foreach(kind IN ITEMS standard dispatcher)
    set(sources ${sources_${kind}})
    set(number 0)
    while(sources)
      list(SUBLIST sources 0 8 part)
      list(REMOVE_ITEM sources ${part})
      math(EXPR number "${number} + 1")
      # Headers from outside come first: none of them may see what a file before it declares or uses.
      set(text "")
      if(kind STREQUAL "dispatcher")
        list(APPEND text "#include <ATen/core/ivalue.h>")
      endif()
      foreach(source IN LISTS part)
        file(STRINGS "${source}" includes REGEX "^#include <")
        list(APPEND text ${includes})
      endforeach()
      list(REMOVE_DUPLICATES text)
      foreach(source IN LISTS part)
        list(APPEND text "#include \"${CMAKE_CURRENT_SOURCE_DIR}/${source}\"")
      endforeach()
      list(JOIN text "\n" text)
      set(file "${CMAKE_CURRENT_BINARY_DIR}/${name}_${kind}_${number}.cpp")
      file(CONFIGURE OUTPUT "${file}" CONTENT "${text}\n" @ONLY)
      list(APPEND joined "${file}")
    endwhile()
  endforeach()
  set(${result} ${joined} PARENT_SCOPE)
endfunction()

# The precompiled header of each file of `target`: with torch, the larger one where the file includes more of it than
# tensors. (With gcc; other compilers parse what is missing.)
function(lissome_precompile target torch)
  if(torch STREQUAL "none")
    target_precompile_headers(${target} REUSE_FROM lissome_standard_precompiled)
    return()
  endif()
  target_precompile_headers(${target} REUSE_FROM lissome_tensor_precompiled)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    return()
  endif()
  set(header "${PROJECT_BINARY_DIR}/CMakeFiles/lissome_dispatcher_precompiled.dir/cmake_pch.hxx")
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    file(STRINGS "${source}" found REGEX "${lissome_dispatcher_include}" LIMIT_COUNT 1)
    if(found)
      set_source_files_properties("${source}" PROPERTIES SKIP_PRECOMPILE_HEADERS ON
        OBJECT_DEPENDS "${header}.gch")
      set_property(SOURCE "${source}" APPEND PROPERTY COMPILE_OPTIONS "-Winvalid-pch;-include;${header}")
    endif()
  endforeach()
endfunction()

if(LISSOME_TESTS)
  add_library(lissome_test_main OBJECT "${PROJECT_SOURCE_DIR}/tests/test_main.cpp")
endif()

define_property(TARGET PROPERTY LISSOME_LINKS BRIEF_DOCS "modules that this module may include")

# What a target of ours needs to compile: include root, torch, the row of the table.
function(lissome_compile_like_module target torch)
  target_include_directories(${target} PUBLIC "${PROJECT_SOURCE_DIR}")
  if(torch STREQUAL "narrow")
    target_link_libraries(${target} PUBLIC lissome_torch_narrow)
  elseif(torch STREQUAL "full")
    target_link_libraries(${target} PUBLIC lissome_torch_full)
  elseif(NOT torch STREQUAL "none")
    message(FATAL_ERROR "${target}: TORCH is '${torch}'; it must be none, narrow or full")
  endif()
  lissome_precompile(${target} ${torch})
endfunction()

# The module targets that `modules` lead to, themselves included.
function(lissome_module_closure result)
  set(pending ${ARGN})
  set(closure)
  while(pending)
    list(POP_FRONT pending module)
    if(NOT module IN_LIST closure)
      list(APPEND closure ${module})
      get_target_property(links lissome_${module} LISSOME_LINKS)
      if(links)
        list(APPEND pending ${links})
      endif()
    endif()
  endwhile()
  set(${result} ${closure} PARENT_SCOPE)
endfunction()

# The .cpp files of this folder and of the folders below it, those of tests (*_test.cpp, *_cases.cpp) apart.
function(lissome_glob sources tests)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}" "*.cpp")
  set(found_tests ${files})
  list(FILTER files EXCLUDE REGEX "_(test|cases)\\.cpp$")
  list(FILTER found_tests INCLUDE REGEX "_(test|cases)\\.cpp$")
  set(${sources} ${files} PARENT_SCOPE)
  set(${tests} ${found_tests} PARENT_SCOPE)
endfunction()

# lissome_list_functions(steps.inc _steps list_ _steps files...): writes a line LISSOME_LIST(list_pool_steps) for
# each of the files that ends so, here pool/pool_steps.cpp. Who defines the macro declares the functions or lists them,
# so that a new file needs no line in a table.
function(lissome_list_functions result ending before behind)
  set(lines)
  foreach(file IN LISTS ARGN)
    get_filename_component(name "${file}" NAME)
    if(name MATCHES "^([a-z0-9_]+)${ending}[.]cpp$")
      list(APPEND lines "LISSOME_LIST(${before}${CMAKE_MATCH_1}${behind})\n")
    endif()
  endforeach()
  list(SORT lines)
  string(JOIN "" text ${lines})
  file(CONFIGURE OUTPUT "${result}" @ONLY CONTENT "// Made of the names of the files *${ending}.cpp.\n${text}")
endfunction()

function(lissome_module)
  cmake_parse_arguments(PARSE_ARGV 0 module "TEST_SHARED;TEST_MEASURES;TEST_MEASURES_SUITE" "NAME;TORCH;TEST_SECONDS"
    "LINKS;SOURCES;FULL_TORCH_SOURCES;ALONE;TESTS;TESTS_ALONE;TEST_LINKS;LIBRARIES")
  if(module_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "lissome_module(${module_NAME}): what is ${module_UNPARSED_ARGUMENTS}?")
  endif()
  set(target lissome_${module_NAME})
  if(NOT LISSOME_TORCH AND NOT module_TORCH STREQUAL "none")
    set(module_SOURCES)
    set(module_FULL_TORCH_SOURCES)
    set(module_ALONE)
    set(module_TESTS)
    set(module_TESTS_ALONE)
  endif()
  lissome_join_sources(module_SOURCES ${target} ${module_TORCH} ${module_SOURCES})
  lissome_join_sources(module_TESTS ${target}_tests ${module_TORCH} ${module_TESTS})
  if(module_SOURCES OR module_FULL_TORCH_SOURCES OR module_ALONE)
    add_library(${target} OBJECT ${module_SOURCES} ${module_FULL_TORCH_SOURCES} ${module_ALONE})
    lissome_compile_like_module(${target} ${module_TORCH})
    foreach(link IN LISTS module_LINKS)
      target_link_libraries(${target} PUBLIC lissome_${link})
    endforeach()
    target_link_libraries(${target} PUBLIC ${module_LIBRARIES})
    if(module_FULL_TORCH_SOURCES)
      set_property(SOURCE ${module_FULL_TORCH_SOURCES} APPEND PROPERTY
        COMPILE_OPTIONS "-isystem;${LISSOME_TORCH_ROOT}/include/torch/csrc/api/include")
    endif()
  else()
    add_library(${target} INTERFACE)
  endif()
  set_target_properties(${target} PROPERTIES LISSOME_LINKS "${module_LINKS}")
  if((module_TESTS OR module_TESTS_ALONE) AND LISSOME_TESTS)
    lissome_module_tests(${module_NAME})
  endif()
endfunction()

# The test program of a module. Tests are compiled into an object library first: so they use the
# same flags, and so the same precompiled header, as the code.
function(lissome_module_tests name)
  set(objects lissome_${name}_tests)
  add_library(${objects} OBJECT ${module_TESTS} ${module_TESTS_ALONE})
  lissome_compile_like_module(${objects} ${module_TORCH})
  target_compile_definitions(${objects} PRIVATE LISSOME_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
    LISSOME_BINARY_DIR="${PROJECT_BINARY_DIR}")
  target_compile_options(${objects} PRIVATE $<$<CONFIG:Release>:-O1>)  # takes a quarter less time to compile
  set(test_modules)
  set(test_libraries)
  foreach(link IN LISTS module_TEST_LINKS)
    if(TARGET lissome_${link})
      list(APPEND test_modules ${link})
    else()
      list(APPEND test_libraries ${link})
    endif()
  endforeach()
  lissome_module_closure(closure ${name} ${test_modules})
  foreach(link IN LISTS closure)
    target_link_libraries(${objects} PUBLIC lissome_${link})
  endforeach()
  target_link_libraries(${objects} PUBLIC ${test_libraries})

  add_executable(test_${name} $<TARGET_OBJECTS:lissome_test_main>)
  if(NOT module_TORCH STREQUAL "none")
    if(NOT TARGET lissome_test_seed)
      add_library(lissome_test_seed OBJECT "${PROJECT_SOURCE_DIR}/tests/seed_each_test.cpp")
      lissome_compile_like_module(lissome_test_seed narrow)
    endif()
    target_sources(test_${name} PRIVATE $<TARGET_OBJECTS:lissome_test_seed>)
  endif()
  set_target_properties(test_${name} PROPERTIES
    LINKER_LANGUAGE CXX RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
  target_link_libraries(test_${name} PRIVATE ${objects} Threads::Threads ${CMAKE_DL_LIBS})
  if(module_TEST_SHARED)
    set_property(GLOBAL APPEND PROPERTY LISSOME_SHARED_TESTS ${name})
  else()
    foreach(link IN LISTS closure)
      target_link_libraries(test_${name} PRIVATE lissome_${link})
    endforeach()
  endif()
  if(module_TEST_MEASURES_SUITE)
    lissome_add_unit_test(${name} ${name} --test-suite-exclude=measured)
    lissome_add_unit_test(${name}_measured ${name} --test-suite=measured)
    set_tests_properties(${name}_measured PROPERTIES RUN_SERIAL TRUE)
  else()
    lissome_add_unit_test(${name} ${name})
    set_tests_properties(${name} PROPERTIES RUN_SERIAL ${module_TEST_MEASURES})
  endif()
  if(module_TEST_SECONDS)
    set_tests_properties(${name} PROPERTIES COST ${module_TEST_SECONDS})
  endif()
endfunction()

# The test `name`: the test program of `module` with these arguments.
function(lissome_add_unit_test name module)
  add_test(NAME ${name} COMMAND test_${module} ${ARGN} WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
  set(seconds 900)
  if(LISSOME_SANITIZE)
    set(seconds 3600)
  endif()
  # What a developer measured before must not choose kernels here.
  set_tests_properties(${name} PROPERTIES LABELS unit TIMEOUT ${seconds} ENVIRONMENT "LISSOME_CACHE=none")
endfunction()

# lissome_main(SOURCES main.cpp ...): the program's own files, which link the runtime alone.
function(lissome_main)
  cmake_parse_arguments(PARSE_ARGV 0 main "" "" "SOURCES")
  lissome_join_sources(main_SOURCES lissome_main none ${main_SOURCES})
  set_property(GLOBAL APPEND PROPERTY LISSOME_MAIN_SOURCES ${main_SOURCES})
endfunction()

# lissome_python_module(NAME runtime SOURCES binding.cpp FILES __init__.py ...): the extension module of one
# distribution and the Python files that it brings.
function(lissome_python_module)
  cmake_parse_arguments(PARSE_ARGV 0 python "" "NAME" "SOURCES;FILES")
  lissome_join_sources(python_SOURCES lissome_python_${python_NAME} none ${python_SOURCES})
  list(TRANSFORM python_FILES PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/")
  set_property(GLOBAL PROPERTY LISSOME_PYTHON_SOURCES_${python_NAME} ${python_SOURCES})
  set_property(GLOBAL PROPERTY LISSOME_PYTHON_FILES_${python_NAME} ${python_FILES})
endfunction()

# lissome_instruction_set(avx2|avx512|avx512_vnni|avx512_bf16|amx files...): compiles these files
# for that instruction set. Nothing else in the product may use it without asking the processor.
function(lissome_instruction_set set)
  set(avx2 -mavx2 -mfma -mf16c -mbmi -mbmi2)
  set(avx512 ${avx2} -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512cd)
  set(avx_vnni ${avx2} -mavxvnni)
  set(avx512_vnni ${avx512} -mavx512vnni)
  set(avx512_bf16 ${avx512_vnni} -mavx512bf16)
  set(amx ${avx512_bf16} -mamx-tile -mamx-int8 -mamx-bf16)
  if(NOT ${set})
    message(FATAL_ERROR "lissome_instruction_set: '${set}' is none of avx2, avx512, avx_vnni, "
      "avx512_vnni, avx512_bf16, amx")
  endif()
  if(LISSOME_UNOPTIMIZED_KERNELS)
    list(APPEND ${set} -O0)
    if(NOT LISSOME_FUZZ)
      # Vector loops must not leave their memory. Checks of their arithmetic take longer to compile than the loops, and
      # are in the presets asan-ubsan and fuzz.
      list(APPEND ${set} -fno-sanitize=undefined)
    endif()
  endif()
  set_source_files_properties(${ARGN} PROPERTIES
    COMPILE_OPTIONS "${${set}}" SKIP_PRECOMPILE_HEADERS ON)
endfunction()
