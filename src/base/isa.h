/* The instruction sets for which some files are compiled. Must not know: what is computed with them. Read
 * next: isa.c. */
#ifndef WEFT_SRC_BASE_ISA_H
#define WEFT_SRC_BASE_ISA_H

#include <stdbool.h>

typedef enum weft_cpu_isa { WEFT_ISA_BASELINE, WEFT_ISA_AVX2, WEFT_ISA_AVX512 } weft_cpu_isa;
/* Returns the best one of the machine, up to the limit in WEFT_CPU_ISA (baseline, avx2, avx512). */
weft_cpu_isa weft__cpu_isa(void);
const char *weft__cpu_isa_name(weft_cpu_isa isa);
/* Returns the instruction set that the build needs and the machine lacks, or NULL: -DWEFT_NATIVE=ON. */
const char *weft__cpu_isa_lacks(void);
/* Returns true if WEFT_CPU_ISA is unset or names an instruction set. */
bool weft__cpu_isa_known(void);

/* The address of what NAME_baseline, NAME_avx2 and NAME_avx512 define: the one for weft__cpu_isa(). */
#if defined(__x86_64__)
#define WEFT_BY_ISA(name)                                                                                    \
    (weft__cpu_isa() == WEFT_ISA_AVX512 ? &name##_avx512                                                     \
     : weft__cpu_isa() == WEFT_ISA_AVX2 ? &name##_avx2                                                       \
                                        : &name##_baseline)
#else
#define WEFT_BY_ISA(name) (&name##_baseline)
#endif

#endif
