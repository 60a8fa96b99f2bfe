# Compiler, linker and build types, the same for every target. No instruction set is named
# here: kernel files set their own (lissome_instruction_set) and are chosen at run time.

option(LISSOME_TESTS "Build the unit tests" ON)
option(LISSOME_TORCH "Build what stands on libtorch; off builds the runtime alone" ON)
option(LISSOME_UNITY "Compile several files at a time; off compiles each alone" ON)
option(LISSOME_FUZZ "Build the fuzz targets of tests/fuzz (clang)" OFF)
option(LISSOME_UNOPTIMIZED_KERNELS
  "Vector loops without optimization: with sanitizers they take a fifth of the time to compile; for small arrays" OFF)
set(LISSOME_KERNEL_SETS "" CACHE STRING
  "Instruction sets that kernels are built for, such as portable;avx2, to build in less time; empty: all")
set(LISSOME_SANITIZE "" CACHE STRING "Sanitizers for all of our code: address,undefined or thread")
# vptr asks for the type information of libtorch's classes, which it does not export.
set(LISSOME_UNCHECKED "vptr" CACHE STRING "Checks of undefined behaviour that the sanitizer leaves out")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release or Dev" FORCE)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEV "-O1 -g")
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

# The program and our libraries find each other relative to themselves, in a build tree (bin/,
# lib/), under an install prefix and in a wheel (lissome/bin, lissome/lib).
set(CMAKE_INSTALL_LIBDIR lib CACHE STRING "Folder of the libraries below the prefix")
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")

# Fields that an initializer leaves out take the defaults that their struct gives them.
add_compile_options(-Wall -Wextra -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 sees overlaps and overruns in its own std::string (GCC bug 105651 and its kin).
  add_compile_options(-Wno-restrict -Wno-array-bounds -Wno-stringop-overflow)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # The precompiled headers alone are larger than the heap at which g++ collects garbage, which it then does all the time.
  add_compile_options("SHELL:--param ggc-min-heapsize=1000000")
  # No function of ours is replaced by another library's when loading; clang takes that for granted.
  add_compile_options(-fno-semantic-interposition)
endif()
if(LISSOME_SANITIZE)
  add_compile_options(-fsanitize=${LISSOME_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${LISSOME_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Where variables stand after each instruction is worked out for 20 minutes in files that compile in 25 seconds without;
    # reports need lines alone, which compile a seventh sooner than all of debug information. What g++ 12 takes for
    # uninitialized there are defaults of libtorch's own arguments.
    add_compile_options(-g1 -fno-var-tracking -Wno-maybe-uninitialized)
  endif()
  if(LISSOME_SANITIZE MATCHES undefined)
    add_compile_options(-fno-sanitize=${LISSOME_UNCHECKED} -fno-sanitize-recover=undefined)
    add_link_options(-fno-sanitize=${LISSOME_UNCHECKED})
  endif()
endif()

if(LISSOME_FUZZ)
  # Executions a second are what a fuzzer lives on: optimized in full, the JSON library without checks of its own values,
  # and the branches of it and of standard containers not counted as coverage of ours.
  add_compile_options(-O2 -gline-tables-only -fsanitize=fuzzer-no-link
    "-fsanitize-coverage-ignorelist=${PROJECT_SOURCE_DIR}/tools/sanitizers/coverage-ignore.txt" "-DJSON_ASSERT(x)=")
  if(LISSOME_TORCH)
    # These targets change trees, not bytes: no use for telling libFuzzer each comparison, which costs a third of the time.
    add_compile_options(-fno-sanitize-coverage=trace-cmp)
  endif()
endif()

find_program(LISSOME_MOLD mold)
if(LISSOME_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

find_program(LISSOME_CCACHE ccache)
if(LISSOME_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # A precompiled header is only cached when ccache may trust its time stamp and macros. CCACHE_DEPEND
  # spares the extra preprocessing of every file that is not in the cache.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_DEPEND=1 ${LISSOME_CCACHE})
endif()
