# cmake -DFROM=... -DTO=... -DNAME=... -P embed.cmake: writes a file as a constant of C, with a NUL behind it.
file(READ ${FROM} bytes HEX)
string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
get_filename_component(origin ${FROM} NAME)
file(WRITE ${TO} "/* ${origin}, by tools/embed.cmake */\n#include \"device/gpu/backend/kernel_source.h\"\n\nconst char ${NAME}[] = {\n${bytes}0};\n")
