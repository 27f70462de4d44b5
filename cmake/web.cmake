# The page of the HTML reports, built by npm from web/ and put into the program as one literal.
option(CULPRIT_WEB "build the page of the HTML reports (needs npm and its registry)" ON)

set(page ${CMAKE_BINARY_DIR}/web/report.html)
if(CULPRIT_WEB)
  file(GLOB web_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/web/src/*)
  foreach(name package.json package-lock.json tsconfig.json build.mjs page.html)
    list(APPEND web_sources ${CMAKE_SOURCE_DIR}/web/${name})
  endforeach()
  add_custom_command(OUTPUT ${page}
                     COMMAND ${CMAKE_SOURCE_DIR}/scripts/build-web ${CMAKE_SOURCE_DIR}/web ${CMAKE_BINARY_DIR}/web/work ${page}
                     DEPENDS ${web_sources} ${CMAKE_SOURCE_DIR}/scripts/build-web COMMENT "Building the page of the HTML reports" VERBATIM)
else()
  add_custom_command(OUTPUT ${page} COMMAND ${CMAKE_COMMAND} -E touch ${page} VERBATIM)
endif()
add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/page_template.cpp
                   COMMAND ${CMAKE_COMMAND} -DPAGE=${page} -DOUTPUT=${CMAKE_BINARY_DIR}/page_template.cpp -P ${CMAKE_SOURCE_DIR}/cmake/page_template.cmake
                   DEPENDS ${page} ${CMAKE_SOURCE_DIR}/cmake/page_template.cmake VERBATIM)
target_sources(culprit_report PRIVATE ${CMAKE_BINARY_DIR}/page_template.cpp)
set_source_files_properties(${CMAKE_BINARY_DIR}/page_template.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
