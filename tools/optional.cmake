# Finds components that Weft can do without. One may be installed only in part, such as a pkg-config file without the header,
# or an mpicc without the library. It is then left out, with a message, and never ends the configuration. So each one is
# tried with plain flags first: CMake ends with an error if an imported target names a folder that is missing.
include(CheckCSourceCompiles)

# Sets NAME to whether a program with this header and statement compiles and links. A failure is tried again the next time.
function(weft_try name header statement includes flags libraries)
  set(CMAKE_REQUIRED_QUIET ON)
  set(CMAKE_REQUIRED_INCLUDES ${includes})
  string(REPLACE ";" " " CMAKE_REQUIRED_FLAGS "${flags}")
  set(CMAKE_REQUIRED_LIBRARIES ${libraries} m pthread)
  check_c_source_compiles("#include <stddef.h>\n#include <${header}>\nint main(void) { ${statement}; }" ${name})
  set(works ${${name}})
  unset(${name} CACHE)
  set(${name} ${works} PARENT_SCOPE)
endfunction()

# pkg_check_modules(PREFIX QUIET IMPORTED_TARGET GLOBAL MODULE), if such a program works.
macro(weft_optional prefix module header statement)
  pkg_check_modules(${prefix}_TRIED QUIET ${module})
  if(${prefix}_TRIED_FOUND)
    weft_try(${prefix}_WORKS "${header}" "${statement}" "${${prefix}_TRIED_INCLUDE_DIRS}" "${${prefix}_TRIED_CFLAGS_OTHER}"
             "${${prefix}_TRIED_LDFLAGS}")
    if(${prefix}_WORKS)
      pkg_check_modules(${prefix} QUIET IMPORTED_TARGET GLOBAL ${module})
    else()
      unset(__pkg_config_checked_${prefix}_TRIED CACHE) # ask again the next time
      message(STATUS "${module} is left out: pkg-config finds it, but a program with ${header} does not compile")
    endif()
  endif()
endmacro()

# The MPI of a cluster: by the flags of its mpicc, or by a compiler that has them itself. Makes the target
# PkgConfig::WEFT_OPENMPI or PkgConfig::WEFT_MPICH.
macro(weft_mpi_of_cluster)
  find_program(MPI_C_COMPILER mpicc HINTS ENV MPI_HOME PATH_SUFFIXES bin)
  set(shown "")
  if(MPI_C_COMPILER)
    execute_process(COMMAND ${MPI_C_COMPILER} -show OUTPUT_VARIABLE shown ERROR_QUIET)
  endif()
  string(REGEX REPLACE "-Xlinker +" "-Wl," shown "${shown}")
  separate_arguments(mpi_libraries UNIX_COMMAND "${shown}")
  list(FILTER mpi_libraries INCLUDE REGEX "^-") # without the compiler
  set(mpi_includes ${mpi_libraries})
  list(FILTER mpi_includes INCLUDE REGEX "^-I")
  list(TRANSFORM mpi_includes REPLACE "^-I" "")
  list(FILTER mpi_libraries EXCLUDE REGEX "^-[ID]")
  weft_try(WEFT_MPI_WORKS "mpi.h" "return MPI_Init(0, 0)" "${mpi_includes}" "" "${mpi_libraries}")
  weft_try(WEFT_MPI_IS_OPENMPI "mpi.h" "return OPEN_MPI - 1" "${mpi_includes}" "" "${mpi_libraries}")
  if(WEFT_MPI_WORKS)
    set(mpi_name WEFT_MPICH)
    if(WEFT_MPI_IS_OPENMPI)
      set(mpi_name WEFT_OPENMPI)
    endif()
    set(${mpi_name}_FOUND ON)
    add_library(PkgConfig::${mpi_name} INTERFACE IMPORTED)
    target_include_directories(PkgConfig::${mpi_name} INTERFACE ${mpi_includes})
    target_link_libraries(PkgConfig::${mpi_name} INTERFACE ${mpi_libraries})
  elseif(MPI_C_COMPILER)
    message(STATUS "MPI is left out: there is ${MPI_C_COMPILER}, but a program with mpi.h does not compile")
  endif()
endmacro()
