# culprit_unity(TARGET): the files of TARGET are compiled some at a time, as one: what templates make of the standard library and of Google
# Test is most of the time, and is made once for all of them. Only with CULPRIT_UNITY: sanitizer builds; the others look at each file alone.
set(CULPRIT_UNITY_BATCH 8 CACHE STRING "files that are compiled as one with CULPRIT_UNITY; 0: all of a target")

function(culprit_unity target)
  if(NOT CULPRIT_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${CULPRIT_UNITY_BATCH})
  # Where one file's names seem to be those of another: the other builds have these warnings.
  target_compile_options(${target} PRIVATE -Wno-shadow)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
endfunction()
