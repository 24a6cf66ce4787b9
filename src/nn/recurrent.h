/* What recurrent layers and the language model around them share. */
#ifndef WEFT_NN_RECURRENT_H
#define WEFT_NN_RECURRENT_H

#include <weft/recurrent.h>
#include "nn/module.h"

/* The layer that has the states of m: that of a language model, else m itself. */
const weft_module *weft__recurrent_in(const weft_module *m);

#endif
