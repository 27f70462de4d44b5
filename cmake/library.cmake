# The library for programs of others: the stages as one archive and as one shared library of the same objects, the headers of include/,
# a CMake package and a pkg-config file.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(parts library deepdive report diagnose compare kernels summary profile cycles formats formats_kineto formats_kernel_text formats_ncu_csv
          formats_nsys_sqlite formats_perfetto formats_io trace stats model core)
list(TRANSFORM parts PREPEND culprit_)
list(APPEND parts culprit_perfetto_proto)
set(archive ${CMAKE_BINARY_DIR}/libculprit.a)
set(script "CREATE ${archive}\n")
foreach(part IN LISTS parts)
  string(APPEND script "ADDLIB $<TARGET_FILE:${part}>\n")
endforeach()
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/libculprit.mri CONTENT "${script}SAVE\nEND\n")
add_custom_command(OUTPUT ${archive} COMMAND ${CMAKE_AR} -M < ${CMAKE_BINARY_DIR}/libculprit.mri DEPENDS ${parts} VERBATIM)
add_custom_target(culprit_archive ALL DEPENDS ${archive})

# Only what the headers declare is visible (CULPRIT_API); the list keeps back what the standard library makes visible of its own.
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/libculprit.map CONTENT [[{ global: extern "C++" { culprit::*; }; local: *; };]])
add_library(culprit_shared SHARED $<TARGET_OBJECTS:culprit_library> $<TARGET_OBJECTS:culprit_core>)
target_link_libraries(culprit_shared PRIVATE culprit_library culprit_core)
target_link_options(culprit_shared PRIVATE -Wl,--version-script,${CMAKE_BINARY_DIR}/libculprit.map -Wl,--exclude-libs,ALL -Wl,-z,defs)
set_target_properties(culprit_shared PROPERTIES
  OUTPUT_NAME culprit VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR} LINK_DEPENDS ${CMAKE_BINARY_DIR}/libculprit.map)

# What a program that links the archive links too; Debian's names.
set(CULPRIT_LINKS fmt simdjson isal utf8proc zstd sqlite3 csv protobuf-lite pthread)
list(TRANSFORM CULPRIT_LINKS PREPEND -l OUTPUT_VARIABLE flags)
list(JOIN flags " " CULPRIT_LINK_FLAGS)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/culprit)
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/culprit-config.cmake.in ${CMAKE_BINARY_DIR}/culprit-config.cmake
                              INSTALL_DESTINATION ${package}
                              PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/culprit-config-version.cmake COMPATIBILITY SameMinorVersion)
file(RELATIVE_PATH CULPRIT_PC_TO_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(${CMAKE_SOURCE_DIR}/cmake/culprit.pc.in ${CMAKE_BINARY_DIR}/culprit.pc @ONLY)

install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/ TYPE INCLUDE COMPONENT library)
install(TARGETS culprit_shared LIBRARY COMPONENT library)
install(FILES ${archive} TYPE LIB COMPONENT library)
install(FILES ${CMAKE_BINARY_DIR}/culprit.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library)
install(FILES ${CMAKE_BINARY_DIR}/culprit-config.cmake ${CMAKE_BINARY_DIR}/culprit-config-version.cmake DESTINATION ${package}
        COMPONENT library)
