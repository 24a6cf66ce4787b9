# cmake -DFROM=... -DTO=... -DNAME=... -DROOT=... -DDECLARED=... -P embed.cmake: writes a file as a C constant that
# ends in NUL. The header DECLARED declares it.
# Each line #include "FILE" is replaced by FILE of the folder ROOT. C code includes this header, too
# (src/device/gpu/backend/kernel_types.h). Its own #include lines are for C alone and are left out.
file(READ ${FROM} text)
string(REGEX MATCHALL "#include \"[^\"\n]*\"" includes "${text}")
foreach(include IN LISTS includes)
  string(REGEX REPLACE "#include \"(.*)\"" "\\1" header "${include}")
  file(READ ${ROOT}/${header} body)
  string(REGEX REPLACE "#include [^\n]*\n" "" body "${body}")
  string(REPLACE "${include}\n" "${body}" text "${text}")
endforeach()
string(HEX "${text}" bytes)
string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
get_filename_component(origin ${FROM} NAME)
file(WRITE ${TO} "/* ${origin}, by tools/embed.cmake */\n#include \"${DECLARED}\"\n\nconst char ${NAME}[] = {\n${bytes}0};\n")
