# The text of each file in sets/ as a literal of the program.
set(rows "")
file(GLOB sets CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/sets/*.txt ${CMAKE_CURRENT_LIST_DIR}/sets/libraries/*.txt)
foreach(set IN LISTS sets)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${set})
  get_filename_component(name ${set} NAME_WE)
  file(READ ${set} text)
  get_filename_component(folder ${set} DIRECTORY)
  if(folder STREQUAL ${CMAKE_CURRENT_LIST_DIR}/sets/libraries)
    set(of_library true)
  else()
    set(of_library false)
  endif()
  string(APPEND rows "    {\"${name}\", R\"set(${text})set\", ${of_library}},\n")
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/ready_sets.cpp CONTENT [[
#include "record/python/ready_sets.h"

#include <array>

namespace culprit::record::python {

std::span<const ReadySet> ready_sets() {
  static constexpr auto kSets = std::to_array<ReadySet>({
@rows@  });
  return kSets;
}

}  // namespace culprit::record::python
]] @ONLY)
