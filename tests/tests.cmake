# Registers the tests by their names:
#   tests/FOLDER/test_NAME.c    one executable, linked with the other .c files of its folder
#   tests/ops/test_NAME.c       the same, run once for each device, which is its first argument
#   tests/FOLDER/test_NAME.sh   a script, which gets the path of the command in $WEFT_COMMAND
#   tests/fuzz/fuzz_NAME.c      a libFuzzer target, with clang's address sanitizer only
#   examples/NAME.c             a program whose exit status must be 0
# The tests in device_tests run again on each device of WEFT_TEST_DEVICES, as NAME_DEVICE.
# WEFT_TEST_MATCH and WEFT_TEST_EXCEPT select tests by name.
# All tests run in the root of the source tree and write only to temporary folders. Data sets are in the
# folder $WEFT_TEST_DATA. A test whose data set is missing prints a message and is skipped.

# Removes the files of tests that are not selected from a list.
function(weft_choose list)
  set(chosen)
  foreach(file ${${list}})
    get_filename_component(name ${file} NAME_WE)
    if(file MATCHES "/examples/")
      string(PREPEND name "example_")
    endif()
    if((NOT WEFT_TEST_MATCH OR name MATCHES "${WEFT_TEST_MATCH}") AND
       NOT (WEFT_TEST_EXCEPT AND name MATCHES "${WEFT_TEST_EXCEPT}"))
      list(APPEND chosen ${file})
    endif()
  endforeach()
  set(${list} ${chosen} PARENT_SCOPE)
endfunction()

add_library(weft_tests_sources OBJECT tests/kernel_sources.c) # part of every test
weft_own(weft_tests_sources)

# A test that includes headers of train/ or cli/ is also linked with them.
function(weft_link_test target source)
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:weft_tests_sources>)
  weft_own(${target})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  if(WEFT_SANITIZE)
    target_compile_definitions(${target} PRIVATE WEFT_SANITIZED)
  endif()
  file(STRINGS ${source} above_library REGEX "#include \"(train|cli)/")
  if(above_library AND TARGET weft_command)
    target_link_libraries(${target} PRIVATE weft_command)
  endif()
  target_link_libraries(${target} PRIVATE weft_static ${WEFT_LIBRARIES})
endfunction()

set(test_environment "WEFT_SOURCE_DIR=${PROJECT_SOURCE_DIR};WEFT_BINARY_DIR=${PROJECT_BINARY_DIR};WEFT_KERNEL_CACHE=off;XDG_STATE_HOME=${PROJECT_BINARY_DIR}/state")
if(TARGET weft)
  list(APPEND test_environment "WEFT_COMMAND=$<TARGET_FILE:weft>")
endif()
file(GLOB webgpu_library ${PROJECT_BINARY_DIR}/webgpu/lib/libwgpu_native*) # of `make webgpu`
if(webgpu_library)
  list(APPEND test_environment "WEFT_WGPU_LIB=${webgpu_library}")
endif()
set(test_seconds 120)
list(APPEND test_environment "MALLOC_PERTURB_=85") # glibc: fills freed memory with garbage
if(WEFT_SANITIZE)
  set(test_seconds 600)
  # gcc 12's leak sanitizer crashes on thread-local storage of libraries that were opened at run time
  list(APPEND test_environment "ASAN_OPTIONS=intercept_tls_get_addr=0" "UBSAN_OPTIONS=print_stacktrace=1"
       "LSAN_OPTIONS=print_suppressions=0:suppressions=${PROJECT_SOURCE_DIR}/tests/leaks.supp")
  if(WEFT_SANITIZE MATCHES "thread") # ignore libraries without instrumentation; a child of fork may start threads
    list(APPEND test_environment "TSAN_OPTIONS=ignore_noninstrumented_modules=1:die_after_fork=0" "WEFT_MATMUL=own")
  endif()
endif()
# Each test records here the kernel sources that it compiles. `kernel_sources` counts those of the CPU tests that run on OpenCL.
set(source_records ${PROJECT_BINARY_DIR}/compiled-sources)
file(MAKE_DIRECTORY ${source_records})
function(weft_add_test name)
  add_test(NAME ${name} COMMAND ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${test_seconds}
    ENVIRONMENT "${test_environment};WEFT_TEST_SOURCES=${source_records}/${name}")
  # These have whole models, each of which compiles kernels of its own: 136 of nine gpts, 43 of encoders, 28 of packed gpts, DPO
  if(name MATCHES "_opencl(_[0-9]+)?$" AND NOT name MATCHES "test_(architectures|classifiers|dpo|encoders|packing)" AND NOT "${ARGN}" MATCHES "[.]sh")
    set_property(GLOBAL APPEND PROPERTY weft_source_tests ${name})
  endif()
  if(name MATCHES "test_nvrtc|test_amdgcn|test_sass|test_dnn_plans")
    set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77)
  endif()
  if(name MATCHES "opencl|_gpu|_cuda|_hip|_ptx|_render|_sass|_amdgcn|test_processes") # a driver, a compiler or an interpreter of their kernels; an MPI
    set_tests_properties(${name} PROPERTIES TIMEOUT 600 COST 20)
  endif()
endfunction()

# A simulated CUDA driver and NVRTC, which compute on the processor (tests/cuda/fake.h). They test the CUDA device without
# a GPU. Only weft_add_cuda_test lets a test find them, by LD_LIBRARY_PATH. They need the host's C++ compiler, which takes
# most of the time of these tests. So all tests share the compiled kernels, in a folder of the build.
set(fake_cache "FAKE_CUDA_CACHE=${PROJECT_BINARY_DIR}/fake-kernels")
set(WEFT_TEST_CUDA ON CACHE BOOL "run tests on the driver of tests/cuda")
find_program(CXX_PROGRAM c++)
set(cuda_tests test_cuda_attention test_cuda_blas test_cuda_convolution test_cuda_device test_cuda_flash test_cuda_large test_cuda_nccl test_cuda_scalars test_cuda_tensor test_cuda_upload test_gpu_tensor test_gpu_slices test_gpu_concurrent test_gpu_epilogue test_gpu_rows test_gpu_device test_gpu_training test_cuda_card test_cuda_raised test_gpu_scatter test_cuda_choice test_gpu_conv
    test_exchange test_gpu_run test_links test_loss_scale test_memory test_train_gpu)
list(APPEND cuda_tests test_gpu_fused_launch test_golden_values test_head test_recompute test_transformers)
if(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND CXX_PROGRAM AND NOT WEFT_SANITIZE AND NOT WEFT_PORTABLE)
  set(fake_folder ${PROJECT_BINARY_DIR}/fake-cuda)
  file(GLOB fake_sources CONFIGURE_DEPENDS tests/cuda/*.c tests/ptx/*.c)
  list(FILTER fake_sources EXCLUDE REGEX "/(nvrtc|rooms|cubins|nvml|blas|nccl[^/]*|dnn[^/]*|test_[^/]*)[.]c$")
  file(GLOB ptx_sources CONFIGURE_DEPENDS tests/ptx/*.c)
  list(FILTER ptx_sources EXCLUDE REGEX "/test_[^/]*$")
  find_package(Threads REQUIRED)
  add_library(fake_cuda SHARED ${fake_sources})
  add_library(fake_nvrtc SHARED tests/cuda/nvrtc.c tests/cuda/rooms.c tests/cuda/cubins.c)
  add_library(fake_nvml SHARED tests/cuda/nvml.c)
  add_library(fake_blas SHARED tests/cuda/blas.c)
  add_library(fake_nccl SHARED tests/cuda/nccl.c tests/cuda/nccl_ranks.c)
  add_library(fake_cudnn SHARED tests/cuda/dnn.c tests/cuda/dnn_compute.c)
  foreach(target fake_cuda fake_nvrtc fake_nvml fake_blas fake_cudnn fake_nccl)
    weft_own(${target})
    set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${fake_folder})
    target_link_libraries(${target} PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
  endforeach()
  target_link_libraries(fake_cudnn PRIVATE fake_cuda m)
  target_compile_options(fake_cuda PRIVATE -fvisibility=hidden)
  target_compile_options(fake_cudnn PRIVATE -fvisibility=hidden)
  set_target_properties(fake_cuda PROPERTIES OUTPUT_NAME cuda VERSION 1)
  set_target_properties(fake_nvrtc PROPERTIES OUTPUT_NAME nvrtc VERSION 13)
  set_target_properties(fake_nvml PROPERTIES OUTPUT_NAME nvidia-ml VERSION 1)
  set_target_properties(fake_blas PROPERTIES OUTPUT_NAME cublasLt VERSION 13)
  set_target_properties(fake_nccl PROPERTIES OUTPUT_NAME nccl VERSION 2)
  target_link_libraries(fake_blas PRIVATE fake_cuda m)
  set_target_properties(fake_cudnn PROPERTIES OUTPUT_NAME cudnn VERSION 9)
  target_link_libraries(fake_nccl PRIVATE fake_cuda)
  target_compile_definitions(fake_nvrtc PRIVATE FAKE_CUDA_FOLDER="${PROJECT_SOURCE_DIR}/tests/cuda")
  target_include_directories(fake_cuda PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(fake_cuda PRIVATE m)
  # the same as AMD's HIP (tests/hip/fake_hip.h)
  set(fake_hip_folder ${PROJECT_BINARY_DIR}/fake-hip)
  add_library(fake_hip SHARED ${fake_sources} tests/hip/driver.c)
  add_library(fake_hiprtc SHARED tests/cuda/nvrtc.c tests/cuda/rooms.c tests/cuda/cubins.c)
  add_library(fake_rccl SHARED tests/cuda/nccl.c tests/cuda/nccl_ranks.c)
  add_library(fake_hipblaslt SHARED tests/cuda/blas.c tests/hip/blas.c)
  foreach(target fake_hip fake_hiprtc fake_rccl fake_hipblaslt)
    weft_own(${target})
    set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${fake_hip_folder} VERSION 6)
    target_compile_definitions(${target} PRIVATE FAKE_HIP)
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    target_link_libraries(${target} PRIVATE Threads::Threads ${CMAKE_DL_LIBS} m)
  endforeach()
  target_compile_options(fake_hip PRIVATE -fvisibility=hidden)
  target_compile_definitions(fake_hiprtc PRIVATE FAKE_CUDA_FOLDER="${PROJECT_SOURCE_DIR}/tests/cuda")
  set_target_properties(fake_hip PROPERTIES OUTPUT_NAME amdhip64)
  set_target_properties(fake_hiprtc PROPERTIES OUTPUT_NAME hiprtc)
  set_target_properties(fake_rccl PROPERTIES OUTPUT_NAME rccl VERSION 1)
  set_target_properties(fake_hipblaslt PROPERTIES OUTPUT_NAME hipblaslt VERSION 0)
  target_link_libraries(fake_rccl PRIVATE fake_hip)
  target_link_libraries(fake_hipblaslt PRIVATE fake_hip)
endif()
function(weft_add_cuda_test name)
  if(TARGET fake_cuda AND WEFT_TEST_CUDA)
    weft_add_test(${name} ${ARGN})
    set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600 COST 60
      ENVIRONMENT "${test_environment};${fake_cache};WEFT_TEST_GPU=cuda;LD_LIBRARY_PATH=${fake_folder}:$ENV{LD_LIBRARY_PATH}")
  endif()
endfunction()

# A test on the simulated HIP, with wavefronts of so many lanes.
function(weft_add_hip_test name wave)
  if(TARGET fake_hip AND WEFT_TEST_CUDA)
    weft_add_test(${name} ${ARGN})
    set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600 COST 60
      ENVIRONMENT "${test_environment};${fake_cache};WEFT_TEST_GPU=hip;FAKE_HIP_WAVE=${wave};LD_LIBRARY_PATH=${fake_hip_folder}:$ENV{LD_LIBRARY_PATH}")
  endif()
endfunction()

# Tests of all GPUs that also run on WebGPU. Without its library (make webgpu) or a driver of Vulkan they are skipped.
set(webgpu_tests test_gpu_device test_gpu_tensor test_gpu_slices test_gpu_rows test_gpu_training test_gpu_run test_gpu_loop
    test_gpu_faults test_head test_memory test_recompute)
function(weft_add_webgpu_test name)
  if(NOT WEFT_SANITIZE)
    weft_add_test(${name} ${ARGN})
    set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600 COST 60
      ENVIRONMENT "${test_environment};WEFT_TEST_GPU=webgpu")
  endif()
endfunction()

# With Dawn and SwiftShader (make dawn): another library of WebGPU, whose compiler of WGSL is Tint, and another driver.
set(dawn ${PROJECT_BINARY_DIR}/dawn)
set(dawn_environment "${test_environment};WEFT_WGPU_LIB=${dawn}/lib/libwebgpu_dawn.so;WEFT_TEST_GPU=webgpu;WEFT_TEST_DEVICE=webgpu")
if(EXISTS ${dawn}/driver/vk_swiftshader_icd.json)
  list(APPEND dawn_environment "VK_ICD_FILENAMES=${dawn}/driver/vk_swiftshader_icd.json")
endif()
function(weft_add_dawn_test name)
  if(NOT WEFT_SANITIZE)
    if(NOT EXISTS ${dawn}/lib/libwebgpu_dawn.so)
      set(ARGN sh -c "echo skipped: Dawn is not there, run make dawn && exit 77")
    endif()
    weft_add_test(${name} ${ARGN})
    set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600 COST 60 ENVIRONMENT "${dawn_environment}")
  endif()
endfunction()

# The same driver with the real NVRTC, if it is installed: kernels are compiled to PTX, which an interpreter runs
# (tests/ptx/ptx.h). Without NVRTC these tests are skipped.
find_library(NVRTC_LIBRARY NAMES libnvrtc.so.13 libnvrtc.so.12 HINTS /usr/local/cuda ENV CUDA_PATH PATH_SUFFIXES lib64 lib)
if(TARGET fake_cuda AND NVRTC_LIBRARY)
  add_library(ptx_nvrtc SHARED tests/ptx/nvrtc/nvrtc.c ${ptx_sources})
  weft_own(ptx_nvrtc)
  set_target_properties(ptx_nvrtc PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fake-ptx OUTPUT_NAME nvrtc VERSION 13)
  target_link_libraries(ptx_nvrtc PRIVATE ${CMAKE_DL_LIBS} m)
  target_compile_definitions(ptx_nvrtc PRIVATE WEFT_PTX_NVRTC="${NVRTC_LIBRARY}")
endif()
function(weft_add_ptx_test name)
  if(TARGET fake_cuda AND WEFT_TEST_CUDA)
    if(NOT TARGET ptx_nvrtc)
      set(ARGN sh -c "echo skipped: NVRTC is not installed && exit 77")
    endif()
    weft_add_test(${name} ${ARGN})
    set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600 COST 60
      ENVIRONMENT "${test_environment};WEFT_TEST_GPU=cuda;LD_LIBRARY_PATH=${PROJECT_BINARY_DIR}/fake-ptx:${fake_folder}:$ENV{LD_LIBRARY_PATH}")
  endif()
endfunction()

# These tests, the op matrix and the gradient checks run again on each device of WEFT_TEST_DEVICES, and are skipped if the
# device is absent. Compiling their kernels takes some minutes of CPU time, and far more with sanitizers, which would also
# watch the driver's compiler. So a build with sanitizers has no such devices by default.
if(WEFT_SANITIZE)
  set(test_devices "")
else()
  set(test_devices opencl webgpu)
endif()
set(WEFT_TEST_DEVICES "${test_devices}" CACHE STRING "devices besides the CPU whose tests run")
set(device_tests test_parts test_transformers test_batchnorm test_moving test_recurrent test_context test_fit test_image_augment test_loss test_loss_scale test_nn_composites test_mixed test_nn_conv test_nn_decode test_nn_layers test_nn_module test_packing
    test_optim_laws test_optim_rules test_parity test_architectures test_classifiers test_dpo test_encoders test_random_graph test_random_program)
function(weft_add_device_tests name)
  foreach(device ${WEFT_TEST_DEVICES})
    weft_add_test(${name}_${device} ${name})
    set_tests_properties(${name}_${device} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600 COST 50
      ENVIRONMENT
      "${test_environment};WEFT_TEST_DEVICE=${device};WEFT_TEST_SOURCES=${source_records}/${name}_${device}")
  endforeach()
endfunction()

# NVIDIA's headers, if a toolkit is installed. They are only used to compare declarations.
find_path(CUDA_INCLUDE_DIR nvrtc.h HINTS /usr/local/cuda/include ENV CUDA_PATH PATH_SUFFIXES include)
find_path(HIP_INCLUDE_DIR hip/hip_runtime_api.h HINTS /opt/rocm/include ENV ROCM_PATH PATH_SUFFIXES include)
find_library(CMOCKA_LIBRARY cmocka)
find_path(CMOCKA_INCLUDE_DIR cmocka.h)
find_package(Threads REQUIRED)
file(GLOB test_sources CONFIGURE_DEPENDS tests/*/test_*.c)
file(GLOB_RECURSE unit_sources CONFIGURE_DEPENDS tests/unit/test_*.c)
list(APPEND test_sources ${unit_sources})
if(NOT CMOCKA_LIBRARY OR NOT CMOCKA_INCLUDE_DIR)
  message(STATUS "cmocka is not installed: the tests in C are left out")
  set(test_sources)
endif()
weft_choose(test_sources)
find_program(PYTHON_PROGRAM python3)
if(NOT PYTHON_PROGRAM)
  list(FILTER test_sources EXCLUDE REGEX "/test_arguments[.]c$")
endif()
foreach(source ${test_sources})
  get_filename_component(name ${source} NAME_WE)
  get_filename_component(folder ${source} DIRECTORY)
  get_filename_component(folder_name ${folder} NAME)
  file(GLOB helpers CONFIGURE_DEPENDS ${folder}/*.c)
  list(FILTER helpers EXCLUDE REGEX "/(test|fuzz)_[^/]*$")
  if(helpers AND NOT TARGET weft_tests_${folder_name})
    add_library(weft_tests_${folder_name} OBJECT ${helpers})
    weft_own(weft_tests_${folder_name})
    target_include_directories(weft_tests_${folder_name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  endif()
  add_executable(${name} ${source})
  if(CUDA_INCLUDE_DIR AND name MATCHES "cuda|nvrtc|dnn")
    target_include_directories(${name} SYSTEM PRIVATE ${CUDA_INCLUDE_DIR})
  endif()
  if(HIP_INCLUDE_DIR AND name MATCHES "hip")
    target_include_directories(${name} SYSTEM PRIVATE ${HIP_INCLUDE_DIR})
  endif()
  if(name MATCHES "webgpu")
    target_include_directories(${name} SYSTEM PRIVATE ${PROJECT_BINARY_DIR}/webgpu/include) # of `make webgpu`
  endif()
  if(helpers)
    target_sources(${name} PRIVATE $<TARGET_OBJECTS:weft_tests_${folder_name}>)
  endif()
  weft_link_test(${name} ${source})
  target_link_libraries(${name} PRIVATE ${CMOCKA_LIBRARY} Threads::Threads)
  if(NOT folder STREQUAL "${PROJECT_SOURCE_DIR}/tests/ops") # its two programs are registered below
    weft_add_test(${name} ${name})
  endif()
  if(name IN_LIST device_tests)
    weft_add_device_tests(${name})
  endif()
  if(name IN_LIST webgpu_tests)
    weft_add_webgpu_test(${name}_webgpu ${name})
  endif()
  if(name IN_LIST cuda_tests)
    weft_add_cuda_test(${name}_cuda ${name})
    if(name IN_LIST device_tests AND TEST ${name}_cuda)
      set_property(TEST ${name}_cuda APPEND PROPERTY ENVIRONMENT "WEFT_TEST_DEVICE=cuda")
    endif()
  endif()
endforeach()
if(TARGET test_arguments) # its calls are generated from the public headers
  set(calls_folder ${PROJECT_BINARY_DIR}/generated-tests)
  file(GLOB public_headers CONFIGURE_DEPENDS include/weft/*.h)
  file(MAKE_DIRECTORY ${calls_folder}/arguments)
  add_custom_command(OUTPUT ${calls_folder}/arguments/calls.inc
                     COMMAND ${PYTHON_PROGRAM} tests/arguments/make_calls.py ${calls_folder}/arguments/calls.inc
                     DEPENDS tests/arguments/make_calls.py ${public_headers} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} VERBATIM)
  target_sources(test_arguments PRIVATE ${calls_folder}/arguments/calls.inc)
  target_include_directories(test_arguments PRIVATE ${calls_folder})
endif()
if(TARGET test_dnn_plans) # cuDNN loads compiled kernels into a driver: this one ignores them
  add_library(dnn_driver SHARED tests/dnn/driver/cuda.c)
  set_target_properties(dnn_driver PROPERTIES OUTPUT_NAME cuda VERSION 1 LIBRARY_OUTPUT_DIRECTORY
                        ${PROJECT_BINARY_DIR}/dnn-driver)
  set_tests_properties(test_dnn_plans PROPERTIES ENVIRONMENT
    "${test_environment};LD_LIBRARY_PATH=${PROJECT_BINARY_DIR}/dnn-driver:$ENV{LD_LIBRARY_PATH}")
endif()

if(TARGET test_cpu_matmul AND NOT WEFT_SANITIZE) # also with a CBLAS, if one is installed
  weft_add_test(test_cpu_matmul_openblas ${CMAKE_COMMAND} -E env WEFT_MATMUL=openblas
                $<TARGET_FILE:test_cpu_matmul> library)
endif()

foreach(name test_tint test_webgpu_device test_webgpu_library test_gpu_rows) # SwiftShader takes minutes for others
  if(TARGET ${name})
    weft_add_dawn_test(${name}_dawn ${name})
  endif()
endforeach()

# On HIP: what is HIP's own, with wavefronts of both sizes. The rest repeats tests of CUDA.
if(TARGET test_hip_device)
  weft_add_hip_test(test_hip_wave64 64 test_hip_device)
  weft_add_hip_test(test_hip_wave32 32 test_hip_device)
endif()
if(TARGET test_cuda_blas) # with hipBLASLt
  weft_add_hip_test(test_hip_blas_64 64 test_cuda_blas)
  weft_add_hip_test(test_hip_blas_32 32 test_cuda_blas)
  weft_add_hip_test(test_hip_blas_races 64 ${CMAKE_COMMAND} -E env FAKE_CUDA_RACES=1 $<TARGET_FILE:test_cuda_blas>)
endif()
# Matrix cores: each kind of instruction (tests/hip/matrix.h), and an architecture without them. Some with the race detector.
function(weft_add_matrix_test name wave arch program)
  if(TARGET ${program})
    weft_add_hip_test(test_hip_matrix_${name} ${wave} ${CMAKE_COMMAND} -E env FAKE_HIP_ARCH=${arch} ${ARGN} $<TARGET_FILE:${program}>)
  endif()
endfunction()
weft_add_matrix_test(gfx908 64 gfx908 test_gpu_tensor)
weft_add_matrix_test(gfx90a 64 gfx90a test_gpu_tensor)
weft_add_matrix_test(gfx1030 32 gfx1030 test_gpu_tensor)
weft_add_matrix_test(gfx1100 32 gfx1100 test_gpu_tensor)
weft_add_matrix_test(gfx1201 32 gfx1201 test_gpu_tensor)
weft_add_matrix_test(races_64 64 gfx942 test_gpu_tensor FAKE_CUDA_RACES=1)
weft_add_matrix_test(races_32 32 gfx1201 test_gpu_tensor FAKE_CUDA_RACES=1)
foreach(name races_64 races_32)
  if(TEST test_hip_matrix_${name})
    set_tests_properties(test_hip_matrix_${name} PROPERTIES TIMEOUT 1200)
  endif()
endforeach()
foreach(arch gfx908 gfx90a gfx1100 gfx1201)
  string(REGEX MATCH "^gfx9" wide ${arch})
  if(wide)
    weft_add_matrix_test(attention_${arch} 64 ${arch} test_cuda_flash)
  else()
    weft_add_matrix_test(attention_${arch} 32 ${arch} test_cuda_flash)
  endif()
endforeach()
foreach(name epilogue conv)
  weft_add_matrix_test(${name}_64 64 gfx90a test_gpu_${name})
  weft_add_matrix_test(${name}_32 32 gfx1100 test_gpu_${name})
endforeach()
foreach(name test_cuda_nccl test_gpu_run test_gpu_device test_gpu_rows test_gpu_training test_exchange test_head test_links test_memory test_recompute)
  if(TARGET ${name})
    weft_add_hip_test(${name}_hip 64 ${name})
  endif()
endforeach()

# On PTX: the golden kernels, and the kernels with shared memory, barriers, warp operations or tensor cores. `make test-ptx`
# runs everything.
foreach(name test_golden_values test_cuda_banks test_cuda_clocks test_cuda_flash test_gpu_epilogue test_gpu_run test_gpu_slices test_gpu_tensor)
  if(TARGET ${name})
    weft_add_ptx_test(${name}_ptx ${name})
  endif()
endforeach()
if(TARGET test_ops)
  weft_add_ptx_test(ops_ptx test_ops cuda --op
    matmul,attention,sort,topk,cumsum,scatter_add,gather,recurrent,update,conv2d,max_pool2d,batch_norm,layer_norm,cast,cross_entropy,random,defined,softmax,floor)
  weft_add_ptx_test(grad_ptx test_grad cuda --op recurrent,gather,cumprod,layer_norm,topk)
endif()
if(TARGET test_transformers) # with red zones
  weft_add_cuda_test(test_transformers_zones ${CMAKE_COMMAND} -E env WEFT_DEBUG=memory WEFT_TEST_DEVICE=cuda
    $<TARGET_FILE:test_transformers>)
endif()
foreach(name test_cuda_tensor test_gpu_slices test_gpu_concurrent) # with the race detector
  if(TARGET ${name})
    weft_add_cuda_test(${name}_races_cuda ${CMAKE_COMMAND} -E env FAKE_CUDA_RACES=1 $<TARGET_FILE:${name}>)
  endif()
endforeach()
if(TARGET test_gpu_tensor)
  weft_add_cuda_test(test_gpu_tensor_cuda_75 ${CMAKE_COMMAND} -E env FAKE_CUDA_CAPABILITY=75 $<TARGET_FILE:test_gpu_tensor>)
endif()

# The op matrix and the gradient checks run once for each device. They write a record of their results, from which
# docs/op-matrix.md is generated. An absent device is skipped. On devices that compile kernels, each runs in two parts.
# These are the longest tests, so they start first.
function(weft_add_matrix name matrix device)
  weft_add_test(${name} test_${matrix} ${device} ${ARGN})
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 FIXTURES_SETUP op_records)
endfunction()
if(TARGET test_ops)
  set(records ${PROJECT_BINARY_DIR}/op-matrix)
  file(MAKE_DIRECTORY ${records})
  foreach(matrix ops grad)
    foreach(device interp cpu)
      weft_add_matrix(${matrix}_${device} ${matrix} ${device} --record ${records}/${matrix}-${device}.tsv)
    endforeach()
    foreach(device ${WEFT_TEST_DEVICES})
      foreach(part 1 2) # --card: WebGPU runs the kernels of graphics cards, also on a processor
        weft_add_matrix(${matrix}_${device}_${part} ${matrix} ${device} --part ${part}/2 --card on
                        --record ${records}/${matrix}-${device}.${part}.tsv)
        set_tests_properties(${matrix}_${device}_${part} PROPERTIES TIMEOUT 600 COST 100)
      endforeach()
    endforeach()
  endforeach()
  if(webgpu IN_LIST WEFT_TEST_DEVICES) # what WebGPU computes by other kernels on a processor
    foreach(matrix ops grad)
      weft_add_test(${matrix}_webgpu_processor test_${matrix} webgpu --op matmul,attention)
      set_tests_properties(${matrix}_webgpu_processor PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600 COST 60)
    endforeach()
  endif()
  weft_add_cuda_test(ops_cuda test_ops cuda --record ${records}/ops-cuda.tsv)
  if(TEST ops_cuda)
    set_tests_properties(ops_cuda PROPERTIES FIXTURES_SETUP op_records)
  endif()
  weft_add_cuda_test(ops_cuda_calls test_ops cuda --op matmul --calls 1) # uses cuBLASLt
  foreach(wave 64 32) # AMD's wavefronts: the whole matrix, and a sample of it that `make test` runs
    weft_add_hip_test(ops_hip_${wave} ${wave} test_ops hip)
    weft_add_hip_test(grad_hip_${wave} ${wave} test_grad hip --op cumprod,topk,gather,cross_entropy,gelu,layer_norm)
    weft_add_hip_test(hip_ops_${wave} ${wave} test_ops hip --op softmax,layer_norm,cumsum,cast,floor,sort)
    if(TEST ops_hip_${wave})
      set_tests_properties(ops_hip_${wave} PROPERTIES TIMEOUT 1200 COST 100)
    endif()
    # The gradients whose kernels are heavy or have matrix cores in f16 and bf16: these kernels differ between the wavefronts.
    weft_add_hip_test(hip_grad_${wave} ${wave} test_grad hip --op matmul,conv2d,recurrent,batch_norm)
  endforeach()
  # Gradients of attention take half a minute, of which differences in f64 take most. Kernels in f64 have no matrix cores,
  # so they are the same on both wavefronts, and differences check them on one. A long test checks them on both.
  weft_add_hip_test(hip_grad_attention_64 64 test_grad hip --op attention)
  weft_add_hip_test(hip_grad_attention_32 32 test_grad hip --op attention --differences off)
  weft_add_hip_test(grad_hip_attention_32 32 test_grad hip --op attention)
  foreach(matrix ops grad) # every kernel source translates to WGSL, and Tint compiles it
    file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/wgsl-sources/${matrix})
    weft_add_test(${matrix}_wgsl test_${matrix} null --wgsl-sources ${PROJECT_BINARY_DIR}/wgsl-sources/${matrix})
    set_tests_properties(${matrix}_wgsl PROPERTIES TIMEOUT 600)
  endforeach()
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/wgsl-sources/models)
  if(TEST test_tint_dawn)
    set_tests_properties(test_tint_dawn PROPERTIES DEPENDS "ops_wgsl;grad_wgsl")
  endif()
  # red zones around the results of programs, which hold NaN before a run
  weft_add_test(grad_zones test_grad cpu --debug memory)
  weft_add_cuda_test(grad_cuda_zones test_grad cuda --debug memory --op
    recurrent,layer_norm,cross_entropy,gather,max_pool2d)
  weft_add_cuda_test(ops_cuda_long test_ops cuda --indices 64 --op # indices of tensors of 2^31 elements
    sub,where,pad,slice,flip,concat,repeat_interleave,unfold,fold,max_pool2d,interpolate2d,sum,argmax,var,cumsum,gather,take_along_axis,softmax,layer_norm,batch_norm,cross_entropy,random,dropout)
  # races in kernels; stores that other blocks see late; libraries that refuse, so that their fallbacks run
  weft_add_cuda_test(ops_cuda_races ${CMAKE_COMMAND} -E env FAKE_CUDA_RACES=1 $<TARGET_FILE:test_ops> cuda --op
    softmax,layer_norm,cross_entropy,sort,attention)
  weft_add_cuda_test(ops_cuda_delays ${CMAKE_COMMAND} -E env FAKE_CUDA_DELAYS=1 $<TARGET_FILE:test_ops> cuda --op
    softmax,cumsum,cross_entropy,layer_norm)
  weft_add_cuda_test(ops_cuda_declined ${CMAKE_COMMAND} -E env FAKE_CUDA_DECLINE=2 $<TARGET_FILE:test_ops> cuda --op
    matmul,attention,conv2d --calls 1)
  weft_add_cuda_test(grad_cuda test_grad cuda --op # ops with kernels or launches of their own, and one of each other kind
    matmul,conv2d,recurrent,cumprod,topk,max_pool2d,batch_norm,interpolate2d,complex,defined,gather,cross_entropy,gelu)
  weft_add_cuda_test(grad_cuda_attention test_grad cuda --op attention)
  weft_add_cuda_test(grad_cuda_sort test_grad cuda --op sort) # alone: programs without scratch
  find_program(PYTHON_PROGRAM python3)
  if(PYTHON_PROGRAM AND TARGET test_grad)
    weft_add_test(op_matrix ${PYTHON_PROGRAM} tools/gen_op_matrix.py --check ${PROJECT_BINARY_DIR}/op-matrix)
    set_tests_properties(op_matrix PROPERTIES FIXTURES_REQUIRED op_records)
  endif()
endif()

# The numeric tests again with lower instruction sets, of which fewer lanes or no fused multiply-add change the roundings.
file(GLOB isa_tests CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/tests/unit/device/cpu tests/unit/device/cpu/test_cpu_*.c)
list(TRANSFORM isa_tests REPLACE "[.]c$" "")
foreach(name test_parity test_export_training test_ops test_grad ${isa_tests})
  set(device)
  if(name MATCHES "_(ops|grad)$")
    set(device cpu)
  endif()
  foreach(isa baseline avx2)
    if(TARGET ${name} AND NOT WEFT_SANITIZE)
      weft_add_test(${name}_${isa} sh tests/with_isa.sh ${isa} $<TARGET_FILE:${name}> ${device})
      set_tests_properties(${name}_${isa} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600 COST 30)
    endif()
  endforeach()
endforeach()

if(NOT WEFT_SANITIZE) # benchmarks of `make bench-programs`; they are always built, so that they stay right
  foreach(program jpeg operations crossover)
    add_executable(bench_${program} bench/${program}.c)
    weft_own(bench_${program})
    target_link_libraries(bench_${program} PRIVATE weft_static ${WEFT_LIBRARIES})
  endforeach()
endif()

# For tests/faults: a library that makes allocations fail, and a program that uses libweft without the command.
include(CheckSymbolExists)
check_symbol_exists(__GLIBC__ "features.h" WEFT_HAS_GLIBC)
if(WEFT_HAS_GLIBC AND TARGET weft AND NOT WEFT_SANITIZE AND NOT WEFT_PORTABLE)
  add_library(fault_preload SHARED tests/faults/preload.c)
  add_executable(fault_program tests/faults/program.c)
  weft_own(fault_program)
  target_link_libraries(fault_program PRIVATE weft_static ${WEFT_LIBRARIES})
  target_link_libraries(fault_preload PRIVATE ${CMAKE_DL_LIBS})
  set_target_properties(fault_preload fault_program PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/faults
                        RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/faults)
endif()

file(GLOB test_scripts CONFIGURE_DEPENDS tests/*/test_*.sh)
weft_choose(test_scripts)
foreach(script ${test_scripts})
  get_filename_component(name ${script} NAME_WE)
  if(TARGET weft)
    weft_add_test(${name} bash ${script})
    set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77)
    if(name IN_LIST cuda_tests)
      weft_add_cuda_test(${name}_cuda bash ${script})
    endif()
  endif()
endforeach()

if(TEST test_roots) # builds the command
  set_tests_properties(test_roots PROPERTIES TIMEOUT 3600 COST 300)
endif()

# The list of tests that `make test-cuda` runs on a GPU, by tools/test_cuda.sh.
set(on_a_card "matrix test_ops\nmatrix test_grad\n")
foreach(name ${device_tests})
  string(APPEND on_a_card "device ${name}\n")
endforeach()
foreach(name ${cuda_tests})
  if(TARGET ${name})
    string(APPEND on_a_card "gpu ${name}\n")
  else()
    string(APPEND on_a_card "script ${name}\n")
  endif()
endforeach()
file(WRITE ${PROJECT_BINARY_DIR}/cuda-tests.txt ${on_a_card})
if(TARGET weft AND TARGET test_cuda_device)
  weft_add_test(test_on_a_card bash tools/test_cuda.sh ${PROJECT_BINARY_DIR} test_cuda_device)
  weft_add_cuda_test(test_on_a_card_cuda bash tools/test_cuda.sh ${PROJECT_BINARY_DIR} test_cuda_device)
endif()

# Counts the distinct kernel sources that those tests have compiled. Each makes the first run of a program slower.
get_property(source_tests GLOBAL PROPERTY weft_source_tests)
if(PYTHON_PROGRAM AND source_tests)
  weft_add_test(kernel_sources ${PYTHON_PROGRAM} tools/count_sources.py ${source_records} 12 docs/op-matrix.md ${source_tests})
  set_tests_properties(kernel_sources PROPERTIES SKIP_RETURN_CODE 77 DEPENDS "${source_tests}")
endif()

# Builds the examples with the public headers alone, and runs them.
set(example_arguments_save_load_predict ${PROJECT_BINARY_DIR}/classify.safetensors)
file(GLOB example_sources CONFIGURE_DEPENDS examples/*.c)
weft_choose(example_sources)
if(WEFT_PORTABLE)
  set(example_sources)
endif()
foreach(source ${example_sources})
  get_filename_component(name ${source} NAME_WE)
  add_executable(example_${name} ${source})
  target_compile_options(example_${name} PRIVATE ${WEFT_WARNINGS})
  target_link_libraries(example_${name} PRIVATE weft_shared m)
  weft_add_test(example_${name} example_${name} ${example_arguments_${name}})
endforeach()

# Planted faults. They take minutes, so they run only with WEFT_MUTANTS=1 (make mutants).
find_program(PATCH_PROGRAM patch)
if(PATCH_PROGRAM AND UNIX AND NOT WEFT_SANITIZE)
  weft_add_test(mutants bash tests/mutants/run.sh)
  set_tests_properties(mutants PROPERTIES TIMEOUT 1200 COST 200 SKIP_RETURN_CODE 77) # starts early, since it builds for minutes
endif()

# Tests an installation, and the documents. A sanitized library would need a sanitized consumer.
find_program(BASH_PROGRAM bash)
find_program(PYTHON_PROGRAM python3)
if(BASH_PROGRAM AND NOT WEFT_SANITIZE AND NOT WEFT_PORTABLE)
  weft_add_test(consumer ${BASH_PROGRAM} tests/consumer/run.sh ${PROJECT_BINARY_DIR})
  if(PYTHON_PROGRAM)
    weft_add_test(docs ${PYTHON_PROGRAM} tools/check_docs.py --build ${PROJECT_BINARY_DIR} --cc
                  ${CMAKE_C_COMPILER})
  endif()
endif()

# Labels. GPU tests are slow, since a driver compiles each kernel. So `make test` leaves out the repetitions of tests on other
# devices, the three longest tests of the GPU code and the planted faults (repeated), and other long tests (slow). `make test-all`
# runs everything.
get_property(every_test DIRECTORY PROPERTY TESTS)
foreach(name ${every_test})
  if(name MATCHES "_(opencl|webgpu|dawn|cuda|hip|ptx)(_[0-9]+)?$|^(ops|grad)_(opencl|webgpu|cuda|hip)|^hip_grad_|^test_hip_(matrix|blas)|_zones$|_(baseline|avx2)$|^(kernel_sources|op_matrix|mutants|test_roots|test_train_gpu|test_train_hip|test_processes_cards|test_gpu_heavy|test_gpu_matmul)$")
    set(labels repeated)
    # the longest ones, most of whose code others cover
    if(name MATCHES "^ops_hip_|^grad_(hip_|cuda_attention)|^test_hip_matrix_(conv|epilogue|races|gfx908)|_ptx$|^test_(gpu_[a-z]+|head|memory|recompute)_hip$|^test_(memory|recompute|cuda_choice|gpu_scatter|gpu_conv)_(cuda|webgpu)$|^(mutants|test_roots)$")
      list(APPEND labels long)
    endif()
    set_tests_properties(${name} PROPERTIES LABELS "${labels}")
  endif()
endforeach()

# Tests that take over 25 seconds on two cores, and their seconds. They start early, so that none is left at the end.
set(seconds_of test_processes=180 test_processes_cards=140 test_processes_memory=80 test_processes_profile=30
    test_gpu_epilogue=85 test_gpu_rows=70 test_gpu_loop=55 test_gpu_training=27 test_gpu_run=26 test_recompute=35
    test_render=65 test_export_training=60 test_text_shards=60 test_parquet_texts=50 test_image_shards=35
    test_images_in_files=28 test_stop=40 test_step_parts=40 test_real_models=35 test_exchange=35 test_copies=30
    test_exports=60 test_export_device=40 test_processes_verify=60 test_kill_resume=30 test_instructions=55 ops_interp=45 ops_wgsl=32)
foreach(entry ${seconds_of})
  string(REPLACE "=" ";" entry ${entry})
  list(GET entry 0 name)
  list(GET entry 1 seconds)
  if(TEST ${name})
    get_property(labels TEST ${name} PROPERTY LABELS)
    list(APPEND labels slow)
    set_tests_properties(${name} PROPERTIES COST ${seconds} TIMEOUT 600 LABELS "${labels}")
  endif()
endforeach()

# As tests they run the seeds, and changed seeds for five seconds. `make fuzz` runs them for long.
if(WEFT_FUZZES)
  file(GLOB fuzz_sources CONFIGURE_DEPENDS tests/fuzz/fuzz_*.c)
  weft_choose(fuzz_sources)
  add_custom_target(fuzz_targets)
  foreach(source ${fuzz_sources})
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} ${source})
    weft_link_test(${name} ${source})
    target_compile_options(${name} PRIVATE -Wno-missing-prototypes)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
    add_dependencies(fuzz_targets ${name})
    weft_add_test(${name} bash tools/fuzz.sh ${PROJECT_BINARY_DIR} 5 ${name})
    set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77)
  endforeach()
endif()
