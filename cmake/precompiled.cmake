# culprit_precompiled(TARGET SET LIBS ...): TARGET begins with the precompiled headers of SET ("stages" or "tests"), which are compiled
# once for all targets of that set. Only with CULPRIT_PCH: sanitizer builds, where reading the headers is a fifth of the time.
# LIBS: what has the headers; every target of the set links it anyway. OPTIONS: those of the targets that change macros.
# OBJECTS: properties that change how objects are compiled.
set(CULPRIT_PCH_stages <algorithm> <array> <charconv> <cmath> <cstdint> <filesystem> <functional> <limits> <map> <memory> <optional>
                       <set> <span> <string> <string_view> <utility> <variant> <vector> <fmt/format.h>)
set(CULPRIT_PCH_tests ${CULPRIT_PCH_stages} <fstream> <sstream> <gmock/gmock.h> <gtest/gtest.h>)

function(culprit_precompiled target set)
  cmake_parse_arguments(ARG "" "" "LIBS;OPTIONS;OBJECTS" ${ARGN})
  if(NOT CULPRIT_PCH)
    return()
  endif()
  if(NOT TARGET culprit_precompiled_${set})
    set(source ${CMAKE_BINARY_DIR}/precompiled/${set}.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "")
    add_library(culprit_precompiled_${set} OBJECT ${source})
    target_link_libraries(culprit_precompiled_${set} PRIVATE ${ARG_LIBS})
    target_precompile_headers(culprit_precompiled_${set} PRIVATE ${CULPRIT_PCH_${set}})
    target_compile_options(culprit_precompiled_${set} PRIVATE ${ARG_OPTIONS})
    if(ARG_OBJECTS)
      set_target_properties(culprit_precompiled_${set} PROPERTIES ${ARG_OBJECTS})
    endif()
  endif()
  target_precompile_headers(${target} REUSE_FROM culprit_precompiled_${set})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -fpch-preprocess)  # ccache keeps only what it can see
  endif()
endfunction()
