# What is installed with the program: what it loads, manual pages and completions of shells made from the text of --help, documents.
include(GNUInstallDirs)

set(texts ${CMAKE_BINARY_DIR}/share)
add_custom_command(OUTPUT ${texts}/man/man1/culprit.1
                   COMMAND ${CMAKE_COMMAND} -E rm -rf ${texts} COMMAND culprit-texts ${texts} DEPENDS culprit-texts VERBATIM)
add_custom_target(culprit_texts_files ALL DEPENDS ${texts}/man/man1/culprit.1)

install(TARGETS culprit COMPONENT program)
install(TARGETS culprit_nvtx culprit_agent LIBRARY DESTINATION lib/culprit COMPONENT program)  # where the program looks for it
install(DIRECTORY ${texts}/ DESTINATION ${CMAKE_INSTALL_DATADIR} COMPONENT program)
install(FILES ${CMAKE_SOURCE_DIR}/cmake/copyright ${CMAKE_SOURCE_DIR}/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
# Debian packs pages and histories; people who install by hand read either form.
install(CODE "
  file(GLOB pages ${texts}/man/man1/*.1)
  set(folder \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}\")
  foreach(page IN LISTS pages)
    get_filename_component(name \${page} NAME)
    execute_process(COMMAND gzip -9nf \${folder}/man/man1/\${name} COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
  file(COPY_FILE ${CMAKE_SOURCE_DIR}/CHANGELOG.md \${folder}/doc/culprit/changelog)
  execute_process(COMMAND gzip -9nf \${folder}/doc/culprit/changelog COMMAND_ERROR_IS_FATAL ANY)" COMPONENT program)
