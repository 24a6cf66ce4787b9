/* The functions that execute instructions, each in the file that its comment names. */
#ifndef WEFT_TESTS_PTX_ACTIONS_H
#define WEFT_TESTS_PTX_ACTIONS_H

#include "module.h"

#define ACTION(name) void ptx_##name(ptx_warp *w, const ptx_instruction *in, uint32_t mask);
/* arithmetic.c: integers, and floats by float.h */
ACTION(add)
ACTION(sub)
ACTION(mul)
ACTION(mad)
ACTION(div)
ACTION(rem)
ACTION(min)
ACTION(max)
ACTION(abs)
ACTION(neg)
ACTION(setp)
ACTION(selp)
ACTION(mov)
/* float.c */
ACTION(fma)
ACTION(copysign)
ACTION(sqrt)
ACTION(rsqrt)
ACTION(rcp)
ACTION(ex2)
ACTION(lg2)
ACTION(sin)
ACTION(cos)
ACTION(tanh)
ACTION(testp)
/* convert.c */
ACTION(cvt)
/* bits.c */
ACTION(and)
ACTION(or)
ACTION(xor)
ACTION(not )
ACTION(cnot)
ACTION(lop3)
ACTION(shl)
ACTION(shr)
ACTION(shf)
ACTION(prmt)
ACTION(bfe)
ACTION(bfi)
ACTION(popc)
ACTION(clz)
ACTION(brev)
ACTION(bfind)
/* memory.c */
ACTION(cvta)
ACTION(ld)
ACTION(st)
ACTION(atom)
ACTION(copy_async)
ACTION(commit)
ACTION(wait)
/* warp.c */
ACTION(nothing)
ACTION(trap)
ACTION(meet)
ACTION(shfl)
ACTION(vote)
ACTION(match)
ACTION(redux)
ACTION(activemask)
/* tensor.c */
ACTION(ldmatrix)
ACTION(mma)
#undef ACTION

#endif
