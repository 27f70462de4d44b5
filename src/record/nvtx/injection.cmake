# The library that recorded programs load. It runs inside strangers: C, libc alone, nothing visible but the door, never
# unloaded, and free of sanitizers even where everything else has them.
add_library(culprit_nvtx SHARED ${CMAKE_CURRENT_LIST_DIR}/injection.c)
set_target_properties(culprit_nvtx PROPERTIES C_STANDARD 11 C_EXTENSIONS OFF C_VISIBILITY_PRESET hidden
                      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
target_include_directories(culprit_nvtx PRIVATE ${CMAKE_BINARY_DIR}/include/record_nvtx)
target_compile_options(culprit_nvtx PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-cast-function-type -Werror
                       -O2 -fno-exceptions -fno-sanitize=all -fno-builtin-memset)
target_link_options(culprit_nvtx PRIVATE -fno-sanitize=all -Wl,-z,nodelete -Wl,-z,now)
