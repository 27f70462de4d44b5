# One folder, one target, and only the edges of the flow.
#
# culprit_stage(NAME DIR src/... DEPS core model ... LIBS fmt::fmt ...) makes the static library culprit_<NAME> from every .cpp of DIR.
# A stage sees only the headers of the stages it names in DEPS: the include path of a stage is a folder that holds one link, so
# `#include "trace/trace.h"` compiles only for who depends on `trace`. DEPS is checked against the table below.

# who | may use  (core, model and stats are open to everyone above them; formats_* are one target per format)
set(CULPRIT_EDGES
  "core|"
  "model|core"
  "stats|core"
  "trace|core,model,stats"
  "formats_.*|core,model,stats,trace,formats_io"
  "formats|core,model,stats,trace,formats_.*"
  "cycles|core,model,stats,trace"
  "profile|core,model,stats,trace,cycles"
  "summary|core,model,stats,trace,cycles,profile"
  "kernels|core,model,stats,trace,profile"
  "compare|core,model,stats"
  "diagnose|core,model,stats"
  "report|core,model,stats"
  "deepdive|core,model,stats,trace,formats_io"
  "record_agent|"
  "record_inject|core,formats_perfetto,record_collector,record_agent"
  "record_python|core,formats_perfetto,record_collector,record_agent,record_inject"
  "record_interpreter|core,formats_perfetto,record_collector,record_bpf"
  "record_.*|core,model,stats,formats_perfetto,record_collector,record_bpf,record_interpreter"
  "record|core,model,stats,formats_perfetto,record_.*"
  "faults|core,model,stats"
  "library|core,model,stats,trace,cycles,profile,summary,kernels,compare,diagnose,report,deepdive,formats,formats_io"
  "ab|core,model,stats,trace,cycles,profile,compare,diagnose,library,formats_perfetto,record.*,faults"
  "tracegen|core,model,stats"
  "cli|.*")

# The objects of a stage are compiled once, for the program and for both libraries. Hidden names cost no detour through a table.
set(CULPRIT_OBJECTS POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)

function(culprit_check_edge from to)
  foreach(row IN LISTS CULPRIT_EDGES)
    string(REPLACE "|" ";" parts "${row}")
    list(GET parts 0 who)
    if("${from}" MATCHES "^${who}$")
      list(LENGTH parts n)
      set(allowed "")
      if(n GREATER 1)
        list(GET parts 1 allowed)
      endif()
      string(REPLACE "," ";" allowed "${allowed}")
      foreach(a IN LISTS allowed)
        if("${to}" MATCHES "^${a}$")
          return()
        endif()
      endforeach()
      message(FATAL_ERROR "stage '${from}' may not use '${to}': allowed are '${allowed}' (cmake/stages.cmake, docs/architecture.md)")
    endif()
  endforeach()
  message(FATAL_ERROR "stage '${from}' is not in the table of cmake/stages.cmake")
endfunction()

function(culprit_stage name)
  cmake_parse_arguments(ARG "" "DIR" "DEPS;LIBS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${ARG_DIR}/*.cpp)
  file(RELATIVE_PATH inside ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/${ARG_DIR})
  get_filename_component(parent ${inside} DIRECTORY)
  set(include_root ${CMAKE_BINARY_DIR}/include/${name})
  file(MAKE_DIRECTORY ${include_root}/${parent})
  if(NOT EXISTS ${include_root}/${inside})
    file(CREATE_LINK ${CMAKE_SOURCE_DIR}/${ARG_DIR} ${include_root}/${inside} SYMBOLIC)
  endif()
  if(sources)
    add_library(culprit_${name} STATIC ${sources})
    set(scope PUBLIC)
  else()
    add_library(culprit_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(culprit_${name} ${scope} ${include_root})
  foreach(dep IN LISTS ARG_DEPS)
    culprit_check_edge(${name} ${dep})
    target_link_libraries(culprit_${name} ${scope} culprit_${dep})
  endforeach()
  target_link_libraries(culprit_${name} ${scope} ${ARG_LIBS})
  if(sources)
    target_link_libraries(culprit_${name} PRIVATE culprit_options)
    target_compile_options(culprit_${name} PRIVATE ${CULPRIT_WARNINGS})
    set_target_properties(culprit_${name} PROPERTIES ${CULPRIT_OBJECTS})
    if(COMMAND culprit_unity)
      culprit_unity(culprit_${name})
    endif()
    if(COMMAND culprit_precompiled)
      culprit_precompiled(culprit_${name} stages LIBS fmt::fmt Threads::Threads OPTIONS -Wpedantic OBJECTS ${CULPRIT_OBJECTS})
    endif()
  endif()
endfunction()
