# What `cmake --install` lays down: the program, the libraries, the faces with what they include, and
# lissome-config.cmake, so that another project says
#   find_package(lissome REQUIRED)
#   target_link_libraries(app PRIVATE lissome::runtime)   # or lissome::torch, to make models
if(NOT TARGET lissome_runtime_library)
  return()
endif()
include(CMakePackageConfigHelpers)

set(installed_libraries)
foreach(name IN ITEMS runtime images torch reference)
  if(TARGET lissome_${name}_library)
    set_target_properties(lissome_${name}_library PROPERTIES EXPORT_NAME ${name})
    list(APPEND installed_libraries lissome_${name}_library)
  endif()
endforeach()
install(TARGETS ${installed_libraries} EXPORT lissome LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET lissome)
  install(TARGETS lissome RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

# Which headers the faces reach is read when installing: it changes without configuring anew.
install(CODE "
  set(source_root \"${PROJECT_SOURCE_DIR}\")
  set(include_folder \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR}\")
  include(\"${PROJECT_SOURCE_DIR}/cmake/install_headers.cmake\")")

set(config_folder "${CMAKE_INSTALL_LIBDIR}/cmake/lissome")
install(EXPORT lissome NAMESPACE lissome:: FILE lissome-targets.cmake DESTINATION ${config_folder})
configure_package_config_file(cmake/lissome-config.cmake.in
  "${PROJECT_BINARY_DIR}/lissome-config.cmake" INSTALL_DESTINATION ${config_folder})
write_basic_package_version_file("${PROJECT_BINARY_DIR}/lissome-config-version.cmake"
  VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES
  "${PROJECT_BINARY_DIR}/lissome-config.cmake"
  "${PROJECT_BINARY_DIR}/lissome-config-version.cmake"
  DESTINATION ${config_folder})
