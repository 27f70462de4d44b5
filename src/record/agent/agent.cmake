# What is put into running processes: C, no function of any library (their addresses are handed over), nothing visible but its doors,
# never unloaded, and free of sanitizers even where everything else has them.
add_library(culprit_agent SHARED ${CMAKE_CURRENT_LIST_DIR}/agent.c ${CMAKE_CURRENT_LIST_DIR}/python_hooks.c)
set_target_properties(culprit_agent PROPERTIES C_STANDARD 11 C_EXTENSIONS ON C_VISIBILITY_PRESET hidden
                      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
target_compile_options(culprit_agent PRIVATE -Wall -Wextra -Wshadow -Wconversion -Wno-cast-function-type -Werror
                       -O2 -fno-exceptions -fno-sanitize=all -fno-stack-protector -fno-builtin -ffreestanding
                       -DCULPRIT_HOOKS="${CMAKE_CURRENT_LIST_DIR}/hooks.py" -DCULPRIT_EXCHANGE="${CMAKE_CURRENT_LIST_DIR}/exchange.py")
target_link_options(culprit_agent PRIVATE -nostdlib -fno-sanitize=all -Wl,-z,nodelete -Wl,-z,now -Wl,-z,defs -Wl,--hash-style=both)
set_property(SOURCE ${CMAKE_CURRENT_LIST_DIR}/python_hooks.c APPEND PROPERTY OBJECT_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/hooks.py ${CMAKE_CURRENT_LIST_DIR}/exchange.py)
